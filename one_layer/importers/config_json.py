"""`config.json` of a model in Hugging Face's format, and one sentence for each value that cannot be."""

from pathlib import Path
from typing import Any

from one_layer.system.errors import UserError
from one_layer.system.files import json_object

# The names that transformers has for `model.activation`, and those that it reads, of which one function has two.
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh"}
_ACTIVATIONS_READ = {theirs: ours for ours, theirs in ACTIVATIONS.items()} | {"gelu_new": "gelu_tanh"}
# Keys of `model` by which Llama and RoBERTa have one name.
SIZES = {"d_model": "hidden_size", "ffn": "intermediate_size", "heads": "num_attention_heads"}


class ConfigJson(dict[str, Any]):
    """The values of a config.json. Raises: UserError for a file that is missing or damaged, and for values as the methods say."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise UserError(
                f"{path} does not exist; give the folder of a model, with config.json and model.safetensors"
            )
        try:
            super().__init__(json_object(path))
        except (OSError, ValueError) as error:
            raise UserError(f"{path} cannot be read ({error}); copy it again") from None
        self.path = path

    def whole(self, name: str, default: int | None = None) -> int:
        """A size: a whole number of at least 1. `default` stands in for one that is absent or null."""
        value = default if self.get(name) is None else self[name]
        if type(value) is not int or value < 1:
            raise self.wrong(name, value, "a whole number of at least 1")
        return value

    def positive(self, name: str, default: float) -> float:
        """A number above 0."""
        value = self.get(name, default)
        if type(value) not in (int, float) or not value > 0:
            raise self.wrong(name, value, "a number above 0")
        return float(value)

    def end_of_text(self, default: int | None = None) -> int:
        """The id of the token that ends a text, which a table can have; of several, the first."""
        value = self.get("eos_token_id", default)
        ids: list[Any] = value if isinstance(value, list) and value else [value]
        if not all(type(each) is int and each >= 0 for each in ids):
            raise self.wrong(
                "eos_token_id", value, "the id of the token that ends a text, from 0 on, or a list of such"
            )
        return int(ids[0])

    def activation(self, name: str, default: str) -> str:
        """The `model.activation` of a function that this program has."""
        if (value := str(self.get(name, default))) not in _ACTIVATIONS_READ:
            raise UserError(f"{self.path}: {name} is {value!r:.60}; known are {', '.join(_ACTIVATIONS_READ)}")
        return _ACTIVATIONS_READ[value]

    def refuse_others(self, network: str, needed: dict[str, Any], **found: Any) -> None:
        """Raises: UserError for a value that differs from the one in `needed`, with which this program computes `network`.

        `found` has values for which the file has other names. A value that is nowhere is the needed one.
        """
        values = self | found
        for name, own in needed.items():
            if (value := values.get(name, own)) != own:
                how = f"reads {network} without it" if own is None else f"computes {network} with {own!r}"
                raise UserError(f"{self.path}: {name} is {value!r:.60}, but this program {how}")

    def wrong(self, name: str, value: Any, needed: str) -> UserError:
        """The error for a value that is something else than `needed`."""
        return UserError(f"{self.path}: {name} is {value!r:.60}; it must be {needed}; copy the file again")

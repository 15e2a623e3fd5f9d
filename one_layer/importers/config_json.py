"""`config.json` of a model in Hugging Face's format, and one sentence for each value that cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from one_layer.system.errors import UserError
from one_layer.system.files import json_object

# The names that transformers has for `model.activation`, and those that it reads, of which one function has two.
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh"}
_ACTIVATIONS_READ = {theirs: ours for ours, theirs in ACTIVATIONS.items()} | {"gelu_new": "gelu_tanh"}


def read_config(path: Path) -> dict[str, Any]:
    """Reads a config.json. Raises: UserError for a file that is missing or damaged."""
    if not path.is_file():
        raise UserError(f"{path} does not exist; give the folder of a model, with config.json and model.safetensors")
    try:
        return json_object(path)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}); copy it again") from None


def whole(path: Path, name: str, value: Any) -> int:
    """A size. Raises: UserError for anything but a whole number of at least 1."""
    if type(value) is not int or value < 1:
        raise UserError(
            f"{path}: {name} is {value!r:.60}; it must be a whole number of at least 1; copy the file again"
        )
    return value


def end_of_text(path: Path, options: dict[str, Any], default: int | None = None) -> int:
    """The id of the token that ends a text; of several, the first. Raises: UserError for anything but ids that a table can have."""
    value = options.get("eos_token_id", default)
    ids: list[Any] = value if isinstance(value, list) and value else [value]
    if not all(type(each) is int and each >= 0 for each in ids):
        raise UserError(
            f"{path}: eos_token_id is {value!r:.60}; it must be the id of the token that ends a text, from 0 on, or a list of such"
        )
    return int(ids[0])


def positive(path: Path, name: str, value: Any) -> float:
    """Raises: UserError for anything but a number above 0."""
    if type(value) not in (int, float) or not value > 0:
        raise UserError(f"{path}: {name} is {value!r:.60}; it must be a number above 0; copy the file again")
    return float(value)


def activation(path: Path, name: str, value: Any) -> str:
    """The `model.activation` of a function. Raises: UserError for one that this program does not have."""
    if str(value) not in _ACTIVATIONS_READ:
        raise UserError(f"{path}: {name} is {value!r:.60}; known are {', '.join(_ACTIVATIONS_READ)}")
    return _ACTIVATIONS_READ[str(value)]


def refuse_others(path: Path, network: str, values: dict[str, tuple[Any, Any]]) -> None:
    """Raises: UserError, by name, for a value that differs from the one that this program computes `network` with.

    `values` has for each name the value of the file and the one that is needed.
    """
    for name, (found, needed) in values.items():
        if found != needed:
            how = f"reads {network} without it" if needed is None else f"computes {network} with {needed!r}"
            raise UserError(f"{path}: {name} is {found!r:.60}, but this program {how}")

"""Which network this is: its family, its sizes, its layers, and which of their weights are random; and what all checks of keys share."""

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from one_layer.data.special_tokens import UNK
from one_layer.layers.freezing import STACKS
from one_layer.layers.pattern import expand
from one_layer.system.errors import UserError, check_least

# What the layers of a stack may share, for each value of `weights`; the first is the default.
SHARING = {"dense": ("none", "weights"), "one_layer": ("weights",), "multi_layer": ("none", "masks")}
_DEEPEST = 2**12  # layers in a stack


def one_of(*known: str, **default: str | None) -> Any:
    """A key with one of these values; by default the first, or `default`."""
    return field(default=default.get("default", known[0]), metadata={"known": known})


def rate() -> Any:
    """A key that is a probability below 1, by default 0."""
    return field(default=0.0, metadata={"rate": True})


def check_values(keys: Any) -> None:
    """Raises: UserError for a key whose value is not as `one_of` or `rate` says."""
    for each in fields(keys):
        value, known = getattr(keys, each.name), each.metadata.get("known")
        shown = f"model.{each.name} is {value!r:.200}"
        if known and value not in known:
            raise UserError(f"{shown}; known are {', '.join(filter(None, known))}")
        if "rate" in each.metadata and not 0.0 <= value < 1.0:
            raise UserError(f"{shown}; it must lie in [0, 1)")


@dataclass(frozen=True)
class ShapeKeys:
    """`encoder_layers` and `decoder_layers` are numbers or layer strings (see `one_layer.layers.pattern`).

    `family` says which network this is (see `one_layer.models.families`): by default a translation model, or a classifier if
    `decoder_layers` is 0. A classifier's `target_vocab` counts the four special types and the labels.
    """

    source_vocab: int
    target_vocab: int
    d_model: int = 512
    ffn: int = 1024
    heads: int = 4
    encoder_layers: int | str = 6
    decoder_layers: int | str = 6
    weights: str = one_of(*SHARING, default="one_layer")
    sharing: str | None = None
    family: str | None = None

    def follows(self) -> dict[str, object]:
        """The values of keys that were not given."""
        return {
            "sharing": SHARING.get(self.weights, ("none",))[0],
            "family": "translation" if self.decoder_layers else "classifier",
        }

    @property
    def masked(self) -> bool:
        """Whether the layers' matrices are random under trained masks. At keep 1 they are random and have no masks."""
        return self.weights != "dense"

    @property
    def shares_trained(self) -> bool:
        """Whether the layers of a stack share trained matrices (Lan et al. 2019, arXiv 1909.11942)."""
        return self.weights == "dense" and self.sharing == "weights"

    @property
    def main_letter(self) -> str:
        """The letter that a number of layers stands for (see `one_layer.layers.pattern`)."""
        return "S" if self.masked else "L"

    @cached_property
    def strings(self) -> dict[str, str]:
        """The letters of the layers of each stack. Raises: UserError, which names the key, for others."""
        return {
            stack: expand(f"{stack}_layers", getattr(self, f"{stack}_layers"), self.main_letter) for stack in STACKS
        }

    def depth(self, stack: str) -> int:
        """The number of layers of the stack `encoder` or `decoder`."""
        return len(self.strings[stack])

    def check(self) -> None:
        """Raises: UserError, which names the key, for a value that no model has, and for values that do not fit together."""
        check_values(self)
        check_least("model", self, d_model=1, ffn=1, heads=1)
        for name in ("source_vocab", "target_vocab"):
            types = getattr(self, name)
            if types <= UNK:
                raise UserError(f"model.{name} is {types}; it must be at least 4, for the four special tokens")
        if self.d_model % self.heads:
            raise UserError(f"model.heads is {self.heads}, which does not divide model.d_model {self.d_model}")
        if self.d_model % 2 or self.d_model < 4:
            raise UserError(f"model.d_model is {self.d_model}; sinusoidal positions need an even width of at least 4")
        self._check_depths()
        if self.sharing not in SHARING[self.weights]:
            raise UserError(
                f"model.sharing is {self.sharing!r:.200}, which does not fit model.weights={self.weights}; give "
                f"{' or '.join(SHARING[self.weights])}"
            )

    def _check_depths(self) -> None:
        """The family says which layers it needs. Numbers come first: one may stand for more letters than the memory holds."""
        for stack in STACKS:
            number = getattr(self, f"{stack}_layers")
            outside = isinstance(number, int) and not 0 <= number <= _DEEPEST
            if outside:
                raise UserError(f"model.{stack}_layers is {number}; it must lie in [0, {_DEEPEST}]")
        for stack, string in self.strings.items():
            if len(string) > _DEEPEST:
                raise UserError(f"model.{stack}_layers has {len(string)} letters; it must have at most {_DEEPEST}")

"""The settings of a model, resolved once. Model code never sees a ConfigDict."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property

from one_layer.data.special_tokens import UNK
from one_layer.layers.freezing import STACKS
from one_layer.layers.groups import StackSettings
from one_layer.models.families import Family, family_named
from one_layer.models.keys import SHARING, ModelKeys
from one_layer.models.layers import stack_settings
from one_layer.models.records import at_least, at_most, one_of
from one_layer.system.errors import UserError

_DEEPEST = 2**12  # layers in a stack


@dataclass(frozen=True)
class ModelConfig(ModelKeys):
    """The settings of a network: checked keys, the family, and the layers of each stack.

    Raises: UserError for an invalid value; it names the key as `model.KEY`.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("weights", self.weights, tuple(SHARING))
        one_of("norm_position", self.norm_position, ("post", "pre"))
        one_of("block", self.block, ("paper", "modern"))
        self._check_modern()
        if not 0.0 <= self.head_dropout < 1.0:
            raise UserError(f"model.head_dropout is {self.head_dropout}; it must lie in [0, 1)")
        for stack in STACKS:  # the family says which it needs
            if isinstance(number := getattr(self, f"{stack}_layers"), int):
                at_least(f"{stack}_layers", number, 0)
                at_most(f"{stack}_layers", number, _DEEPEST)
        for name in ("source_vocab", "target_vocab"):
            if getattr(self, name) <= UNK:
                raise UserError(
                    f"model.{name} is {getattr(self, name)}; it must be at least 4, for the four special tokens"
                )
        if self.sharing not in SHARING[self.weights]:
            raise UserError(
                f"model.sharing is {self.sharing!r:.200}, which does not fit model.weights={self.weights}; give "
                f"{' or '.join(SHARING[self.weights])}"
            )
        if self.weights == "dense" and self.embedding == "masked":
            raise UserError(
                "model.embedding is 'masked' in a dense model; use 'trained' or 'frozen', or mask the layers too"
            )
        _ = self.masks, self.initialization, self.embeddings, self.reservoirs, self._stacks  # each checks itself
        if self.backskip != "off" and not any("R" in string.upper() for string in self.strings.values()):
            raise UserError(
                f"train.backskip is {self.backskip!r:.200}, but neither model.encoder_layers nor model.decoder_layers has a reservoir "
                "(R); give a layer string with R, or train.backskip=off"
            )
        for stack, string in self.strings.items():
            if len(string) > _DEEPEST:
                raise UserError(f"model.{stack}_layers has {len(string)} letters; it must have at most {_DEEPEST}")
        self.network_family.check(self)

    def _check_modern(self) -> None:
        needed: dict[str, object] = {
            "norm_position": "pre",
            "activation": "relu",
            "positions": "sinusoidal",
            "bias": False,
        }
        for name, value in needed.items():
            if self.modern and getattr(self, name) != value:
                raise UserError(
                    f"model.{name} is {getattr(self, name)!r:.200}, but model.block is 'modern' (pre-norm, SwiGLU, rotary positions, no "
                    f"biases); give model.{name}={value}, or model.block=paper"
                )

    @property
    def network_family(self) -> Family:
        """The family with the name `family`. Raises: UserError for an unknown name."""
        return family_named(str(self.family))

    @cached_property
    def _stacks(self) -> dict[str, StackSettings]:
        return {name: stack_settings(self, name) for name in STACKS}

    def stack(self, name: str) -> StackSettings:
        """The stack `encoder` or `decoder`."""
        return self._stacks[name]

    def replace(self, **changes: object) -> ModelConfig:
        """A copy with other values. Fields that were not given follow from the new values."""
        followed: frozenset[str] = getattr(self, "_followed")  # noqa: B009  # not a field, so that comparisons ignore it
        return dataclasses.replace(self, **{**dict.fromkeys(followed), **changes})  # type: ignore[arg-type]

"""The settings of a model, resolved once. Model code never sees a ConfigDict."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property

from one_layer.layers.freezing import STACKS
from one_layer.layers.groups import StackSettings
from one_layer.models.families import Family, family_named
from one_layer.models.keys import ModelKeys
from one_layer.models.layers import stack_settings


@dataclass(frozen=True)
class ModelConfig(ModelKeys):
    """The settings of a network: checked keys, the family, and the layers of each stack.

    Raises: UserError for an invalid value; it names the key as `model.KEY`.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check()
        _ = self._stacks  # each layer checks itself
        self.network_family.check(self)

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

"""The settings of a model, resolved once, with the layers of each stack. Model code never sees a ConfigDict.

A stack has one kind of layer for each letter of its layer string. A number of layers stands for `L` in a dense model, and for `S` in a
masked one. The variables of these layers are in the module `layers` of their stack; those of updatable layers beside them are in
`trained`, and those of reservoirs in `reservoir`.

- `L` is the layer of a dense model. Beside masked layers, it always has biases and affine norms, or RMSNorm in a modern block.
- `S` is the layer of a masked model.
- `R` has fixed matrices, no biases and plain norms, whose scale is 1 and whose shift is 0 (arXiv 2012.15045, section 2).
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property

from one_layer.layers.freezing import STACKS
from one_layer.layers.groups import Group, StackSettings
from one_layer.layers.settings import LayerSettings
from one_layer.models.families import FAMILIES, Family
from one_layer.models.keys import ModelKeys
from one_layer.system.errors import UserError

# All other settings of a layer are the model's, and have the same names.
_OWN = ("kind", "mask", "block", "both_ways")


@dataclass(frozen=True)
class ModelConfig(ModelKeys):
    """The settings of a network: checked keys, the family, and the layers of each stack.

    Raises: UserError for an invalid value; it names the key as `model.KEY`.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.family not in FAMILIES:
            raise UserError(f"the model family {self.family!r:.200} is unknown; known are {', '.join(FAMILIES)}")
        self.check()
        _ = self._stacks  # each layer checks itself
        self.network_family.check(self)

    @property
    def network_family(self) -> Family:
        """The family with the name `family`."""
        return FAMILIES[str(self.family)]

    @cached_property
    def _stacks(self) -> dict[str, StackSettings]:
        return {name: _stack_settings(self, name) for name in STACKS}

    def stack(self, name: str) -> StackSettings:
        """The stack `encoder` or `decoder`."""
        return self._stacks[name]

    def replace(self, **changes: object) -> ModelConfig:
        """A copy with other values. Fields that were not given follow from the new values."""
        followed: frozenset[str] = getattr(self, "_followed")  # noqa: B009  # not a field, so that comparisons ignore it
        return dataclasses.replace(self, **{**dict.fromkeys(followed), **changes})  # type: ignore[arg-type]


def _stack_settings(config: ModelKeys, stack: str) -> StackSettings:
    """The stack `encoder` or `decoder`. Raises: UserError, which names the key, for a layer string or a setting that does not fit."""
    pattern = config.strings[stack]
    if "S" in pattern and not config.masked:
        given = getattr(config, f"{stack}_layers")
        raise UserError(
            f"model.{stack}_layers is {given!r:.200}, but model.weights is 'dense', which has no masks; give "
            "model.weights=one_layer, or L instead of S"
        )
    groups = []
    for letter in sorted(set(pattern)):
        shares = letter == config.main_letter
        name = "layers" if shares else {"L": "trained", "R": "reservoir"}[letter]
        layer, count = _layer(config, letter, stack), pattern.count(letter)
        one_weight, one_mask = shares and config.sharing == "weights", shares and config.sharing == "masks"
        shared_params = one_mask or (shares and (config.shares_trained or bool(config.share_norm_scale)))
        groups.append(Group(letter, name, layer, count, one_weight, one_mask, shared_params))
    return StackSettings(
        pattern,
        tuple(groups),
        remat=config.remat,
        final_norm=str(config.norm) if config.norm_position == "pre" else None,
        layerdrop=config.layerdrop * (len(pattern) > 1),  # without its only layer, a decoder would not see the source
        backskip=config.backskip,
        freezing=config.freezing,
        name=stack,
        beside=config.beside,
    )


def _layer(config: ModelKeys, letter: str, stack: str) -> LayerSettings:
    """One layer of the kind `letter`."""
    alike = {name: getattr(config, name) for name in LayerSettings.__dataclass_fields__ if name not in _OWN}
    main = LayerSettings(kind="masked" if config.masked else "trained", mask=config.supermask, **alike)
    if letter == config.main_letter:
        return main
    if letter == "L":
        norm = "rms" if config.modern else "affine"
        return dataclasses.replace(main, kind="trained", bias=not config.modern, norm=norm)
    both_ways = stack == "encoder"  # a decoder must not see later tokens
    norm = "rms_plain" if config.modern else "plain"
    return dataclasses.replace(main, kind="fixed", bias=False, norm=norm, block=config.reservoir, both_ways=both_ways)

"""The kinds of layers of a model, one for each letter of its layer strings, and their order in each stack."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from one_layer.layers.blocks import LayerSettings
from one_layer.layers.groups import Group, StackSettings
from one_layer.layers.pattern import expand
from one_layer.system.errors import UserError

if TYPE_CHECKING:
    from one_layer.models.config import ModelConfig


@dataclass(frozen=True)
class Layers:
    """`main` is a layer for which a number of layers stands. `strings` has the letters of each stack, `patterns` those of the layers that
    are not left out, and `stacks` their settings.

    A number of layers stands for `L` in a dense model, and for `S` in a masked one. The variables of these layers are in the module
    `layers` of their stack; those of updatable layers beside them are in `trained`, and those of reservoirs in `reservoir`.

    - `L` is the layer of a dense model. Beside masked layers, it always has biases and affine norms, or RMSNorm in a modern block.
    - `S` is the layer of a masked model.
    - `R` has fixed matrices, no biases and plain norms, whose scale is 1 and whose shift is 0 (arXiv 2012.15045, section 2).
    """

    main: LayerSettings
    strings: dict[str, str]
    patterns: dict[str, str]
    stacks: dict[str, StackSettings]

    @classmethod
    def of(cls, config: ModelConfig) -> Layers:
        """The layers of `config`. Raises: UserError, which names the key, for a layer string or a setting that does not fit."""
        strings = {
            stack: expand(f"{stack}_layers", getattr(config, f"{stack}_layers"), _main(config))
            for stack in ("encoder", "decoder")
        }
        patterns = {stack: "".join(filter(str.isupper, string)) for stack, string in strings.items()}
        for stack, pattern in patterns.items():
            if "S" in pattern and not config.masked:
                given = getattr(config, f"{stack}_layers")
                raise UserError(
                    f"model.{stack}_layers is {given!r:.200}, but model.weights is 'dense', which has no masks; give "
                    "model.weights=one_layer, or L instead of S"
                )
        if config.backskip != "off" and not any("R" in string.upper() for string in strings.values()):
            raise UserError(
                f"train.backskip is {config.backskip!r:.200}, but neither model.encoder_layers nor model.decoder_layers has a reservoir "
                "(R); give a layer string with R, or train.backskip=off"
            )
        main = _layer(config, _main(config), "encoder")
        return cls(main, strings, patterns, {stack: _stack(config, stack, string) for stack, string in strings.items()})

    def stack(self, name: str) -> StackSettings:
        """The settings of the stack `encoder` or `decoder`."""
        return self.stacks[name]


def _main(config: ModelConfig) -> str:
    """The letter that a number of layers stands for."""
    return "S" if config.masked else "L"


def _stack(config: ModelConfig, stack: str, string: str) -> StackSettings:
    main, pattern = _main(config), "".join(filter(str.isupper, string))
    groups = []
    for letter in sorted(set(pattern)):
        name = "layers" if letter == main else {"L": "trained", "R": "reservoir"}[letter]
        shares = letter == main
        groups.append(
            Group(
                letter,
                name,
                _layer(config, letter, stack),
                one_weight=shares and config.sharing == "weights",
                shared_params=shares
                and (config.sharing == "masks" or config.share_bias or bool(config.share_norm_scale)),
            )
        )
    return StackSettings(
        pattern,
        tuple(groups),
        remat=config.remat,
        final_norm=str(config.norm) if config.norm_position == "pre" else None,
        layerdrop=config.layerdrop * (len(pattern) > 1),  # without its only layer, a decoder would not see the source
        backskip=config.backskip,
        freezing=config.freezing,
        name=stack,
        numbers=tuple(number for number, letter in enumerate(string, 1) if letter.isupper()),
    )


def _layer(config: ModelConfig, letter: str, stack: str) -> LayerSettings:
    """One layer of the kind `letter`."""
    main = LayerSettings(
        d_model=config.d_model,
        ffn=config.ffn,
        heads=config.heads,
        kind="masked" if config.masked else "trained",
        mask=config.supermask,
        bias=bool(config.bias),
        norm=str(config.norm),
        activation=config.activation,
        dropout=config.dropout,
        attention_dropout=config.attention_dropout,
        activation_dropout=config.activation_dropout,
        dtype=config.dtype,
        norm_position=config.norm_position,
        modern=config.modern,
    )
    if letter == _main(config):
        return main
    if letter == "L":
        norm = "rms" if config.modern else "affine"
        return dataclasses.replace(main, kind="trained", bias=not config.modern, norm=norm)
    reservoirs = config.reservoirs
    return dataclasses.replace(
        main,
        kind="fixed",
        bias=False,
        norm="rms_plain" if config.modern else "plain",
        block=reservoirs.block,
        convolution=reservoirs.convolution,
        width=reservoirs.width,
        both_ways=reservoirs.sees_both_ways(stack),
    )

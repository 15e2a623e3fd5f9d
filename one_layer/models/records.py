"""Parts of a model's settings: small records that check their own values. `ModelConfig` makes them from its flat keys.

Errors name the keys as users type them: `model.keep`, `model.embedding`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from one_layer.initializers import SCHEMES
from one_layer.layers.reservoirs import BLOCKS
from one_layer.supermask import SELECTIONS, Supermask
from one_layer.system.errors import UserError


def one_of(key: str, value: Any, known: Sequence[str]) -> None:
    """Raises: UserError, which lists the known values, for an unknown value."""
    if value not in known:
        raise UserError(f"model.{key} is {value!r:.200}; known are {', '.join(known)}")


def at_least(key: str, value: float, least: float) -> None:
    """Raises: UserError for a smaller value."""
    if value < least:
        raise UserError(f"model.{key} is {value}; it must be at least {least}")


def at_most(key: str, value: float, most: float) -> None:
    """Raises: UserError for a larger value."""
    if value > most:
        raise UserError(f"model.{key} is {value}; it must be at most {most}")


@dataclass(frozen=True)
class Masks:
    """How scores are initialised and how they become masks (see `one_layer.supermask.Supermask`).

    `score_init`: `uniform` is U(±1/√fan_in); `constant` is `score_constant` everywhere, so that all entries tie; `constant_noisy`
    adds noise N(0, 1e-4) to it.
    """

    keep: float
    selection: str
    threshold: float
    dynamic_scale: bool
    score_init: str
    score_constant: float

    def __post_init__(self) -> None:
        one_of("selection", self.selection, SELECTIONS)
        one_of("score_init", self.score_init, ("uniform", "constant", "constant_noisy"))
        if not 0.0 < self.keep <= 1.0:
            raise UserError(
                f"model.keep is {self.keep}; it must lie in (0, 1], as the fraction of the weights that masks keep"
            )
        if (self.selection, self.score_init, self.score_constant) == ("magnitude", "constant", 0.0):
            raise UserError(
                "model.score_init=constant with model.score_constant=0 never trains with model.selection=magnitude: the gradient of a "
                "score is that of its magnitude, which is 0 at 0; give another constant"
            )
        if self.selection == "sigmoid_threshold" and not 0.0 < self.threshold < 1.0:
            raise UserError(
                f"model.threshold is {self.threshold}; it is compared with a sigmoid, so it must lie in (0, 1), for instance 0.5"
            )
        if self.selection == "sign" and not (self.keep == 1.0 and not self.dynamic_scale):
            raise UserError(
                f"model.selection='sign' drops no weight: give model.keep=1 (it is {self.keep}), and no model.dynamic_scale"
            )
        if self.selection == "signed_threshold" and not (self.threshold >= 0.0 and not self.dynamic_scale):
            raise UserError(
                f"model.selection='signed_threshold' needs a model.threshold of at least 0 (it is {self.threshold}) and no "
                "model.dynamic_scale, which counts ones"
            )

    @property
    def supermask(self) -> Supermask:
        """The function from scores to a mask."""
        return Supermask(self.keep, self.selection, self.threshold, self.dynamic_scale)


@dataclass(frozen=True)
class Initialization:
    """How random weights are drawn; docs/paper-and-code.md compares the presets."""

    preset: str
    scheme: str
    attention: str
    embedding: str
    scale_by_keep: bool
    zero_pad_row: bool
    qk_gain: float

    def __post_init__(self) -> None:
        one_of("init_preset", self.preset, ("paper", "reference", "corrected"))
        one_of("init_scheme", self.scheme, SCHEMES)
        one_of("init_attention", self.attention, ("scheme", "xavier"))
        if self.embedding:
            one_of("init_embedding", self.embedding, SCHEMES)
        if not self.qk_gain > 0.0:
            raise UserError(f"model.init_qk_gain is {self.qk_gain}; it must be above 0 (1 changes nothing)")


@dataclass(frozen=True)
class Embeddings:
    """The kind of the embedding tables, and where their values come from."""

    kind: str
    source: str
    path: str
    vocabulary: str
    positions: str
    max_positions: int

    def __post_init__(self) -> None:
        one_of("embedding", self.kind, ("masked", "frozen", "trained"))
        one_of("embedding_source", self.source, ("text", "run", "fairseq", "roberta"))
        one_of("positions", self.positions, ("sinusoidal", "learned", "frozen"))
        at_least("max_positions", self.max_positions, 1)
        if self.path and self.kind == "trained":
            raise UserError(
                f"model.embedding_path is {self.path!r:.200}, but model.embedding is 'trained'; pre-trained tables stay fixed: give "
                "frozen or masked"
            )
        if self.source != "text" and not self.path:
            raise UserError(
                f"model.embedding_source is {self.source!r:.200}, but model.embedding_path is empty; give the file or folder, or leave "
                "model.embedding_source out"
            )
        if self.positions == "frozen" and self.source != "roberta":
            raise UserError(
                f"model.positions is 'frozen', which needs model.embedding_source=roberta (it is {self.source!r:.200}); give that and its "
                "model.embedding_path, or learned or sinusoidal positions"
            )
        if self.vocabulary and self.source not in ("fairseq", "roberta"):
            raise UserError(
                f"model.embedding_vocabulary is {self.vocabulary!r:.200}, but with model.embedding_source={self.source} the tokens are "
                "stored with the vectors; leave it out, or give model.embedding_source=fairseq or roberta"
            )


@dataclass(frozen=True)
class Reservoirs:
    """What a reservoir is made of, and what training may leave out (see `one_layer.layers.reservoirs` and `.mixed`).

    `direction` says what a `gru` or `conv` sees: `both` sides, the `past` alone, or `auto`: both in encoders, the past in decoders.
    """

    block: str
    convolution: str
    width: int
    direction: str
    layerdrop: float
    backskip: str

    def __post_init__(self) -> None:
        one_of("reservoir", self.block, BLOCKS)
        one_of("reservoir_direction", self.direction, ("auto", "both", "past"))
        one_of("reservoir_conv", self.convolution, ("lightweight", "dynamic"))
        if not 1 <= self.width < 2**10:
            raise UserError(f"model.reservoir_width is {self.width}; it must be a number of positions from 1 to 1023")
        if not 0.0 <= self.layerdrop < 1.0:
            raise UserError(
                f"model.layerdrop is {self.layerdrop}; it must lie in [0, 1), as the probability that a layer is left out"
            )
        if self.backskip not in ("off", "identity", "policy"):
            raise UserError(f"train.backskip is {self.backskip!r:.200}; known are off, identity and policy")

    def sees_both_ways(self, stack: str) -> bool:
        """Whether reservoirs of the stack `encoder` or `decoder` see later positions. Raises: UserError if a decoder's would."""
        if stack == "decoder" and self.direction == "both":
            raise UserError(
                "model.reservoir_direction is 'both', but model.decoder_layers has a reservoir, and a decoder must not see later tokens; "
                "give auto or past"
            )
        return stack == "encoder" and self.direction != "past"

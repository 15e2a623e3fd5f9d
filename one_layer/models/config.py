"""The settings of a model: one frozen record of flat keys, resolved once. Model code never sees a ConfigDict."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property

from one_layer.data.special_tokens import PAD, UNK
from one_layer.layers.blocks import LayerSettings
from one_layer.layers.freezing import Freezing
from one_layer.layers.groups import StackSettings
from one_layer.models.families import Family, default_family, family_named
from one_layer.models.layers import Layers
from one_layer.models.records import Embeddings, Initialization, Masks, Reservoirs, at_least, at_most, one_of
from one_layer.supermask import Supermask
from one_layer.system.errors import UserError

# What the layers of a stack may share, for each value of `weights`; the first is the default.
_SHARING = {"dense": ("none",), "one_layer": ("weights",), "multi_layer": ("none", "masks")}
_DEEPEST = 2**12  # layers in a stack


@dataclass(frozen=True)
class ModelConfig:
    """The settings of a network (paper A, section 4; arXiv 2012.15045). configs/common.py comments on every key.

    The record is flat because users type these keys. Smaller records are made from it and check their own values: `masks`,
    `initialization`, `embeddings`, `reservoirs`, `layers` and the `stack`s. `encoder_layers` and `decoder_layers` are numbers or layer
    strings (see `one_layer.layers.pattern`). `family` (see `one_layer.models.families`) says which network this is. By
    default it is a translation model, or a classifier if `decoder_layers` is 0. A classifier's `target_vocab` counts the four special
    types and the labels.

    Fields that are None follow from `weights` and `init_preset`. A dense model has trained embeddings, biases and affine LayerNorm.
    A masked model has masked embeddings, no biases and plain LayerNorm. The presets differ in `init_attention`, `scale_by_keep`,
    `zero_pad_row` and `share_norm_scale`: `paper` follows the text of paper A, `reference` follows its code, and `corrected` equals
    `paper`, for models that go beyond it. `init_qk_gain` multiplies query and key matrices (Otsuka et al. 2025, arXiv 2511.04217).
    `init_embedding` can give random tables another scheme than `init_scheme`.

    Raises: UserError for an invalid value; it names the key as `model.KEY`.
    """

    source_vocab: int
    target_vocab: int
    d_model: int = 512
    ffn: int = 1024
    heads: int = 4
    encoder_layers: int | str = 6
    decoder_layers: int | str = 6
    weights: str = "one_layer"
    sharing: str | None = None
    selection: str = "magnitude"
    keep: float = 0.5
    threshold: float = 0.0
    dynamic_scale: bool = False
    score_init: str = "uniform"
    score_constant: float = 0.5
    embedding: str | None = None
    embedding_source: str = "text"
    embedding_path: str = ""
    embedding_vocabulary: str = ""
    shared_embedding: bool = False
    positions: str = "sinusoidal"
    max_positions: int = 512
    embedding_norm: bool = False
    activation: str = "relu"
    norm: str | None = None
    bias: bool | None = None
    share_bias: bool = False
    share_norm_scale: bool | None = None
    norm_position: str = "post"
    reservoir: str = "transformer"
    reservoir_conv: str = "dynamic"
    reservoir_width: int = 7
    reservoir_direction: str = "auto"
    layerdrop: float = 0.0
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    head_dropout: float = 0.0
    dtype: str = "float32"
    remat: bool = False
    init_preset: str = "paper"
    init_scheme: str = "kaiming_uniform"
    init_attention: str | None = None
    init_embedding: str = ""
    scale_by_keep: bool | None = None
    zero_pad_row: bool | None = None
    init_qk_gain: float | None = None
    block: str = "paper"
    family: str | None = None
    backskip: str = "off"
    train_only: str = ""
    freeze: str = ""

    def __post_init__(self) -> None:
        followed = {name: value for name, value in self._follows().items() if getattr(self, name) is None}
        for name, value in followed.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_followed", frozenset(followed))
        self._check()

    def _follows(self) -> dict[str, object]:
        """The values of fields that were not given; they follow from `weights`, `init_preset` and `decoder_layers`."""
        dense, reference = self.weights == "dense", self.init_preset == "reference"
        return {
            "sharing": _SHARING.get(self.weights, ("none",))[0],
            "embedding": "trained" if dense else "masked",
            "norm": ("rms" if dense else "rms_plain") if self.modern else ("affine" if dense else "plain"),
            "bias": dense and not self.modern,
            "share_norm_scale": reference and self.weights == "one_layer",
            "init_attention": "xavier" if reference else "scheme",
            "scale_by_keep": not (reference or self.dynamic_scale),  # each makes up for what masks leave out
            "zero_pad_row": reference,
            "init_qk_gain": 1.0,
            "family": default_family(self.decoder_layers),
        }

    def _check(self) -> None:
        one_of("weights", self.weights, tuple(_SHARING))
        one_of("norm_position", self.norm_position, ("post", "pre"))
        one_of("block", self.block, ("paper", "modern"))
        self._check_modern()
        if not 0.0 <= self.head_dropout < 1.0:
            raise UserError(f"model.head_dropout is {self.head_dropout}; it must lie in [0, 1)")
        for stack in ("encoder", "decoder"):  # the family says which it needs
            if isinstance(number := getattr(self, f"{stack}_layers"), int):
                at_least(f"{stack}_layers", number, 0)
                at_most(f"{stack}_layers", number, _DEEPEST)
        for name in ("source_vocab", "target_vocab"):
            if getattr(self, name) <= UNK:
                raise UserError(
                    f"model.{name} is {getattr(self, name)}; it must be at least 4, for the four special tokens"
                )
        if self.sharing not in _SHARING[self.weights]:
            raise UserError(
                f"model.sharing is {self.sharing!r:.200}, which does not fit model.weights={self.weights}; give "
                f"{' or '.join(_SHARING[self.weights])}"
            )
        if self.weights == "dense" and self.embedding == "masked":
            raise UserError(
                "model.embedding is 'masked' in a dense model; use 'trained' or 'frozen', or mask the layers too"
            )
        _ = self.masks, self.initialization, self.embeddings, self.reservoirs, self.layers  # each checks itself
        for stack, string in self.layers.strings.items():
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
    def modern(self) -> bool:
        """Whether layers have rotary positions and SwiGLU, and by default RMSNorm and no biases."""
        return self.block == "modern"

    @property
    def position_rows(self) -> int:
        """The rows of the position table, as in RoBERTa: a pad has its own id as position, the first token pad + 1. Without a table 0."""
        return 0 if self.positions == "sinusoidal" else self.max_positions + PAD + 1

    @property
    def network_family(self) -> Family:
        """The family with the name `family`. Raises: UserError for an unknown name."""
        return family_named(str(self.family))

    @cached_property
    def masks(self) -> Masks:
        """How scores are initialised and become masks."""
        return Masks(
            self.keep, self.selection, self.threshold, self.dynamic_scale, self.score_init, self.score_constant
        )

    @cached_property
    def initialization(self) -> Initialization:
        """How random weights are drawn."""
        return Initialization(
            self.init_preset,
            self.init_scheme,
            str(self.init_attention),
            self.init_embedding,
            bool(self.scale_by_keep),
            bool(self.zero_pad_row),
            float(self.init_qk_gain or 0.0),
        )

    @cached_property
    def embeddings(self) -> Embeddings:
        """The kind of the embedding tables, and where their values come from."""
        return Embeddings(
            str(self.embedding),
            self.embedding_source,
            self.embedding_path,
            self.embedding_vocabulary,
            self.positions,
            self.max_positions,
        )

    @cached_property
    def reservoirs(self) -> Reservoirs:
        """What reservoirs are, and how layers are left out in training."""
        return Reservoirs(
            self.reservoir,
            self.reservoir_conv,
            self.reservoir_width,
            self.reservoir_direction,
            self.layerdrop,
            self.backskip,
        )

    @property
    def freezing(self) -> Freezing:
        """Which parts are trained."""
        return Freezing(self.train_only, self.freeze)

    @cached_property
    def layers(self) -> Layers:
        """The kinds of layers, and their order in each stack."""
        return Layers.of(self)

    @property
    def layer(self) -> LayerSettings:
        """One layer of the kind that a number of layers stands for."""
        return self.layers.main

    def stack(self, name: str) -> StackSettings:
        """The stack `encoder` or `decoder`."""
        return self.layers.stack(name)

    def depth(self, name: str) -> int:
        """The number of layers of the stack `encoder` or `decoder`."""
        return len(self.layers.patterns[name])

    @property
    def masked(self) -> bool:
        """Whether the layers' matrices are random under trained masks. At keep 1 they are random and have no masks."""
        return self.weights != "dense"

    @property
    def supermask(self) -> Supermask:
        """How the scores of every matrix become its mask."""
        return self.masks.supermask

    def replace(self, **changes: object) -> ModelConfig:
        """A copy with other values. Fields that were not given follow from the new values."""
        followed: frozenset[str] = getattr(self, "_followed")  # noqa: B009  # not a field, so that comparisons ignore it
        return dataclasses.replace(self, **{**dict.fromkeys(followed), **changes})  # type: ignore[arg-type]

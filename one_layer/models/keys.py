"""The keys of a model's settings: one frozen record, and what follows from it without knowing any network."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property

from one_layer.data.special_tokens import PAD
from one_layer.layers.beside import ADAPTERS, GAINS
from one_layer.layers.freezing import STACKS, Freezing
from one_layer.layers.pattern import expand
from one_layer.layers.quantization import Precisions
from one_layer.layers.settings import ROTARY_BASE
from one_layer.supermask import Supermask

# What the layers of a stack may share, for each value of `weights`; the first is the default.
SHARING = {"dense": ("none",), "one_layer": ("weights",), "multi_layer": ("none", "masks")}
PARTS = ("attention", "ffn", "embedding")  # of a network, which may have a keep of their own: `keep_attention`
MASKS = (
    "keep",
    *(f"keep_{part}" for part in PARTS),
    "pruned",
    "locked",
    "coats",
    "selection",
    "threshold",
    "dynamic_scale",
    "score_init",
    "score_constant",
    "gains",
    "adapter_rank",
)  # of masked models alone


def default_family(decoder_layers: int | str) -> str:
    """The family of a model whose config names none: a classifier if it has no decoder layers, else a translation model."""
    return "translation" if decoder_layers else "classifier"


@dataclass(frozen=True)
class ModelKeys:
    """The keys of a model's settings (paper A, section 4; arXiv 2012.15045), and what follows from them; see configs/common.py.

    The record is flat because users type these keys. `one_layer.models.checks` checks their values for `ModelConfig`, the class that all
    other modules use. `encoder_layers` and `decoder_layers` are numbers or layer strings (see `one_layer.layers.pattern`). `family` says
    which network this is (see `one_layer.models.families`): by default a translation model, or a classifier if `decoder_layers` is 0. A
    classifier's `target_vocab` counts the four special types and the labels.

    Fields that are None follow from `weights` and `init_preset`. A dense model has trained embeddings, biases and affine LayerNorm.
    A masked model has masked embeddings, no biases and plain LayerNorm. The presets differ in `init_attention`, `scale_by_keep`,
    `zero_pad_row` and `share_norm_scale`: `paper` follows the text of paper A, `reference` follows its code, and `corrected` is an
    earlier name of `paper`. `init_qk_gain` multiplies query and key matrices (Otsuka et al. 2025, arXiv 2511.04217).
    `init_embedding` can give random tables another scheme than `init_scheme`.

    `keep_attention`, `keep_ffn` and `keep_embedding` are the keep of these matrices; None: `keep`. The seed drops the share `pruned` of the
    weights of every masked matrix for ever, and keeps the share `locked` (Otsuka et al. 2024, arXiv 2402.14029). `coats` nested masks
    add up to one of whole numbers (Okoshi et al., ICML 2022).

    `score_init`: `uniform` is U(±1/√fan_in); `constant` is `score_constant` everywhere, so that all entries tie; `constant_noisy` adds
    noise N(0, 1e-4) to it. `reservoir_direction` says what a `gru` or `conv` sees: `both` sides, the `past` alone, or `auto`: both in
    encoders, the past in decoders.
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
    keep_attention: float | None = None
    keep_ffn: float | None = None
    keep_embedding: float | None = None
    pruned: float = 0.0
    locked: float = 0.0
    coats: int = 1
    threshold: float = 0.0
    dynamic_scale: bool = False
    score_init: str = "uniform"
    score_constant: float = 0.5
    gains: str = "none"
    adapter_rank: int = 0
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
    norm_epsilon: float = 1e-5
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
    trained_precision: str = "float32"
    vector_precision: str = "float32"
    remat: bool = False
    init_preset: str = "paper"
    init_scheme: str = "kaiming_uniform"
    init_attention: str | None = None
    init_embedding: str = ""
    scale_by_keep: bool | None = None
    zero_pad_row: bool | None = None
    init_qk_gain: float | None = None
    block: str = "paper"
    rotary_base: float = ROTARY_BASE
    family: str | None = None
    backskip: str = "off"
    train_only: str = ""
    freeze: str = ""

    def __post_init__(self) -> None:
        followed = {name: value for name, value in self._follows().items() if getattr(self, name) is None}
        for name, value in followed.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_followed", frozenset(followed))

    def _follows(self) -> dict[str, object]:
        """The values of fields that were not given; they follow from `weights`, `init_preset` and `decoder_layers`."""
        dense, reference = self.weights == "dense", self.init_preset == "reference"
        return {
            "sharing": SHARING.get(self.weights, ("none",))[0],
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

    @property
    def modern(self) -> bool:
        """Whether layers have rotary positions and SwiGLU, and by default RMSNorm and no biases."""
        return self.block == "modern"

    @property
    def position_rows(self) -> int:
        """The rows of the position table, as in RoBERTa: a pad has its own id as position, the first token pad + 1. Without a table 0."""
        return 0 if self.positions == "sinusoidal" else self.max_positions + PAD + 1

    @property
    def table_kind(self) -> str:
        """The kind of the embedding tables, in the terms of `one_layer.layers.matrix.matrix`."""
        return "fixed" if self.embedding == "frozen" else str(self.embedding)

    @property
    def precisions(self) -> Precisions:
        """In which precisions training and tickets see the trained and fixed arrays."""
        return Precisions(self.trained_precision, self.vector_precision)

    @property
    def freezing(self) -> Freezing:
        """Which parts are trained."""
        return Freezing(self.train_only, self.freeze)

    @property
    def main_letter(self) -> str:
        """The letter that a number of layers stands for (see `one_layer.layers.pattern`)."""
        return "S" if self.masked else "L"

    @cached_property
    def strings(self) -> dict[str, str]:
        """The letters of the layers of each stack, those that are left out included. Raises: UserError, which names the key, for others."""
        return {
            stack: expand(f"{stack}_layers", getattr(self, f"{stack}_layers"), self.main_letter) for stack in STACKS
        }

    def pattern(self, stack: str) -> str:
        """The letters of the layers of a stack, without those that are left out."""
        return "".join(filter(str.isupper, self.strings[stack]))

    def depth(self, stack: str) -> int:
        """The number of layers of the stack `encoder` or `decoder`."""
        return len(self.pattern(stack))

    @property
    def masked(self) -> bool:
        """Whether the layers' matrices are random under trained masks. At keep 1 they are random and have no masks."""
        return self.weights != "dense"

    @property
    def beside(self) -> tuple[str, ...]:
        """The arrays that are trained beside the masks of layers (`one_layer.layers.beside`)."""
        return (*GAINS[self.gains], *ADAPTERS[: 2 * bool(self.adapter_rank)])

    @cached_property
    def supermask(self) -> Supermask:
        """How the scores of every matrix become its mask."""
        parts = tuple((part, keep) for part in PARTS if (keep := getattr(self, f"keep_{part}")) is not None)
        settled = (self.pruned, self.locked) if self.masked else (0.0, 0.0)
        return Supermask(self.keep, self.selection, self.threshold, self.dynamic_scale, parts, *settled, self.coats)


# Keys that the sections `train` and `optim` give, and all that users do not give in the section `model`: text and task decide the others.
FOR_TRAINING = ("backskip", "train_only", "freeze")
DECIDED = ("source_vocab", "target_vocab", "family", *FOR_TRAINING)
MODEL_KEYS = tuple(each.name for each in dataclasses.fields(ModelKeys) if each.name not in DECIDED)

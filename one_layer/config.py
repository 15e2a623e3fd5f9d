"""What a model is: one frozen record, resolved once; no model code ever sees a ConfigDict."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from one_layer.errors import UserError
from one_layer.initializers import SCHEMES

PAD, BOS, EOS, UNK = 1, 0, 2, 3

_CHOICES = {
    "weights": ("dense", "one_layer", "multi_layer"),
    "embedding": ("masked", "frozen", "trained"),
    "norm": ("plain", "affine"),
    "dtype": ("float32", "bfloat16"),
    "init_preset": ("paper", "reference"),
    "init_scheme": SCHEMES,
}


@dataclass(frozen=True)
class ModelConfig:
    """An encoder-decoder Transformer for translation (post-LN, ReLU, sinusoidal positions; paper A, section 4).

    `weights`: `dense` (fully weighted), `one_layer` (one random layer a stack, L masks) or `multi_layer` (L random layers,
    L masks). `keep`: the fraction of the random weights that every mask keeps, in (0, 1]; 1 means no masks.
    `embedding`: `masked`, `frozen` (random and fixed) or `trained`. Fields that are None follow from `weights`: a dense model
    has trained embeddings, biases and affine LayerNorm, a masked one masked embeddings and neither of the others.
    `shared_embedding`: one table for source, target and output projection (a joined vocabulary).
    `init_preset`: `paper` draws every matrix by `init_scheme`, its deviation multiplied by √(1/keep) if `scale_by_keep`;
    `reference` does what the paper's own code does (see `one_layer.models.weights`).

    Raises: UserError for a value that no model has.
    """

    source_vocab: int
    target_vocab: int
    d_model: int = 512
    ffn: int = 1024
    heads: int = 4
    encoder_layers: int = 6
    decoder_layers: int = 6
    weights: str = "one_layer"
    keep: float = 0.5
    embedding: str | None = None
    shared_embedding: bool = False
    norm: str | None = None
    bias: bool | None = None
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    dtype: str = "float32"
    remat: bool = False
    init_preset: str = "paper"
    init_scheme: str = "kaiming_uniform"
    scale_by_keep: bool = True

    def __post_init__(self) -> None:
        dense = self.weights == "dense"
        for name, value in (
            ("embedding", "trained" if dense else "masked"),
            ("norm", "affine" if dense else "plain"),
            ("bias", dense),
        ):
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise UserError(f"model.{name} is {getattr(self, name)!r}; known are {', '.join(known)}")
        for name in ("d_model", "ffn", "heads", "encoder_layers", "decoder_layers"):
            if getattr(self, name) < 1:
                raise UserError(f"model.{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("source_vocab", "target_vocab"):
            if getattr(self, name) <= UNK:
                raise UserError(f"model.{name} is {getattr(self, name)}; the four special tokens alone take 4")
        for name in ("dropout", "attention_dropout", "activation_dropout"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise UserError(f"model.{name} is {getattr(self, name)}; it must lie in [0, 1)")
        if not 0.0 < self.keep <= 1.0:
            raise UserError(
                f"model.keep is {self.keep}; it must lie in (0, 1]: the fraction of the weights that masks keep"
            )
        if self.d_model % self.heads:
            raise UserError(f"model.heads is {self.heads}, which does not divide model.d_model {self.d_model}")
        if self.d_model % 2 or self.d_model < 4:
            raise UserError(f"model.d_model is {self.d_model}; sinusoidal positions need an even width of at least 4")
        if self.weights == "dense" and self.embedding == "masked":
            raise UserError(
                "model.embedding is 'masked' in a dense model; use 'trained' or 'frozen', or mask the layers too"
            )
        if self.shared_embedding and self.source_vocab != self.target_vocab:
            raise UserError(
                f"model.shared_embedding needs one vocabulary, but the source has {self.source_vocab} types and the target "
                f"{self.target_vocab}; set data.joined_vocabulary or turn model.shared_embedding off"
            )

    @property
    def masked(self) -> bool:
        """Whether the layers' matrices are random with trained masks; at keep 1 they are random and nothing is trained."""
        return self.weights != "dense"

    def replace(self, **changes: object) -> ModelConfig:
        """A copy with other values. What followed from `weights` stays as it is, unless given anew (None: follow again)."""
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]

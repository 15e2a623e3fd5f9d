"""What a model is: one frozen record, resolved once; no model code ever sees a ConfigDict."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from one_layer.errors import UserError
from one_layer.initializers import SCHEMES
from one_layer.supermask import SELECTIONS, Supermask

PAD, BOS, EOS, UNK = 1, 0, 2, 3

_CHOICES = {
    "weights": ("dense", "one_layer", "multi_layer"),
    "embedding": ("masked", "frozen", "trained"),
    "embedding_source": ("text", "run", "fairseq", "roberta"),
    "sharing": ("weights", "masks", "none"),
    "selection": SELECTIONS,
    "score_init": ("uniform", "constant", "constant_noisy"),
    "norm": ("plain", "affine", "frozen"),
    "positions": ("sinusoidal", "frozen"),
    "activation": ("relu", "gelu"),
    "dtype": ("float32", "bfloat16"),
    "init_preset": ("paper", "reference", "corrected"),
    "init_scheme": SCHEMES,
    "init_attention": ("scheme", "xavier"),
}
# What layers may share, by what the weights are.
_SHARING = {"dense": ("none",), "one_layer": ("weights",), "multi_layer": ("none", "masks")}


@dataclass(frozen=True)
class ModelConfig:
    """An encoder-decoder Transformer for translation, or an encoder that classifies texts (post-LN; paper A, section 4).

    `decoder_layers` 0 makes a classifier: its target types are the labels, after the four special ones that every vocabulary has,
    and it gives logits of the labels alone, by a trained head. `positions`: `sinusoidal`, or, in a classifier, `frozen`: a fixed
    table of `max_positions`, to which embeddings are added as they are, not scaled by √d. `embedding_norm`: LayerNorm of the sum,
    in a classifier (both as RoBERTa has it; Liu et al. 2019, arXiv 1907.11692). `activation` of feed-forward networks: relu or gelu,
    the exact one, by the error function.
    `weights`: `dense` (fully weighted), `one_layer` (one random layer a stack, L masks) or `multi_layer` (L random layers).
    `sharing`, among the layers of a stack: `weights` (one_layer), `none`, or `masks` (L random layers under one mask).
    `selection`, `keep`, `threshold`, `dynamic_scale`: how scores become masks, see `one_layer.supermask.Supermask`; a keep of 1
    means no masks. `score_init`: U(±1/√fan_in), `constant` (`score_constant`, all tied) or `constant_noisy` (plus N(0, 1e-4)).
    `embedding`: `masked`, `frozen` (fixed) or `trained`; its values are random, or from `embedding_path` (fixed, so `masked` or
    `frozen`), which is what `embedding_source` says: `text`, the folder of a `run`, a `fairseq` checkpoint or a `roberta`, the
    last two with the tokens in the file `embedding_vocabulary`; only `one_layer.importers.embeddings` reads these paths.
    `shared_embedding`: one table for source, target and output projection (a joined vocabulary).
    `norm`: LayerNorm `plain`, `affine` (trained scale and shift) or `frozen` (affine, fixed). `share_bias`: biases, shifts of
    norms among them, are the same in all layers; `share_norm_scale`: so are the norms' scales.
    Fields that are None follow from `weights`: a dense model has trained embeddings, biases and affine LayerNorm, a masked one
    masked embeddings and neither of the others.

    `init_preset` decides these, where they are None (facts about the reference: the paper's own code):
    `init_attention`: attention matrices by `init_scheme` as all others are (`scheme`), or Xavier uniform, with gain 1/√2 for query,
    key and value (`xavier`: reference). `scale_by_keep`: deviations times √(1/keep) (not in reference). `zero_pad_row`: tables
    start with a row of zeros at pad (reference). `share_norm_scale` (reference, where weights are shared: its sharing goes by the
    name "weight"). `init_qk_gain` multiplies query and key matrices (1; Otsuka et al. 2025, arXiv 2511.04217, find about n^¼ best).
    `paper` is paper A's text, `reference` its code; `corrected` is the text's initialisation, with √(1/keep) at every keep, for
    models that go beyond the paper.

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
    dropout: float = 0.0
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    dtype: str = "float32"
    remat: bool = False
    init_preset: str = "paper"
    init_scheme: str = "kaiming_uniform"
    init_attention: str | None = None
    scale_by_keep: bool | None = None
    zero_pad_row: bool | None = None
    init_qk_gain: float | None = None

    def __post_init__(self) -> None:
        for name, value in self._follows().items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        self._check()
        self._check_together()

    def _follows(self) -> dict[str, object]:
        """What the fields are that nobody gave, from `weights` and `init_preset`."""
        dense, reference = self.weights == "dense", self.init_preset == "reference"
        return {
            "sharing": _SHARING.get(self.weights, ("none",))[0],
            "embedding": "trained" if dense else "masked",
            "norm": "affine" if dense else "plain",
            "bias": dense,
            "share_norm_scale": reference and self.weights == "one_layer",
            "init_attention": "xavier" if reference else "scheme",
            "scale_by_keep": not reference,
            "zero_pad_row": reference,
            "init_qk_gain": 1.0,
        }

    def _check(self) -> None:
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise UserError(f"model.{name} is {getattr(self, name)!r}; known are {', '.join(known)}")
        for name in ("d_model", "ffn", "heads", "encoder_layers", "max_positions"):
            if getattr(self, name) < 1:
                raise UserError(f"model.{name} is {getattr(self, name)}; it must be at least 1")
        if self.decoder_layers < 0:
            raise UserError(
                f"model.decoder_layers is {self.decoder_layers}; it must be at least 1, or 0 for a classifier"
            )
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
        if not (self.init_qk_gain or 0.0) > 0.0:
            raise UserError(f"model.init_qk_gain is {self.init_qk_gain}; it must be above 0, and 1 changes nothing")

    def _check_together(self) -> None:
        if not self.classifies and (self.positions != "sinusoidal" or self.embedding_norm):
            raise UserError(
                f"model.positions={self.positions} and model.embedding_norm={self.embedding_norm}, but model.decoder_layers is "
                f"{self.decoder_layers}: a translation model has sinusoidal positions and no norm of embeddings"
            )
        if self.classifies and self.labels < 2:
            raise UserError(
                f"model.target_vocab is {self.target_vocab}, of a classifier the four special types and its labels; these must be at "
                "least 2"
            )
        if self.classifies and self.shared_embedding:
            raise UserError(
                "model.shared_embedding is True, but a classifier (model.decoder_layers=0) has one table alone"
            )
        if self.sharing not in _SHARING[self.weights]:
            raise UserError(
                f"model.sharing is {self.sharing!r}, which model.weights={self.weights} cannot be: with it goes "
                f"{' or '.join(_SHARING[self.weights])}"
            )
        if self.selection == "sigmoid_threshold" and not 0.0 < self.threshold < 1.0:
            raise UserError(
                f"model.threshold is {self.threshold}; a sigmoid is compared with it, so it must lie in (0, 1), as 0.5 does"
            )
        if self.selection == "signed_threshold" and not (self.threshold >= 0.0 and not self.dynamic_scale):
            raise UserError(
                f"model.selection='signed_threshold' needs a model.threshold of at least 0 (it is {self.threshold}) and no "
                "model.dynamic_scale, which counts ones"
            )
        self._check_embedding()
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

    def _check_embedding(self) -> None:
        if self.embedding_path and self.embedding == "trained":
            raise UserError(
                f"model.embedding_path is {self.embedding_path!r}, but model.embedding is 'trained'; such tables stay fixed: "
                "give frozen or masked"
            )
        if self.embedding_source != "text" and not self.embedding_path:
            raise UserError(
                f"model.embedding_source is {self.embedding_source!r}, but model.embedding_path is empty; give the file or folder, or "
                "leave out the source"
            )
        if self.positions == "frozen" and self.embedding_source != "roberta":
            raise UserError(
                f"model.positions is 'frozen', which come from model.embedding_source=roberta (it is {self.embedding_source!r}); give "
                "that and its model.embedding_path, or sinusoidal positions"
            )
        if self.embedding_vocabulary and self.embedding_source not in ("fairseq", "roberta"):
            raise UserError(
                f"model.embedding_vocabulary is {self.embedding_vocabulary!r}, but with model.embedding_source="
                f"{self.embedding_source} the tokens stand beside the vectors; leave it out, or give fairseq or roberta"
            )

    @property
    def masked(self) -> bool:
        """Whether the layers' matrices are random with trained masks; at keep 1 they are random and nothing is trained."""
        return self.weights != "dense"

    @property
    def classifies(self) -> bool:
        """Whether this is an encoder with a head, and no decoder."""
        return self.decoder_layers == 0

    @property
    def labels(self) -> int:
        """The number of a classifier's labels."""
        return self.target_vocab - UNK - 1

    @property
    def shares_params(self) -> bool:
        """Whether some of what is trained in the layers is the same in all of them."""
        return self.sharing == "masks" or self.share_bias or bool(self.share_norm_scale)

    @property
    def supermask(self) -> Supermask:
        """How the scores of every matrix become its mask."""
        return Supermask(self.keep, self.selection, self.threshold, self.dynamic_scale)

    def replace(self, **changes: object) -> ModelConfig:
        """A copy with other values; those that followed from `weights` or `init_preset` follow from the new ones."""
        followed = {name: None for name, value in self._follows().items() if getattr(self, name) == value}
        return dataclasses.replace(self, **{**followed, **changes})  # type: ignore[arg-type]

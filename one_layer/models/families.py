"""The families of networks: translation models, classifiers, decoders alone, and masked language models.

A family says which stacks, tables and heads a network has; `one_layer.models.networks` says which Flax module computes it. Recipes,
tickets, counts and importers read families, so a new one (for instance an encoder with another head) needs no change in them.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from one_layer.data.special_tokens import UNK
from one_layer.layers.freezing import STACKS
from one_layer.models.keys import ModelKeys
from one_layer.system.errors import UserError


class Table(NamedTuple):
    """An embedding table: the name of its module, its role (see `initializers.Recipe`), its rows, and the sides that read it."""

    name: str
    role: str
    rows: int
    sides: tuple[str, ...]


class Head(NamedTuple):
    """A trained matrix, with a bias, after the last layer: the name of its module, its role and its shape [fan_in, fan_out].

    `tied`: the matrix is the embedding, so only the bias is the head's own. `norm`: a trained LayerNorm follows, in the module
    `NAME_norm`.
    """

    name: str
    role: str
    shape: tuple[int, int]
    tied: bool = False
    norm: bool = False


class Family(ABC):
    """One kind of network: which of `encoder` and `decoder` it has (`stacks`), its embeddings, and its trained heads."""

    stacks: ClassVar[tuple[str, ...]]
    what: ClassVar[str]  # its name in a sentence

    def tables(self, config: ModelKeys) -> Sequence[Table]:
        """The embeddings; by default one of the source, or of the target where there is no encoder."""
        if "encoder" in self.stacks:
            return (Table("source_embedding", "encoder/embedding", config.source_vocab, ("source",)),)
        return (Table("target_embedding", "decoder/embedding", config.target_vocab, ("target",)),)

    def table_of(self, config: ModelKeys, side: str) -> Table:
        """The embedding that the side `source` or `target` reads."""
        return next(table for table in self.tables(config) if side in table.sides)

    def heads(self, config: ModelKeys) -> Sequence[Head]:
        """The trained heads; by default none."""
        return ()

    def check(self, config: ModelKeys) -> None:
        """Raises: UserError for a config that does not fit the family; here, for the depths of its stacks and the tables."""
        for stack in STACKS:
            given = f"model.{stack}_layers is {getattr(config, f'{stack}_layers')}; {self.what}"
            if stack in self.stacks and not config.depth(stack):
                raise UserError(f"{given} needs at least 1")
            if stack not in self.stacks and config.depth(stack):
                raise UserError(f"{given} has no {stack}: give 0")
        if config.shared_embedding and len(self.stacks) == 1:
            raise UserError(f"model.shared_embedding is True, but {self.what} has only one table: leave it out")

    @abstractmethod
    def describe(self, config: ModelKeys) -> str:
        """A phrase for people."""

    def attentions(self, stack: str) -> tuple[str, ...]:
        """The attentions of a layer of `stack`, by the names of their modules. A decoder attends to an encoder if there is one."""
        crossed = stack == "decoder" and "encoder" in self.stacks
        return ("self_attention", "cross_attention") if crossed else ("self_attention",)


class _Translation(Family):
    stacks = STACKS
    what = "a translation model"

    def tables(self, config: ModelKeys) -> Sequence[Table]:
        if config.shared_embedding:
            return (Table("shared_embedding", "shared/embedding", config.target_vocab, ("source", "target")),)
        return (
            Table("source_embedding", "encoder/embedding", config.source_vocab, ("source",)),
            Table("target_embedding", "decoder/embedding", config.target_vocab, ("target",)),
        )

    def check(self, config: ModelKeys) -> None:
        super().check(config)
        if config.positions != "sinusoidal" or config.embedding_norm:
            raise UserError(
                f"model.positions={config.positions} and model.embedding_norm={config.embedding_norm}, but model.decoder_layers is "
                f"{config.decoder_layers}: a translation model has sinusoidal positions and no norm of embeddings"
            )
        if config.shared_embedding and config.source_vocab != config.target_vocab:
            raise UserError(
                f"model.shared_embedding needs one vocabulary, but the source has {config.source_vocab} types and the target "
                f"{config.target_vocab}; set data.joined_vocabulary or turn model.shared_embedding off"
            )

    def describe(self, config: ModelKeys) -> str:
        return f"translation model of {config.encoder_layers}+{config.decoder_layers} layers"


class _Classifier(Family):
    stacks = ("encoder",)
    what = "a classifier"

    def heads(self, config: ModelKeys) -> Sequence[Head]:
        return (
            Head("head_dense", "head/dense", (config.d_model, config.d_model)),
            Head("head_output", "head/output", (config.d_model, label_count(config))),
        )

    def check(self, config: ModelKeys) -> None:
        super().check(config)
        if label_count(config) < 2:
            raise UserError(
                f"model.target_vocab is {config.target_vocab}; for a classifier it counts the four special types and the labels, and "
                "there must be at least 2 labels"
            )

    def describe(self, config: ModelKeys) -> str:
        return f"classifier of {label_count(config)} labels with {config.encoder_layers} layers"


class _Decoder(Family):
    stacks = ("decoder",)
    what = "a decoder alone"

    def check(self, config: ModelKeys) -> None:
        super().check(config)
        if config.positions == "frozen" or config.embedding_norm:
            raise UserError(
                f"model.positions={config.positions} and model.embedding_norm={config.embedding_norm}, but a decoder alone has "
                "sinusoidal or learned positions, and no norm of embeddings"
            )

    def describe(self, config: ModelKeys) -> str:
        return f"decoder of {config.decoder_layers} layers"


class _MaskedLM(Family):
    stacks = ("encoder",)
    what = "a masked language model"

    def tables(self, config: ModelKeys) -> Sequence[Table]:
        return (Table("source_embedding", "encoder/embedding", config.source_vocab, ("source", "target")),)

    def heads(self, config: ModelKeys) -> Sequence[Head]:
        return (
            Head("head_dense", "head/dense", (config.d_model, config.d_model), norm=True),
            Head("head_output", "head/output", (config.d_model, config.source_vocab), tied=True),
        )

    def describe(self, config: ModelKeys) -> str:
        return f"masked language model with {config.encoder_layers} layers"


def label_count(config: ModelKeys) -> int:
    """The number of a classifier's labels: its target types without the four special types that every vocabulary has."""
    return config.target_vocab - UNK - 1


FAMILIES: dict[str, Family] = {
    "translation": _Translation(),
    "classifier": _Classifier(),
    "decoder": _Decoder(),
    "masked_lm": _MaskedLM(),
}

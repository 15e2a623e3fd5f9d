"""The families of networks: translation models, classifiers, decoders alone, and masked language models.

A family says which stacks, tables and heads a network has, and which Flax module computes it. Recipes, tickets, counts and importers
read it, so a new family (for instance an encoder with another head) needs no change in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from one_layer.data.special_tokens import UNK
from one_layer.system.errors import UserError

if TYPE_CHECKING:
    from one_layer.models.config import ModelConfig


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


@dataclass(frozen=True)
class Family:
    """One kind of network.

    `stacks`: which of `encoder` and `decoder` it has. `tables` and `heads`: its embeddings and its trained heads. `check` raises
    UserError for a config that does not fit the family. `network` makes the Flax module; the built-in families import their modules
    only at this call, so that a config can be read without Flax.
    """

    name: str
    stacks: tuple[str, ...]
    tables: Callable[[ModelConfig], Iterator[Table]]
    heads: Callable[[ModelConfig], Iterator[Head]]
    check: Callable[[ModelConfig], None]
    network: Callable[[ModelConfig], Any]
    describe: Callable[[ModelConfig], str]

    def attentions(self, stack: str) -> tuple[str, ...]:
        """The attentions of a layer of `stack`, by the names of their modules. A decoder attends to an encoder if there is one."""
        crossed = stack == "decoder" and "encoder" in self.stacks
        return ("self_attention", "cross_attention") if crossed else ("self_attention",)


def default_family(decoder_layers: int | str) -> str:
    """The family of a model whose config names none: a classifier if it has no decoder layers, else a translation model."""
    return "translation" if decoder_layers else "classifier"


def family_named(name: str) -> Family:
    """The family with this name. Raises: UserError for a name that is not in FAMILIES."""
    if name not in FAMILIES:
        raise UserError(f"the model family {name!r} is unknown; known are {', '.join(FAMILIES)}")
    return FAMILIES[name]


def _translation_tables(config: ModelConfig) -> Iterator[Table]:
    if config.shared_embedding:
        yield Table("shared_embedding", "shared/embedding", config.target_vocab, ("source", "target"))
        return
    yield Table("source_embedding", "encoder/embedding", config.source_vocab, ("source",))
    yield Table("target_embedding", "decoder/embedding", config.target_vocab, ("target",))


def _no_heads(config: ModelConfig) -> Iterator[Head]:
    return iter(())


def _check_translation(config: ModelConfig) -> None:
    _check_encoder(config)
    if not config.depth("decoder"):
        raise UserError(f"model.decoder_layers is {config.decoder_layers}; a translation model needs at least 1")
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


def _check_encoder(config: ModelConfig) -> None:
    if not config.depth("encoder"):
        raise UserError(f"model.encoder_layers is {config.encoder_layers}; it must be at least 1")


def _translation_network(config: ModelConfig) -> Any:
    from one_layer.models.translation import Transformer

    return Transformer(config)


def label_count(config: ModelConfig) -> int:
    """The number of a classifier's labels: its target types without the four special types that every vocabulary has."""
    return config.target_vocab - UNK - 1


def _classifier_tables(config: ModelConfig) -> Iterator[Table]:
    yield Table("source_embedding", "encoder/embedding", config.source_vocab, ("source",))


def _classifier_heads(config: ModelConfig) -> Iterator[Head]:
    yield Head("head_dense", "head/dense", (config.d_model, config.d_model))
    yield Head("head_output", "head/output", (config.d_model, label_count(config)))


def _check_classifier(config: ModelConfig) -> None:
    _check_encoder(config)
    if config.depth("decoder"):
        raise UserError(f"model.decoder_layers is {config.decoder_layers}; a classifier has only an encoder: give 0")
    if label_count(config) < 2:
        raise UserError(
            f"model.target_vocab is {config.target_vocab}; for a classifier it counts the four special types and the labels, and "
            "there must be at least 2 labels"
        )
    if config.shared_embedding:
        raise UserError("model.shared_embedding is True, but a classifier (model.decoder_layers=0) has only one table")


def _classifier_network(config: ModelConfig) -> Any:
    from one_layer.models.classifier import Classifier

    return Classifier(config)


def _decoder_tables(config: ModelConfig) -> Iterator[Table]:
    yield Table("target_embedding", "decoder/embedding", config.target_vocab, ("target",))


def _check_decoder(config: ModelConfig) -> None:
    if config.depth("encoder"):
        raise UserError(f"model.encoder_layers is {config.encoder_layers}; a decoder alone has no encoder: give 0")
    if not config.depth("decoder"):
        raise UserError(f"model.decoder_layers is {config.decoder_layers}; a decoder alone needs at least 1")
    if config.positions != "sinusoidal" or config.embedding_norm or config.shared_embedding:
        raise UserError(
            f"model.positions={config.positions}, model.embedding_norm={config.embedding_norm} and "
            f"model.shared_embedding={config.shared_embedding}, but a decoder alone has sinusoidal positions, no norm of embeddings, "
            "and one table"
        )


def _decoder_network(config: ModelConfig) -> Any:
    from one_layer.models.causal import CausalModel

    return CausalModel(config)


def _masked_lm_tables(config: ModelConfig) -> Iterator[Table]:
    yield Table("source_embedding", "encoder/embedding", config.source_vocab, ("source", "target"))


def _masked_lm_heads(config: ModelConfig) -> Iterator[Head]:
    yield Head("head_dense", "head/dense", (config.d_model, config.d_model), norm=True)
    yield Head("head_output", "head/output", (config.d_model, config.source_vocab), tied=True)


def _check_masked_lm(config: ModelConfig) -> None:
    _check_encoder(config)
    if config.depth("decoder"):
        raise UserError(
            f"model.decoder_layers is {config.decoder_layers}; a masked language model has only an encoder: give 0"
        )
    if config.shared_embedding:
        raise UserError(
            "model.shared_embedding is True, but a masked language model always has one table: leave it out"
        )


def _masked_lm_network(config: ModelConfig) -> Any:
    from one_layer.models.masked import MaskedModel

    return MaskedModel(config)


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(
            "translation",
            ("encoder", "decoder"),
            _translation_tables,
            _no_heads,
            _check_translation,
            _translation_network,
            lambda config: f"translation model of {config.encoder_layers}+{config.decoder_layers} layers",
        ),
        Family(
            "classifier",
            ("encoder",),
            _classifier_tables,
            _classifier_heads,
            _check_classifier,
            _classifier_network,
            lambda config: f"classifier of {label_count(config)} labels with {config.encoder_layers} layers",
        ),
        Family(
            "decoder",
            ("decoder",),
            _decoder_tables,
            _no_heads,
            _check_decoder,
            _decoder_network,
            lambda config: f"decoder of {config.decoder_layers} layers",
        ),
        Family(
            "masked_lm",
            ("encoder",),
            _masked_lm_tables,
            _masked_lm_heads,
            _check_masked_lm,
            _masked_lm_network,
            lambda config: f"masked language model with {config.encoder_layers} layers",
        ),
    )
}

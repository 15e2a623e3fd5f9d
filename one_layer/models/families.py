"""The families of networks: translation models, classifiers, decoders alone, and masked language models.

A family says which stacks, tables and heads a network has; `one_layer.models.networks` says which Flax module computes it. Recipes,
tickets, counts and importers read families, so a new one (for instance an encoder with another head) needs no change in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from one_layer.data.special_tokens import UNK
from one_layer.models.keys import ModelKeys
from one_layer.models.keys.choices import refuse_if
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


@dataclass(frozen=True)
class Family:
    """One kind of network.

    `stacks`: which of `encoder` and `decoder` it has. `tables` and `heads`: its embeddings and its trained heads. `check` raises
    UserError for a config that does not fit the family.
    """

    name: str
    stacks: tuple[str, ...]
    tables: Callable[[ModelKeys], Iterator[Table]]
    heads: Callable[[ModelKeys], Iterator[Head]]
    check: Callable[[ModelKeys], None]
    describe: Callable[[ModelKeys], str]

    def attentions(self, stack: str) -> tuple[str, ...]:
        """The attentions of a layer of `stack`, by the names of their modules. A decoder attends to an encoder if there is one."""
        crossed = stack == "decoder" and "encoder" in self.stacks
        return ("self_attention", "cross_attention") if crossed else ("self_attention",)


def family_named(name: str) -> Family:
    """The family with this name. Raises: UserError for a name that is not in FAMILIES."""
    if name not in FAMILIES:
        raise UserError(f"the model family {name!r} is unknown; known are {', '.join(FAMILIES)}")
    return FAMILIES[name]


def _translation_tables(config: ModelKeys) -> Iterator[Table]:
    if config.shared_embedding:
        yield Table("shared_embedding", "shared/embedding", config.target_vocab, ("source", "target"))
        return
    yield Table("source_embedding", "encoder/embedding", config.source_vocab, ("source",))
    yield Table("target_embedding", "decoder/embedding", config.target_vocab, ("target",))


def _no_heads(config: ModelKeys) -> Iterator[Head]:
    return iter(())


def _check_translation(config: ModelKeys) -> None:
    _check_encoder(config)
    refuse_if(
        not config.depth("decoder"),
        f"model.decoder_layers is {config.decoder_layers}; a translation model needs at least 1",
    )
    refuse_if(
        config.positions != "sinusoidal" or config.embedding_norm,
        f"model.positions={config.positions} and model.embedding_norm={config.embedding_norm}, but model.decoder_layers is "
        f"{config.decoder_layers}: a translation model has sinusoidal positions and no norm of embeddings",
    )
    refuse_if(
        config.shared_embedding and config.source_vocab != config.target_vocab,
        f"model.shared_embedding needs one vocabulary, but the source has {config.source_vocab} types and the target "
        f"{config.target_vocab}; set data.joined_vocabulary or turn model.shared_embedding off",
    )


def _check_encoder(config: ModelKeys) -> None:
    refuse_if(not config.depth("encoder"), f"model.encoder_layers is {config.encoder_layers}; it must be at least 1")


def _check_encoder_alone(config: ModelKeys, what: str) -> None:
    _check_encoder(config)
    refuse_if(
        config.depth("decoder"), f"model.decoder_layers is {config.decoder_layers}; {what} has only an encoder: give 0"
    )
    refuse_if(config.shared_embedding, f"model.shared_embedding is True, but {what} has only one table: leave it out")


def label_count(config: ModelKeys) -> int:
    """The number of a classifier's labels: its target types without the four special types that every vocabulary has."""
    return config.target_vocab - UNK - 1


def _classifier_tables(config: ModelKeys) -> Iterator[Table]:
    yield Table("source_embedding", "encoder/embedding", config.source_vocab, ("source",))


def _classifier_heads(config: ModelKeys) -> Iterator[Head]:
    yield Head("head_dense", "head/dense", (config.d_model, config.d_model))
    yield Head("head_output", "head/output", (config.d_model, label_count(config)))


def _check_classifier(config: ModelKeys) -> None:
    _check_encoder_alone(config, "a classifier")
    refuse_if(
        label_count(config) < 2,
        f"model.target_vocab is {config.target_vocab}; for a classifier it counts the four special types and the labels, and "
        "there must be at least 2 labels",
    )


def _decoder_tables(config: ModelKeys) -> Iterator[Table]:
    yield Table("target_embedding", "decoder/embedding", config.target_vocab, ("target",))


def _check_decoder(config: ModelKeys) -> None:
    refuse_if(
        config.depth("encoder"),
        f"model.encoder_layers is {config.encoder_layers}; a decoder alone has no encoder: give 0",
    )
    refuse_if(
        not config.depth("decoder"),
        f"model.decoder_layers is {config.decoder_layers}; a decoder alone needs at least 1",
    )
    refuse_if(
        config.positions == "frozen" or config.embedding_norm or config.shared_embedding,
        f"model.positions={config.positions}, model.embedding_norm={config.embedding_norm} and "
        f"model.shared_embedding={config.shared_embedding}, but a decoder alone has sinusoidal or learned positions, no norm of "
        "embeddings, and one table",
    )


def _masked_lm_tables(config: ModelKeys) -> Iterator[Table]:
    yield Table("source_embedding", "encoder/embedding", config.source_vocab, ("source", "target"))


def _masked_lm_heads(config: ModelKeys) -> Iterator[Head]:
    yield Head("head_dense", "head/dense", (config.d_model, config.d_model), norm=True)
    yield Head("head_output", "head/output", (config.d_model, config.source_vocab), tied=True)


def _check_masked_lm(config: ModelKeys) -> None:
    _check_encoder_alone(config, "a masked language model")


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(
            "translation",
            ("encoder", "decoder"),
            _translation_tables,
            _no_heads,
            _check_translation,
            lambda config: f"translation model of {config.encoder_layers}+{config.decoder_layers} layers",
        ),
        Family(
            "classifier",
            ("encoder",),
            _classifier_tables,
            _classifier_heads,
            _check_classifier,
            lambda config: f"classifier of {label_count(config)} labels with {config.encoder_layers} layers",
        ),
        Family(
            "decoder",
            ("decoder",),
            _decoder_tables,
            _no_heads,
            _check_decoder,
            lambda config: f"decoder of {config.decoder_layers} layers",
        ),
        Family(
            "masked_lm",
            ("encoder",),
            _masked_lm_tables,
            _masked_lm_heads,
            _check_masked_lm,
            lambda config: f"masked language model with {config.encoder_layers} layers",
        ),
    )
}

"""The Flax module of each family: its tables, the stacks of its layers, and what it computes with them."""

from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from one_layer.data.special_tokens import PAD
from one_layer.layers.blocks import DecoderLayer, EncoderLayer
from one_layer.layers.dropout import Drop
from one_layer.layers.matrix import Matrix, Norm, Projection, sinusoids
from one_layer.layers.products import by_class, product
from one_layer.layers.stack import Stack
from one_layer.models.config import ModelConfig
from one_layer.models.families import label_count

AnyArray = Array | np.ndarray


def positions(tokens: Int[AnyArray, "batch length"]) -> Int[Array, "batch length"]:
    """The position of every token: PAD + 1, PAD + 2, ... over the tokens that are not pads, and PAD for a pad on either side."""
    real = jnp.asarray(tokens) != PAD
    return jnp.cumsum(real, axis=1) * real + PAD


def embedded(
    table: Float[Array, "vocab d"],
    tokens: Int[AnyArray, "batch length"],
    places: Int[Array, "..."],
    longest: int,
    rotary: bool = False,
    learned: Float[Array, "positions d"] | None = None,
) -> Float[Array, "batch length d"]:
    """Scaled embeddings plus sinusoids at `places` (see `positions`) of at most `longest` tokens; a pad's position is the zero vector.

    With `rotary`, no positions are added, because attention has them. With the table `learned`, its rows are added, and embeddings are
    not scaled: RoBERTa and GPT-2 trained their tables that way.
    """
    if learned is not None:
        return table[tokens] + learned[places]
    x = table[tokens] * np.float32(np.sqrt(table.shape[1]))  # Vaswani et al. 2017, section 3.4
    if rotary:
        return x
    rows = sinusoids(longest + PAD + 1, table.shape[1])
    rows[PAD] = 0.0
    return x + jnp.asarray(rows)[places]


def keys_that_count(tokens: Int[AnyArray, "batch length"]) -> Bool[Array, "batch 1 1 length"]:
    """The keys that attention may look at: true except at pads."""
    return (jnp.asarray(tokens) != PAD)[:, None, None, :]


class Network(nn.Module):
    """The tables and stacks of the config's family. A subclass says what it computes with them, and adds its heads.

    `apply(variables, ...)` gives logits, float32. Token arrays are padded with 1. Dropout is on if the random stream `dropout` is given:
    `apply(..., rngs={"dropout": key})`.
    """

    config: ModelConfig

    def setup(self) -> None:
        c = self.config
        for table in c.network_family.tables(c):
            setattr(self, table.name, Matrix((table.rows, c.d_model), c.table_kind, c.supermask, axis=0))
        if c.position_rows:
            kind = "trained" if c.positions == "learned" else "fixed"
            self.position_embedding = Matrix((c.position_rows, c.d_model), kind, c.supermask, axis=0)
        if c.embedding_norm:
            self.embedding_norm = Norm(str(c.norm), c.dtype, c.norm_epsilon)
        self.drop = Drop(c.dropout)
        for stack in c.network_family.stacks:
            layer = {"encoder": EncoderLayer, "decoder": DecoderLayer}[stack]
            setattr(self, stack, Stack(layer, c.stack(stack)))

    def table(self, side: str) -> Float[Array, "vocab d"]:
        """The embedding of the side `source` or `target`; that of the target is also the output projection."""
        return getattr(self, self.config.network_family.table_of(self.config, side).name)()

    def position_table(self) -> Float[Array, "positions d"] | None:
        """The positions of a table; None where they are computed."""
        return self.position_embedding() if self.config.position_rows else None

    def input(
        self, table: Float[Array, "vocab d"], tokens: Int[AnyArray, "batch length"]
    ) -> Float[Array, "batch length d"]:
        """Embeddings plus positions of `tokens`, padded with 1 on either side."""
        c = self.config
        x = embedded(table, tokens, positions(tokens), tokens.shape[1], c.modern, self.position_table())
        if c.embedding_norm:
            x = self.embedding_norm(x)
        self.sow("intermediates", "input", x)
        return self.drop(x.astype(c.dtype))

    def encoded(
        self, table: Float[Array, "vocab d"], source: Int[AnyArray, "batch length"]
    ) -> Float[Array, "batch length d"]:
        """The encoder's last hidden vectors."""
        return self.encoder(self.input(table, source), keys_that_count(source))

    def decoded(
        self,
        table: Float[Array, "vocab d"],
        tokens: Int[AnyArray, "batch length"],
        encoded: Float[Array, "batch source d"] | None = None,
        source: Int[AnyArray, "batch source"] | None = None,
    ) -> Float[Array, "batch length vocab"]:
        """Logits of the token after each token, float32: the output projection is the decoder's embedding."""
        x, length = self.input(table, tokens), tokens.shape[1]
        past = jnp.tril(jnp.ones((length, length), bool))[None, None] & keys_that_count(tokens)
        x = self.decoder(x, encoded, past, None if source is None else keys_that_count(source), None)
        return by_class(product("bld,vd->blv", x, table, x.dtype))


class Transformer(Network):
    """The translation model: an encoder, a decoder and their embeddings (paper A, section 4; Vaswani et al. 2017).

    For decoding token by token, see `one_layer.models.decoding`.
    """

    def __call__(
        self, source: Int[AnyArray, "batch source"], target_in: Int[AnyArray, "batch target"]
    ) -> Float[Array, "batch target vocab"]:
        """Logits of the token after each token. Rows are padded on either side; `target_in` starts with eos."""
        source_table = self.table("source")
        target_table = source_table if self.config.shared_embedding else self.table("target")
        return self.decoded(target_table, target_in, self.encoded(source_table, source), source)

    def remember(self, source: Int[AnyArray, "batch source"]) -> None:
        """Encodes `source` and writes the keys and values that every decoder layer makes of it into the mutable collection `memory`."""
        encoded = self.encoded(self.table("source"), source)
        x = jnp.zeros((source.shape[0], 1, self.config.d_model), self.config.dtype)
        self.decoder(x, encoded, jnp.ones((1, 1, 1, 1), bool), keys_that_count(source), None)


class CausalModel(Network):
    """The causal language model: a decoder alone (Vaswani et al. 2017, without the encoder and the attention to it).

    For generation token by token, see `one_layer.models.decoding`.
    """

    def __call__(self, tokens: Int[AnyArray, "batch length"]) -> Float[Array, "batch length vocab"]:
        """Logits of the token after each token. Rows are padded on the right."""
        return self.decoded(self.table("target"), tokens)


class Classifier(Network):
    """The classifier: an encoder of one or two texts, and a trained head on its first token (paper A, section 4; Liu et al. 2019).

    The text begins with `<s>`. The last hidden vector of this token goes through a dense layer, a tanh and an output layer, as in RoBERTa
    (arXiv 1907.11692), with `head_dropout` before both. In a masked model, only the head has trained weights; the encoder is one random
    layer under L masks.
    """

    def setup(self) -> None:
        super().setup()
        c = self.config
        self.head_drop = Drop(c.head_dropout)
        self.head_dense = Projection(c.d_model, "trained", c.supermask, True, c.dtype)
        # float32, because logits rounded to bfloat16 are often equal, and the first label would win the tie.
        self.head_output = Projection(label_count(c), "trained", c.supermask, True, "float32")

    def __call__(self, source: Int[AnyArray, "batch length"]) -> Float[Array, "batch labels"]:
        """Logits of the labels, of texts that are padded on the right."""
        x = self.encoded(self.table("source"), source)
        hidden = jnp.tanh(self.head_dense(self.head_drop(x[:, 0])))
        return self.head_output(self.head_drop(hidden))


class MaskedModel(Network):
    """The masked language model: an encoder, and a head that predicts the tokens at some of its places (Liu et al. 2019).

    The head is RoBERTa's: a dense layer, GELU, LayerNorm, and the embedding as the output projection, with a bias, and no dropout. In a
    masked model, only the head has trained weights, apart from the embedding, which is the encoder's.
    """

    def setup(self) -> None:
        super().setup()
        c = self.config
        self.head_dense = Projection(c.d_model, "trained", c.supermask, True, c.dtype)
        self.head_dense_norm = Norm("affine", c.dtype, c.norm_epsilon)
        self.head_output = _Bias(c.source_vocab)

    def __call__(
        self, source: Int[AnyArray, "batch length"], places: Int[AnyArray, "batch places"]
    ) -> Float[Array, "batch places vocab"]:
        """Logits of the tokens at these places of every row.

        Only they go through the head, because the output projection is the larger part of a small model's work.
        """
        table = self.table("source")
        x = self.encoded(table, source)
        x = jnp.take_along_axis(x, jnp.asarray(places)[..., None], axis=1)
        x = self.head_dense_norm(jax.nn.gelu(self.head_dense(x), approximate=False))
        logits = by_class(product("bpd,vd->bpv", x, table, x.dtype))
        return logits + self.head_output()


class _Bias(nn.Module):
    """A trained vector."""

    features: int

    @nn.compact
    def __call__(self) -> Float[Array, " features"]:
        return jnp.asarray(self.param("bias", nn.initializers.zeros, (self.features,)))


# By the names in `one_layer.models.families.FAMILIES`.
NETWORKS: dict[str, Callable[[ModelConfig], Any]] = {
    "translation": Transformer,
    "classifier": Classifier,
    "decoder": CausalModel,
    "masked_lm": MaskedModel,
}

"""The search of a translation model for one padded batch, as one function of the model's variables."""

from __future__ import annotations

from typing import Any

from jaxtyping import Array, Bool, Int

from one_layer.layers.materializing import materialize
from one_layer.models import ModelConfig
from one_layer.models.decoding import Decoder, reorder
from one_layer.tasks.translation.beam_search import Hypotheses, beam_search

Variables = dict[str, Any]


def search(
    config: ModelConfig,
    variables: Variables,
    source: Int[Array, "batch length"],
    *,
    beam: int,
    max_length: int,
    length_penalty: float,
    limit: Int[Array, "batch"] | None = None,
    active: Bool[Array, "batch"] | None = None,
) -> Hypotheses:
    """Beam search for one padded batch. `variables` may be a model's own or, which is much faster, those that `materialize` returns.

    `limit` is the most tokens, without eos, for each sentence, if that is less than `max_length`.
    """
    decoder = Decoder(config, materialize(variables, config.supermask), source)
    return beam_search(
        decoder.step,
        decoder.start(beam, max_length + 1),
        source.shape[0],
        beam=beam,
        max_length=max_length,
        limit=limit,
        length_penalty=length_penalty,
        active=active,
        reorder=reorder,
    )

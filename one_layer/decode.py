"""Beam search over any `tokens_to_logits` with a cache: pure, jit-able, and fairseq's to the letter (REFERENCE, item 10).

Continuations are ranked by cumulative log-probability; of the best 2·beam, an eos among the first `beam` finishes a hypothesis and
the best `beam` others go on; a sentence stops when it has `beam` finished hypotheses, and by nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

from one_layer.config import EOS, PAD
from one_layer.errors import UserError

Cache = Any
TokensToLogits = Callable[[Array, Array, Cache], tuple[Array, Cache]]


class Hypotheses(NamedTuple):
    """Finished hypotheses, best first.

    `tokens` [batch, beam, length], padded with 1, end in eos; the eos fed first is not among them. `lengths` [batch, beam] count
    the eos; 0 where there is no hypothesis. `scores` [batch, beam] are Σ log p / length^penalty in nats (−inf where there is none,
    NaN where the model gave NaN); `positional_scores` [batch, beam, length] the log p of each token; `count` [batch] how many finished.
    """

    tokens: Int[Array, "batch beam length"]
    lengths: Int[Array, "batch beam"]
    scores: Float[Array, "batch beam"]
    positional_scores: Float[Array, "batch beam length"]
    count: Int[Array, "batch"]


class _Beams(NamedTuple):
    """Sequences as far as they are, with the log-probability of each token and of all together."""

    tokens: Int[Array, "batch beam length"]
    positional: Float[Array, "batch beam length"]
    scores: Float[Array, "batch beam"]


class _State(NamedTuple):
    step: Int[Array, ""]
    last: Int[Array, "batch beam"]
    alive: _Beams
    finished: _Beams
    lengths: Int[Array, "batch beam"]
    count: Int[Array, "batch"]
    active: Bool[Array, "batch"]
    broken: Bool[Array, "batch"]
    cache: Cache


def beam_search(
    tokens_to_logits: TokensToLogits,
    cache: Cache,
    batch: int,
    *,
    beam: int = 5,
    max_length: int,
    length_penalty: float = 1.0,
    active: Bool[Array, "batch"] | None = None,
    eos: int = EOS,
    pad: int = PAD,
) -> Hypotheses:
    """Searches for the `beam` best continuations of eos, for `batch` sentences at once.

    `tokens_to_logits(tokens [batch·beam], position, cache)` gives logits [batch·beam, vocab] of the next token and the new cache;
    every leaf of the cache has the rows first and is reordered with the hypotheses. A hypothesis has at most `max_length` tokens
    and eos. Sentences that are not `active` (the filling of a batch) take no part.

    Source: Ott et al. 2019 (fairseq), as run for paper A, section 4. Raises: UserError for beam < 1 or max_length < 1.
    """
    if beam < 1 or max_length < 1:
        raise UserError(f"beam {beam} and max_length {max_length} must be at least 1")

    def searching(state: _State) -> Bool[Array, ""]:
        return jnp.any(state.active) & (state.step <= max_length)

    def advance(state: _State) -> _State:
        logits, cache = tokens_to_logits(state.last.reshape(-1), state.step, state.cache)
        log_p = jax.nn.log_softmax(logits.astype(jnp.float32)).reshape(batch, beam, -1)
        broken = state.broken | jnp.any(jnp.isnan(log_p), axis=(1, 2))
        scores, parents, tokens = _best(state.alive.scores, _allowed(log_p, state.step, max_length, eos, pad))
        state = _finish(state, scores, parents, tokens, length_penalty, eos)
        return _continue(state, scores, parents, tokens, cache, eos)._replace(broken=broken)

    end = jax.lax.while_loop(searching, advance, _start(cache, batch, beam, max_length, active, eos, pad))
    order = jnp.argsort(-end.finished.scores, axis=1, stable=True)
    best = jax.tree.map(lambda x: _take(x, order), end.finished)
    scores = jnp.where(end.broken[:, None], jnp.nan, best.scores)
    return Hypotheses(best.tokens, _take(end.lengths, order), scores, best.positional, end.count)


def _start(cache: Cache, batch: int, beam: int, max_length: int, active: Array | None, eos: int, pad: int) -> _State:
    empty = _Beams(
        jnp.full((batch, beam, max_length + 1), pad, jnp.int32),
        jnp.zeros((batch, beam, max_length + 1), jnp.float32),
        jnp.full((batch, beam), -jnp.inf, jnp.float32),
    )
    return _State(
        step=jnp.int32(0),
        last=jnp.full((batch, beam), eos, jnp.int32),
        # All beams start alike: only the first is expanded.
        alive=empty._replace(scores=empty.scores.at[:, 0].set(0.0)),
        finished=empty,
        lengths=jnp.zeros((batch, beam), jnp.int32),
        count=jnp.zeros(batch, jnp.int32),
        active=jnp.ones(batch, bool) if active is None else jnp.asarray(active),
        broken=jnp.zeros(batch, bool),
        cache=cache,
    )


def _allowed(
    log_p: Float[Array, "batch beam vocab"], step: Int[Array, ""], max_length: int, eos: int, pad: int
) -> Float[Array, "batch beam vocab"]:
    """−inf for pad, for eos at the first step, and for all but eos at the last one. A NaN never wins."""
    token = jnp.arange(log_p.shape[-1])
    forbidden = (token == pad) | ((token == eos) & (step == 0)) | ((token != eos) & (step == max_length))
    return jnp.where(forbidden | jnp.isnan(log_p), -jnp.inf, log_p)


def _best(
    scores: Float[Array, "batch beam"], log_p: Float[Array, "batch beam vocab"]
) -> tuple[Float[Array, "batch best"], Int[Array, "batch best"], Int[Array, "batch best"]]:
    """The 2·beam best continuations: cumulative score, parent beam, token. First of each beam, then of all: exact, and quicker."""
    batch, beam, vocab = log_p.shape
    each = min(2 * beam, vocab)
    totals, tokens = jax.lax.top_k(scores[:, :, None] + log_p, each)
    best, place = jax.lax.top_k(totals.reshape(batch, -1), min(2 * beam, beam * vocab - 1))
    return best, place // each, jnp.take_along_axis(tokens.reshape(batch, -1), place, axis=1)


def _finish(
    state: _State,
    scores: Float[Array, "batch best"],
    parents: Int[Array, "batch best"],
    tokens: Int[Array, "batch best"],
    length_penalty: float,
    eos: int,
) -> _State:
    """Moves those of the first `beam` candidates that end in eos to the free places among the finished."""
    beam = state.last.shape[1]
    ends = (tokens == eos) & (scores > -jnp.inf) & state.active[:, None]
    ends &= jnp.arange(ends.shape[1]) < beam
    place = jnp.where(ends, state.count[:, None] + jnp.cumsum(ends, axis=1) - 1, beam)
    chosen = place[:, None, :] == jnp.arange(beam)[None, :, None]  # [batch, place, candidate]
    new, candidate = jnp.any(chosen, axis=2), jnp.argmax(chosen, axis=2)
    extended = _extend(state, *(_take(x, candidate) for x in (scores, parents, tokens)))
    length = state.step + 1
    extended = extended._replace(scores=extended.scores / length.astype(jnp.float32) ** length_penalty)
    count = jnp.minimum(state.count + jnp.sum(ends, axis=1), beam)
    return state._replace(
        finished=jax.tree.map(lambda x, old: jnp.where(_like(new, x), x, old), extended, state.finished),
        lengths=jnp.where(new, length, state.lengths),
        count=count,
        active=state.active & (count < beam),
    )


def _continue(
    state: _State,
    scores: Float[Array, "batch best"],
    parents: Int[Array, "batch best"],
    tokens: Int[Array, "batch best"],
    cache: Cache,
    eos: int,
) -> _State:
    """Goes on with the best `beam` candidates that are no eos, in order."""
    batch, beam = state.last.shape
    order = jnp.argsort(tokens == eos, axis=1, stable=True)[:, :beam]
    scores, parents, tokens = (_take(x, order) for x in (scores, parents, tokens))
    rows = (jnp.arange(batch)[:, None] * beam + parents).reshape(-1)
    return state._replace(
        step=state.step + 1,
        last=tokens,
        alive=_extend(state, scores, parents, tokens),
        cache=jax.tree.map(lambda leaf: leaf[rows], cache),
    )


def _extend(
    state: _State,
    scores: Float[Array, "batch some"],
    parents: Int[Array, "batch some"],
    tokens: Int[Array, "batch some"],
) -> _Beams:
    """The parents' sequences with one token more."""
    here = jnp.arange(state.alive.tokens.shape[2]) == state.step
    gained = scores - _take(state.alive.scores, parents)
    return _Beams(
        jnp.where(here, tokens[:, :, None], _take(state.alive.tokens, parents)),
        jnp.where(here, gained[:, :, None], _take(state.alive.positional, parents)),
        scores,
    )


def _take(x: Shaped[Array, "batch many *rest"], places: Int[Array, "batch some"]) -> Shaped[Array, "batch some *rest"]:
    return jnp.take_along_axis(x, places.reshape(*places.shape, *[1] * (x.ndim - 2)), axis=1)


def _like(flags: Bool[Array, "batch beam"], x: Shaped[Array, "batch beam *rest"]) -> Bool[Array, "batch beam *ones"]:
    return flags.reshape(*flags.shape, *[1] * (x.ndim - 2))

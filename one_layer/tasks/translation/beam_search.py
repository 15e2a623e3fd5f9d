"""Beam search over any `tokens_to_logits` with a cache. It is pure and jit-able, and does exactly what fairseq's does, quirks included.

Continuations are ranked by cumulative log-probability, and the best 2·beam are candidates. An eos among the first `beam` candidates
finishes a hypothesis; the best `beam` candidates without eos are continued. A sentence stops only when it has `beam` finished
hypotheses, or at its length limit.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Shaped

from one_layer.data.special_tokens import EOS, PAD
from one_layer.system.errors import UserError
from one_layer.tasks.translation.continuations import Allowed, Candidates, best_continuations

Cache = Any
TokensToLogits = Callable[[Array, Array, Cache], tuple[Array, Cache]]
Reorder = Callable[[Cache, Array], Cache]


class Hypotheses(NamedTuple):
    """Finished hypotheses, best first.

    `tokens` [batch, beam, length] end in eos, without the eos that is fed first, and are padded with 1. `lengths` [batch, beam]
    include the eos, and are 0 if there is no hypothesis. `scores` [batch, beam] are Σ log p / length^penalty in nats, -inf if there is
    no hypothesis, and NaN if the logits of the sentence were not finite.
    """

    tokens: Int[Array, "batch beam length"]
    lengths: Int[Array, "batch beam"]
    scores: Float[Array, "batch beam"]


class _Beams(NamedTuple):
    """The sequences so far, and their log-probabilities."""

    tokens: Int[Array, "batch beam length"]
    scores: Float[Array, "batch beam"]


class _State(NamedTuple):
    step: Int[Array, ""]
    last: Int[Array, "batch beam"]
    alive: _Beams
    finished: _Beams
    lengths: Int[Array, "batch beam"]
    done: Int[Array, "batch"]  # number of finished hypotheses
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
    limit: int | Int[Array, ""] | Int[Array, "batch"] | None = None,
    length_penalty: float | Float[Array, ""] = 1.0,
    active: Bool[Array, "batch"] | None = None,
    reorder: Reorder | None = None,
) -> Hypotheses:
    """Searches for the `beam` best continuations of eos, for `batch` sentences at once; `beam` 1 is greedy search.

    `tokens_to_logits(tokens [batch·beam], position [], cache)` gives the logits [batch·beam, vocab] of the next token and the new cache.
    `reorder(cache, parents [batch, beam])` makes every beam the continuation of its parent. Without it, every leaf of the cache must
    have rows as its first axis, and the rows of the parents are gathered.

    A hypothesis has at most `max_length` tokens and eos; `max_length` must be static. `limit` lowers this to a number from 1 to
    `max_length`, for all sentences or for each; it may be traced. Sentences that are not `active` (they only fill the batch) are not
    searched and get no hypothesis.

    Source: Ott et al. 2019 (fairseq), as run for paper A, section 4. Raises: UserError for beam < 1 or max_length < 1.
    """
    if beam < 1 or max_length < 1:
        raise UserError(f"beam is {beam} and max_length {max_length}; both must be at least 1")
    limits = jnp.clip(jnp.asarray(max_length if limit is None else limit, jnp.int32), 1, max_length)
    last_step = jnp.broadcast_to(limits, (batch,))

    def searching(state: _State) -> Bool[Array, ""]:
        return jnp.any(state.active)

    def advance(state: _State) -> _State:
        logits, cache = tokens_to_logits(state.last.reshape(-1), state.step, state.cache)
        at_limit = state.step >= last_step
        best, not_finite = best_continuations(
            state.alive.scores, logits.astype(jnp.float32).reshape(batch, beam, -1), Allowed(state.step, at_limit)
        )
        state = _notice_nan(state, not_finite)
        state, others = _finish(state, best, length_penalty), _others(best, beam)
        if beam > 1:  # a single beam is its own parent
            cache = (reorder or _gather)(cache, others.parents)
        return state._replace(
            step=state.step + 1,
            last=others.tokens,
            alive=_extend(state, others),
            active=state.active & ~at_limit,
            cache=cache,
        )

    end = jax.lax.while_loop(searching, advance, _start(cache, batch, beam, max_length, active))
    order = jnp.argsort(-end.finished.scores, axis=1, stable=True)
    found = jax.tree.map(lambda x: _take(x, order), end.finished)
    scores = jnp.where(end.broken[:, None], jnp.nan, found.scores)
    return Hypotheses(found.tokens, _take(end.lengths, order), scores)


def _start(cache: Cache, batch: int, beam: int, max_length: int, active: Array | None) -> _State:
    empty = _Beams(
        jnp.full((batch, beam, max_length + 1), PAD, jnp.int32),
        jnp.full((batch, beam), -jnp.inf, jnp.float32),
    )
    return _State(
        step=jnp.int32(0),
        last=jnp.full((batch, beam), EOS, jnp.int32),
        # All beams start equal, so only the first is expanded.
        alive=empty._replace(scores=empty.scores.at[:, 0].set(0.0)),
        finished=empty,
        lengths=jnp.zeros((batch, beam), jnp.int32),
        done=jnp.zeros(batch, jnp.int32),
        active=jnp.ones(batch, bool) if active is None else jnp.asarray(active),
        broken=jnp.zeros(batch, bool),
        cache=cache,
    )


def _notice_nan(state: _State, not_finite: Bool[Array, "batch beam"]) -> _State:
    """A NaN in a beam with a finite score stops its sentence. In a stopped sentence, a NaN must not spoil the earlier results."""
    nan = not_finite & (state.alive.scores > -jnp.inf)
    broken = state.broken | (jnp.any(nan, axis=1) & state.active)
    return state._replace(broken=broken, active=state.active & ~broken)


def _finish(state: _State, best: Candidates, length_penalty: float | Float[Array, ""]) -> _State:
    """Moves the candidates that end in eos, of the first `beam`, to the free places among the finished hypotheses, best first."""
    beam = state.last.shape[1]
    first = jax.tree.map(lambda x: x[:, :beam], best)
    ends = (first.tokens == EOS) & (first.scores > -jnp.inf) & state.active[:, None]
    place = jnp.where(ends, state.done[:, None] + jnp.cumsum(ends, axis=1) - 1, beam)
    chosen = place[:, None, :] == jnp.arange(beam)[None, :, None]  # [batch, place, candidate]
    new, candidate = jnp.any(chosen, axis=2), jnp.argmax(chosen, axis=2)
    extended = _extend(state, jax.tree.map(lambda x: _take(x, candidate), first))
    length = state.step + 1
    extended = extended._replace(scores=extended.scores / length.astype(jnp.float32) ** length_penalty)
    done = jnp.minimum(state.done + jnp.sum(ends, axis=1, dtype=jnp.int32), beam)
    return state._replace(
        finished=jax.tree.map(
            lambda x, old: jnp.where(new.reshape(*new.shape, *[1] * (x.ndim - 2)), x, old), extended, state.finished
        ),
        lengths=jnp.where(new, length, state.lengths),
        done=done,
        active=state.active & (done < beam),
    )


def _others(best: Candidates, beam: int) -> Candidates:
    """The best `beam` candidates that are not eos, in order: the next beams. Of the 2·beam, each beam has one eos at most."""
    order = jnp.argsort(best.tokens == EOS, axis=1, stable=True)[:, :beam]
    return jax.tree.map(lambda x: _take(x, order), best)


def _gather(cache: Cache, parents: Int[Array, "batch beam"]) -> Cache:
    """The cache in which every row is replaced by its parent's row."""
    batch, beam = parents.shape
    rows = (jnp.arange(batch)[:, None] * beam + parents).reshape(-1)
    return jax.tree.map(lambda leaf: leaf[rows], cache)


def _extend(state: _State, chosen: Candidates) -> _Beams:
    """The parents' sequences, extended by the chosen tokens."""
    here = jnp.arange(state.alive.tokens.shape[2]) == state.step
    parents = _take(state.alive.tokens, chosen.parents)
    return _Beams(jnp.where(here, chosen.tokens[:, :, None], parents), chosen.scores)


def _take(x: Shaped[Array, "batch many *rest"], places: Int[Array, "batch some"]) -> Shaped[Array, "batch some *rest"]:
    return jnp.take_along_axis(x, places.reshape(*places.shape, *[1] * (x.ndim - 2)), axis=1)

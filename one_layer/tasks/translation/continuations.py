"""The best continuations of the beams of a search, from logits, with few passes over the vocabulary."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from one_layer.data.special_tokens import EOS, PAD

_BLOCK = 16  # tokens; a CPU finds the largest of so many floats in one instruction or two
_LARGE = 1024  # tokens; in a smaller vocabulary, blocks save nothing


class Candidates(NamedTuple):
    """The best continuations of a sentence, best first: cumulative log-probability, the beam that is continued, and the new token."""

    scores: Float[Array, "batch best"]
    parents: Int[Array, "batch best"]
    tokens: Int[Array, "batch best"]


class Allowed(NamedTuple):
    """Which tokens may follow: never pad, eos not at the first step, and nothing but eos at a sentence's last step."""

    step: Int[Array, ""]
    at_limit: Bool[Array, "batch"]

    def __call__(self, tokens: Int[Array, "#batch #beam tokens"]) -> Bool[Array, "batch #beam tokens"]:
        forbidden = (tokens == PAD) | ((tokens == EOS) & (self.step == 0))
        return ~forbidden & ((tokens == EOS) | ~self.at_limit[:, None, None])


class _Normalized(NamedTuple):
    """What makes totals of the logits of the beams: their cumulative log-probabilities, and the terms of softmax."""

    scores: Float[Array, "batch beam"]
    top: Float[Array, "batch beam"]  # the largest logit
    log_sum: Float[Array, "batch beam"]  # log Σ exp(logit - top)

    def totals(self, logits: Float[Array, "batch beam some"], possible: Bool[Array, "..."]) -> Float[Array, "..."]:
        """The cumulative log-probabilities of continuations; -inf if they are not possible, or NaN."""
        log_p = (logits - self.top[:, :, None]) - self.log_sum[:, :, None]
        return self.scores[:, :, None] + jnp.where(possible & ~jnp.isnan(log_p), log_p, -jnp.inf)

    def of(self, parents: Int[Array, "batch some"]) -> _Normalized:
        return _Normalized(*(jnp.take_along_axis(each, parents, axis=1) for each in self))


def best_continuations(
    scores: Float[Array, "batch beam"], logits: Float[Array, "batch beam vocab"], allowed: Allowed
) -> tuple[Candidates, Bool[Array, "batch beam"]]:
    """The 2·beam best continuations by cumulative log-probability, and which beams have logits that are not finite.

    `scores` are those of the beams so far. In a tie the lower beam wins, then the lower token. A beam whose logits have a NaN or +inf has
    no continuation.
    """
    batch, beam, vocab = logits.shape
    blocks = None if vocab < _LARGE else _largest(logits)
    top = jnp.max(logits if blocks is None else blocks, axis=2)
    beams = _Normalized(scores, top, jnp.log(jnp.sum(jnp.exp(logits - top[:, :, None]), axis=2)))
    if blocks is None:
        tokens = jnp.arange(vocab, dtype=jnp.int32)[None, None]
        parents, totals = jnp.arange(beam, dtype=jnp.int32)[None], beams.totals(logits, allowed(tokens))
    else:
        parents, tokens = _best_blocks(beams, logits, blocks, allowed)
        places = parents[:, :, None] * vocab + jnp.minimum(tokens, vocab - 1)
        chosen = jnp.take_along_axis(logits.reshape(batch, -1), places.reshape(batch, -1), axis=1)
        totals = beams.of(parents).totals(chosen.reshape(tokens.shape), allowed(tokens) & (tokens < vocab))
    best, place = _top(totals.reshape(batch, -1), 2 * beam)
    parents, tokens = (jnp.broadcast_to(each, totals.shape) for each in (parents[:, :, None], tokens))
    found = (jnp.take_along_axis(each.reshape(batch, -1), place, axis=1) for each in (parents, tokens))
    return Candidates(best, *found), jnp.isnan(beams.log_sum)


def _best_blocks(
    beams: _Normalized,
    logits: Float[Array, "batch beam vocab"],
    largest: Float[Array, "batch beam blocks"],
    allowed: Allowed,
) -> tuple[Int[Array, "batch best"], Int[Array, "batch best block"]]:
    """The beams and the tokens of the 2·beam blocks whose largest values are the best, in the order of all tokens of all beams.

    The 2·beam best continuations lie in them: each of these blocks has one that is at least as good as any in another block. Only these
    few are given probabilities.
    """
    batch, beam, count = largest.shape
    # All special tokens are in the first block.
    special = jnp.where(allowed(jnp.arange(_BLOCK, dtype=jnp.int32)[None, None]), logits[:, :, :_BLOCK], -jnp.inf)
    largest = largest.at[:, :, 0].set(jnp.max(special, axis=2))
    possible = (jnp.arange(count) == 0) | ~allowed.at_limit[:, None, None]
    _, places = _top(beams.totals(largest, possible).reshape(batch, -1), 2 * beam)
    places = jnp.sort(places, axis=1)
    return places // count, (places % count)[:, :, None] * _BLOCK + jnp.arange(_BLOCK, dtype=jnp.int32)


def _largest(logits: Float[Array, "batch beam vocab"]) -> Float[Array, "batch beam blocks"]:
    """The largest logit of each block of tokens; the last block may be shorter."""
    batch, beam, vocab = logits.shape
    whole = vocab // _BLOCK * _BLOCK
    largest = jnp.max(logits[:, :, :whole].reshape(batch, beam, -1, _BLOCK), axis=3)
    if whole < vocab:
        largest = jnp.concatenate([largest, jnp.max(logits[:, :, whole:], axis=2, keepdims=True)], axis=2)
    return largest


def _top(values: Float[Array, "batch all"], count: int) -> tuple[Float[Array, "batch best"], Int[Array, "batch best"]]:
    """The largest values and their places. Without the barrier, XLA replaces top_k by a full sort, where slices are taken from it."""
    best, places = jax.lax.optimization_barrier(jax.lax.top_k(values, count))
    return best, places

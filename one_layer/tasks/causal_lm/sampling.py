"""Sampling from a causal language model, for many prompts at once, each with random numbers and a context of its own."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from one_layer.data.special_tokens import UNK

Step = Callable[[Array, Array, Any], tuple[Array, Any]]  # (tokens, positions, cache) -> (logits, cache); all by row

NOT_FINITE = -1  # in the place of a token


def draw(logits: Float[Array, "vocab"], key: Array, temperature: float) -> Int[Array, ""]:
    """A token that is not special; `NOT_FINITE` for logits of which one is not finite. Equal keys draw equal tokens.

    Logits are divided by `temperature`; 0 takes the most probable token.
    """
    finite = jnp.all(jnp.isfinite(logits))
    logits = jnp.where(jnp.arange(len(logits)) <= UNK, -jnp.inf, logits)
    chosen = jax.random.categorical(key, logits / temperature) if temperature else jnp.argmax(logits)
    return jnp.where(finite, chosen, NOT_FINITE)


class _State(NamedTuple):
    tokens: Int[Array, "rows length"]
    filled: Int[Array, "rows"]  # tokens that are known
    first: Int[Array, "rows"]  # where the context begins
    position: Int[Array, "rows"]  # of the next token to read, in the context
    cache: Any


def sample(
    step: Step,
    cache: Any,
    tokens: Int[Array, "rows length"],
    filled: Int[Array, "rows"],
    goal: Int[Array, "rows"],
    keys: Array,
    context: int,
    temperature: float,
) -> Int[Array, "rows length"]:
    """Continues each row, whose first `filled` tokens are its prompt, until it has `goal` tokens.

    A token depends on the row's key, on its place and on at most `context` tokens before it. When the context is full, its older half is
    dropped and the rest is read anew. So a row does not depend on the others. Where logits are not finite, it has `NOT_FINITE`.
    """
    rows = jnp.arange(len(tokens))

    def unfinished(state: _State) -> Array:
        return jnp.any(state.filled < goal)

    def advance(state: _State) -> _State:
        place = jnp.minimum(state.first + state.position, tokens.shape[1] - 1)
        logits, cache = step(state.tokens[rows, place], state.position, state.cache)
        own_keys = jax.vmap(jax.random.fold_in)(keys, state.filled)
        drawn = jax.vmap(partial(draw, temperature=temperature))(logits, own_keys)
        new = (state.first + state.position + 1 == state.filled) & (state.filled < goal)
        at = jnp.minimum(state.filled, tokens.shape[1] - 1)
        written = state.tokens.at[rows, at].set(jnp.where(new, drawn, state.tokens[rows, at]).astype(tokens.dtype))
        full = state.position + 1 == context
        first = jnp.where(full, state.first + context - context // 2, state.first)
        return _State(written, state.filled + new, first, jnp.where(full, 0, state.position + 1), cache)

    start = _State(tokens, filled, jnp.zeros_like(filled), jnp.zeros_like(filled), cache)
    return jax.lax.while_loop(unfinished, advance, start).tokens

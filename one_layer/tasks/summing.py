"""The loop that all scores of batches share: each batch gives sums over its targets, and these are added in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float64

from one_layer.data.special_tokens import PAD
from one_layer.models import ModelConfig, build
from one_layer.models.sharding import Devices
from one_layer.tasks.losses import label_smoothed_nll

Sums = tuple[Array, ...]


@lru_cache(maxsize=8)  # all that a process scores with one model share what is traced and compiled
def nll_program(model: ModelConfig, inputs: tuple[str, ...], right: bool = False) -> Any:
    """The program (variables, batch) -> (nll in nats, targets), for `summed`.

    `inputs` are the arrays of the batch that the network takes. `right`: also the targets whose most probable token is right.
    """
    network = build(model)

    def sums(variables: dict[str, Any], batch: dict[str, Array]) -> Sums:
        logits: Any = network.apply(variables, *(batch[name] for name in inputs))
        _, nll, targets = label_smoothed_nll(logits, batch["target"], 0.0)
        if not right:
            return nll, targets
        hits = jnp.sum((jnp.argmax(logits, -1) == batch["target"]) & (batch["target"] != PAD))
        return nll, targets, hits.astype(jnp.float32)

    return jax.jit(sums)


def summed(
    program: Callable[[Any, dict[str, Any]], Sums],
    variables: dict[str, Any],
    batches: Iterable[dict[str, np.ndarray]],
    between: Callable[[], None],
    scored: Callable[[], object] = lambda: None,
) -> Float64[np.ndarray, "sums"]:
    """The sums of what `program(variables, batch)` returns, over all batches. A target that is a pad must count nothing.

    `between` is called before every batch, and `scored` after it. There must be a batch.
    """
    devices, sums = Devices.holding(variables), list[Sums]()
    for batch in batches:
        between()
        jax.block_until_ready(sums[-1:])  # a batch is computed while the next one is made; `between` is not far ahead
        filled = {name: devices.rows(array, PAD if name == "target" else None) for name, array in batch.items()}
        sums.append(program(variables, filled))
        scored()
    return np.sum(np.asarray(jax.device_get(sums), np.float64), axis=0)

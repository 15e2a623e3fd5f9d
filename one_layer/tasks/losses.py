"""The training objective: label-smoothed cross entropy, summed over target tokens (without pads) or over texts; and what a teacher adds.

Scores of batches have sums over targets too: `summed` is the loop that adds them, in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float64, Int

from one_layer.data.special_tokens import PAD, UNK
from one_layer.models import ModelConfig, build
from one_layer.models.sharding import Devices
from one_layer.system.errors import UserError

TOP_K = 16  # a teacher's probabilities of each target, the largest ones
_LEAST = 1e-6  # of the probability of all classes that a teacher's file leaves out: float32 has no more digits beside 1

AnyArray = Array | np.ndarray
Sums = tuple[Array, ...]
Smoothing = float | Float[Array, ""]  # in [0, 1); traced where one program trains several runs


def label_smoothed_nll(
    logits: Float[Array, "batch length vocab"], target: Int[Array | np.ndarray, "batch length"], smoothing: Smoothing
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """Sums over the target tokens that are not pads: the smoothed loss and the negative log-likelihood, in nats, and the token count.

    loss = (1 − ε)·nll + ε/V·Σ_v −log p_v, over all V entries including pad and bos. This is Szegedy et al. 2016, section 7, in the form
    that fairseq and paper A's code use.
    """
    return _summed(logits, target, target != PAD, smoothing)


def label_nll(
    logits: Float[Array, "batch labels"], target: Int[Array | np.ndarray, "batch length"], smoothing: Smoothing
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """The same sums over texts, for a classifier. A row of `target` begins with a label's id, or with a pad if the row is empty."""
    return _summed(logits, target[:, 0] - UNK - 1, target[:, 0] != PAD, smoothing)


def _summed(
    logits: Float[Array, "*batch classes"],
    target: Int[AnyArray, "*batch"],
    real: Bool[AnyArray, "*batch"],
    smoothing: Smoothing,
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    logits, weight = logits.astype(jnp.float32), real.astype(jnp.float32)
    normaliser = jax.nn.logsumexp(logits, axis=-1)
    # Not take_along_axis: its gradient is a scatter into an array of zeros as large as the logits.
    hit = jnp.arange(logits.shape[-1]) == target[..., None]
    nll = normaliser - jnp.sum(jnp.where(hit, logits, 0.0), axis=-1)
    smooth = normaliser - logits.mean(axis=-1)
    loss = (1.0 - smoothing) * nll + smoothing * smooth
    return jnp.sum(loss * weight), jnp.sum(nll * weight), jnp.sum(weight)


@dataclass(frozen=True)
class Distil:
    """Distillation by words: the share `weight` (w) of the loss is a teacher's, whose `TOP_K` largest probabilities a batch has.

    loss = (1 - w)·label loss + w·Σ_v -q_v log softmax(z)_v, with q the teacher's distribution. This is Hinton et al. 2015 (arXiv
    1503.02531), section 2, at the temperature 1; for words, Kim and Rush 2016 (arXiv 1606.07947), section 3.1. All other classes than the
    largest count as one, so that a student with the teacher's distribution has no gradient.
    """

    weight: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.weight <= 1.0:
            raise UserError(
                f"train.distil is {self.weight}, the teacher's share of the loss; give a number from 0 to 1"
            )

    @classmethod
    def of(cls, train: Any) -> Distil | None:
        """What the config's section `train` says; None if the teacher has no share. Raises: UserError for a value out of range."""
        found = cls(train.distil)
        return found if found.weight else None

    def mixed(
        self,
        label_loss: Float[Array, ""],
        logits: Float[Array, "rows *places classes"],
        ids: Int[AnyArray, "rows *places k"],
        p: Float[AnyArray, "rows *places k"],
    ) -> Float[Array, ""]:
        """The loss. `p`: the teacher's probabilities of the classes `ids`; all are 0 where no target is."""
        logits = logits.astype(jnp.float32)
        # Here take_along_axis: on a CPU, an update takes less time than with `p` spread over all classes.
        log_p = jnp.take_along_axis(logits, ids, axis=-1) - jax.nn.logsumexp(logits, axis=-1)[..., None]
        total = p.sum(axis=-1)
        others = jnp.where(total > 0, jnp.maximum(1 - total, 0), 0)
        own_others = jnp.maximum(1 - jnp.exp(log_p).sum(axis=-1), _LEAST)
        cross = -jnp.sum(p * log_p) - jnp.sum(others * jnp.log(own_others))
        return (1.0 - self.weight) * label_loss + self.weight * cross


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


@lru_cache(maxsize=8)  # a program is compiled once for each padded shape, and kept
def log_p_program(model: ModelConfig) -> Any:
    """The program (variables, arrays that the network takes) -> log-probabilities."""
    network = build(model)

    def log_p(variables: dict[str, Any], *inputs: Array) -> Array:
        return jax.nn.log_softmax(network.apply(variables, *inputs))

    return jax.jit(log_p)


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

"""The training objective: label-smoothed cross entropy, summed over target tokens (without pads) or over texts; and what a teacher adds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from one_layer.data.special_tokens import PAD, UNK
from one_layer.system.errors import UserError

TOP_K = 16  # a teacher's probabilities of each target, the largest ones
_LEAST = 1e-6  # of the probability of all classes that a teacher's file leaves out: float32 has no more digits beside 1

AnyArray = Array | np.ndarray
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

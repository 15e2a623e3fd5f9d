"""The training objective: label-smoothed cross entropy, summed over target tokens (without pads) or over texts."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from one_layer.data.special_tokens import PAD, UNK

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

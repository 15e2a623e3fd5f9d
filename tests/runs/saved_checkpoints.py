"""Small checkpoints for tests of what is saved and of what is damaged."""

import jax
import jax.numpy as jnp
import numpy as np

from one_layer.runs.checkpoints import Checkpoints
from one_layer.training.optimizer import OptimConfig, optimizer

SCORES = {1: 0.5, 2: 0.9, 3: 0.1, 4: 0.2, 5: 0.3, 6: 0.9, 7: 0.4}


def trees():
    random = np.random.default_rng(0)
    odd = np.array([0.0, -0.0, 1e-42, np.inf, np.nan, np.pi], np.float32)
    params = {"stack": {"scores": random.standard_normal((3, 4, 8)).astype(np.float32)}, "odd": {"scale": odd}}
    params = jax.tree.map(jnp.asarray, params)
    return params, optimizer(OptimConfig()).init(params)


def save(folder, scores, **options):
    checkpoints = Checkpoints(folder / "checkpoints", **options)
    params, moments = trees()
    for step, score in scores.items():
        checkpoints.save(step, params, moments, {"step": step, "score": score}, score)
    checkpoints.close()

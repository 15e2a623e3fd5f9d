"""Trains the policy and the value network of `train.backskip=policy` (see `one_layer.layers.backskipping`), and says when they are used.

Two programs are compiled: one computes the true gradients, the other one has no backward pass through reservoirs. Seed and update alone
decide which one an update takes, before it starts. A condition inside one program would leave both in it. Both networks, their
moments and what the next update needs are part of the optimiser's state: checkpoints hold them, and tickets do not.
"""

import random
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array

from one_layer.layers.backskipping import networks, no_reports, value
from one_layer.models import ModelConfig

Tree = Any

DECAY = 0.99  # of the probability of true gradients, with each update after the warm-up (arXiv 2012.15045)
_RATE = 1e-3  # the learning rate of both networks, which Adam trains


def uses_policy(config: ModelConfig) -> bool:
    return config.backskip == "policy"


def takes_true_gradient(seed: int, warmup: int, number: int) -> bool:
    """Whether the update after `number` others computes the gradients through reservoirs."""
    return number < warmup or random.Random(f"{seed} {number}").random() < DECAY ** (number - warmup + 1)


def skips(config: ModelConfig, seed: int, warmup: int, number: int) -> bool:
    """Whether the update after `number` others takes the program without the backward pass through reservoirs."""
    return uses_policy(config) and not takes_true_gradient(seed, warmup, number)


def computed(config: ModelConfig, seed: int, warmup: int, number: int) -> ModelConfig:
    """`config` as the operations of the update after `number` others are counted."""
    return _without(config) if uses_policy(config) and not skips(config, seed, warmup, number) else config


@lru_cache(maxsize=8)
def _without(config: ModelConfig) -> ModelConfig:
    return config.replace(backskip="off")


def probes(config: ModelConfig, moments: Tree, skips: bool) -> dict[str, Tree]:
    """The collection by which reservoirs report their gradients and, if the update `skips` their backward pass, reach the policy."""
    if not uses_policy(config):
        return {}
    given = {"reports": no_reports(config.d_model)}
    if skips:
        given["policy"] = moments["backskip"]["networks"]["policy"]
    return {"backskip": dict.fromkeys(config.network_family.stacks, given)}


def with_policy(
    optimizer: optax.GradientTransformationExtraArgs, config: ModelConfig, seed: int
) -> optax.GradientTransformationExtraArgs:
    """`optimizer`, which then also trains the policy, if the model has one. It receives the cotangents of `probes` as `backskip`."""
    if not uses_policy(config):
        return optimizer
    adam = optax.adam(_RATE)

    def init(params: Tree) -> Tree:
        both = networks(seed, config.d_model)
        last = {"eligibility": jax.tree.map(jnp.zeros_like, both["policy"]), "state": jnp.zeros(config.d_model)}
        return {
            "optimizer": optimizer.init(params),
            "backskip": {"networks": both, "moments": adam.init(both), "last": last},
        }

    def update(updates: Tree, moments: Tree, params: Tree = None, *, backskip: Tree, **more: Any) -> tuple[Tree, Tree]:
        changes, inner = optimizer.update(updates, moments["optimizer"], params, **more)
        told = jax.tree.map(lambda *leaves: sum(leaves), *backskip.values())
        return changes, {"optimizer": inner, "backskip": _learned(adam, moments["backskip"], told)}

    return optax.GradientTransformationExtraArgs(init, update)


def _learned(adam: optax.GradientTransformation, before: Tree, told: Tree) -> Tree:
    """REINFORCE: the action of the update before is rewarded by the gradient of this one. After a true gradient its eligibility is 0.

    An update in which LayerDrop has left out every reservoir says nothing, and changes nothing: the next one rewards the action.
    """
    both, last = before["networks"], before["last"]
    reservoirs = told["reports"]["count"]
    count = jnp.maximum(reservoirs, 1.0)
    reward = -told["reports"]["gradient"] / count

    def error(parameters: Tree) -> Array:
        return 0.5 * (value(parameters, last["state"]) - reward) ** 2

    advantage = reward - value(both["value"], last["state"])
    descent = {
        "policy": jax.tree.map(lambda each: -advantage * each, last["eligibility"]),
        "value": jax.grad(error)(both["value"]),
    }
    changes, moments = adam.update(descent, before["moments"])
    eligibility = told.get("policy", jax.tree.map(jnp.zeros_like, last["eligibility"]))
    after = {
        "networks": optax.apply_updates(both, changes),
        "moments": moments,
        "last": {"eligibility": eligibility, "state": told["reports"]["state"] / count},
    }
    return jax.tree.map(lambda new, old: jnp.where(reservoirs > 0, new, old), after, before)

"""One update: make each W ⊙ M, sum the gradient over the micro-batches, pass it to the scores, divide it by the number of targets, and
apply the optimiser.

An update whose loss or gradient is not finite changes nothing.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Shaped

from one_layer.layers.dropout import streams
from one_layer.layers.groups import with_loops
from one_layer.layers.materializing import computing, materialize
from one_layer.layers.quantization import quantized
from one_layer.models import ModelConfig, abstract, build
from one_layer.models.sharding import Devices
from one_layer.models.trained import TrainedParts
from one_layer.platform import on_cpu
from one_layer.supermask import Supermask
from one_layer.tasks.losses import Distil
from one_layer.tasks.protocol import Task
from one_layer.training.backskipping import probes, uses_policy
from one_layer.training.frozen_masks import with_frozen_masks
from one_layer.training.optimizer import is_on, temperature
from one_layer.training.own_rows import on_own_rows

Tree = Any
Number = float | Shaped[Array, ""]  # Python's, or traced
Step = Callable[..., tuple[Tree, Tree, dict[str, Array]]]


def train_step(
    task: Task,
    config: ModelConfig,
    optimizer: optax.GradientTransformation,
    smoothing: float,
    seed: int,
    devices: Devices | None = None,
    distil: Distil | None = None,
    loops: bool = False,
    softness: float = 0.0,
) -> Step:
    """The jitted function (params, moments, fixed, batch, number, pace, skips) -> (params, moments, sums).

    It donates its first two arguments.

    `moments` is the optimiser's state of the trained parts of `params` (see `one_layer.models.trained`); the others are not differentiated.
    `fixed` has the other collections of the model: `random`, `frozen` if it exists, and what `with_frozen_masks` adds. A batch is an item
    of the task's batches: arrays [micro-batches, rows, length]. The random bits of dropout depend only on the seed, the update's `number`
    and the micro-batch. Learning rates follow from `pace` (see `one_layer.training.optimizer`).
    `sums` has the sums of the task's loss over the update, and the `norm` of the gradient. If the loss or the norm is not finite,
    params and moments stay as they were. With `train.backskip=policy`, an update that `skips` the backward pass through reservoirs has a
    program of its own.
    `devices` share out the work; by default there is one. With `distil`, batches also have what a teacher says of their targets.
    With `loops`, a GPU's program keeps its loops over layers. With `softness`, signs are soft (`one_layer.training.optimizer.temperature`).
    """
    devices = devices or Devices.holding(())
    step = update(task, config, optimizer, config.supermask, smoothing, seed, devices, distil, loops, softness)
    return devices.jit_step(step, *state_shapes(config, optimizer, devices))


def state_shapes(config: ModelConfig, optimizer: optax.GradientTransformation, devices: Devices) -> tuple[Tree, ...]:
    """The shapes of `params`, `moments` and `fixed`, the first arguments of a step."""
    fixed = abstract(config)
    params = fixed.pop("params")
    moments = jax.eval_shape(lambda params: optimizer.init(TrainedParts.of(config).pick(params)), params)
    return params, moments, jax.eval_shape(partial(with_frozen_masks, config, devices=devices), params, fixed)


def update(
    task: Task,
    config: ModelConfig,
    optimizer: optax.GradientTransformation,
    supermask: Supermask,
    smoothing: Number,
    seed: Number,
    devices: Devices,
    distil: Distil | None = None,
    loops: bool = False,
    softness: Number = 0.0,
) -> Callable[..., Any]:
    """The function that `train_step` compiles. `supermask`, `smoothing`, `seed`, `softness` and what makes `optimizer` may be traced.

    It has one more argument, `active`: if that is False, params and moments stay as they were.
    """
    model, parts = build(config), TrainedParts.of(config)

    def loss(trained: Tree, fixed: Tree, batch: dict[str, Array], key: Array) -> tuple[Array, dict[str, Array]]:
        with with_loops(loops):
            sums = task.loss(model, parts.together(trained, fixed), batch, smoothing, streams(key), distil)
        return sums["loss"], sums

    def gradient(*given: Any) -> tuple[Tree, dict[str, Array]]:
        found, sums = jax.grad(loss, has_aux=True)(*given)
        return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), found), sums

    of_all = partial(over_micro_batches, gradient)
    gradients_of = on_own_rows(devices, of_all, separate=not uses_policy(config))  # the policy sees means over all rows

    def apply(gradients: Tree, told: Tree, params: Tree, moments: Tree) -> tuple[Tree, Tree]:
        changes, moments = optimizer.update(gradients, moments, params, **told)
        return optax.apply_updates(params, changes), moments

    def step(
        params: Tree,
        moments: Tree,
        fixed: dict[str, Tree],
        batch: dict[str, Array],
        number: Int[Array, ""],
        pace: Float[Array, "5"] | None = None,
        skips: bool = False,
        active: bool | Bool[Array, ""] = True,
    ) -> tuple[Tree, Tree, dict[str, Float[Array, ""]]]:
        untouched = fixed.keys() - {"materialized"}
        mask = softened(supermask, softness, pace, number)

        def select(trained: Tree) -> tuple[Tree, Tree]:
            variables = {"params": parts.put(trained, params), **fixed}
            seen = quantized(variables, config.precisions)
            variables = materialize(seen, mask, devices.selecting(mask))
            return parts.apart(devices.for_computing(variables), untouched)

        # Every matrix is quantised and every mask selected once per update, before the scan over the layers. In the scan, each selection
        # would wait for the previous layer, and the arrays that the backward pass needs would be copied.
        trained, pull_back, rest = jax.vjp(select, parts.pick(params), has_aux=True)
        key = jax.random.fold_in(jax.random.key(seed), number)
        reservoirs = probes(config, moments, skips)
        used, rest = cast(config, parts, (trained, rest), untouched)
        gradients, sums = gradients_of({**used, **reservoirs}, rest, batch, key)
        told = {name: gradients.pop(name) for name in reservoirs} | ({} if pace is None else {"pace": pace})
        (gradients,) = pull_back(gradients)
        targets = jnp.maximum(sums["targets"], 1)  # a small update of a masked language model may have none
        gradients = jax.tree.map(lambda g: g / targets, gradients)
        norm = optax.tree.norm(gradients)
        applied = jnp.isfinite(sums["loss"]) & jnp.isfinite(norm) & active
        trained, moments = only_if(applied, devices, partial(apply, gradients, told), (parts.pick(params), moments))
        return parts.put(trained, params), moments, {**sums, "norm": norm}

    return step


def softened(
    supermask: Supermask, softness: Number, pace: Float[Array, "5"] | None, number: Int[Array, ""]
) -> Supermask:
    """`supermask` with the temperature of the update after `number` others; as it is without `softness`."""
    if not is_on(softness):
        return supermask
    assert pace is not None  # which says how far the run is
    return replace(supermask, temperature=temperature(softness, pace, number))


def cast(
    config: ModelConfig, parts: TrainedParts, variables: tuple[Tree, Tree], untouched: Iterable[str]
) -> tuple[Tree, Tree]:
    """The trained and the other variables in the type of the computation, on accelerators.

    On a CPU, each product casts its matrix: this takes hardly longer there, and the gradients of matrices are never rounded to bfloat16.
    Elsewhere they are rounded once for each micro-batch, and summed in float32.
    """
    return variables if on_cpu() else parts.apart(computing(parts.together(*variables), config.dtype), untouched)


def only_if(applied: Bool[Array, ""], devices: Devices, change: Callable[..., Tree], before: tuple[Tree, Tree]) -> Tree:
    """`change(*before)` if `applied`, else `before`: parameters and moments."""
    if devices.platform == "cpu":
        # jnp.where would be fused with the update, and change the last bits of older runs.
        return jax.lax.cond(applied, change, lambda *unchanged: unchanged, *before)
    # A condition would copy the whole state.
    return jax.tree.map(lambda new, old: jnp.where(applied, new, old), change(*before), before)


def over_micro_batches(
    gradient: Callable[[Tree, Tree, dict[str, Array], Array], tuple[Tree, dict[str, Array]]],
    trained: Tree,
    fixed: Tree,
    batch: dict[str, Shaped[Array, "micro_batches rows *length"]],
    key: Array,
) -> tuple[Tree, dict[str, Array]]:
    """The sum of `gradient`, which returns a gradient and sums, over the micro-batches, one at a time."""
    first = {name: array[0] for name, array in batch.items()}
    micro_batches = len(batch["source"])
    if micro_batches == 1:
        return gradient(trained, fixed, first, key)

    def add(total: Tree, item: tuple[dict[str, Array], Int[Array, ""]]) -> tuple[Tree, None]:
        micro_batch, index = item
        more = gradient(trained, fixed, micro_batch, jax.random.fold_in(key, index))
        return jax.tree.map(jnp.add, total, more), None

    shapes = jax.eval_shape(gradient, trained, fixed, first, key)
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
    return jax.lax.scan(add, zeros, (batch, jnp.arange(micro_batches)))[0]

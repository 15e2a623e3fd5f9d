"""Where the variables and batches of a model lie on a mesh of devices. The modules of a network know nothing of it.

The mesh has two axes. The devices along `data` share out the rows of a batch. Those along `model` share out the heads of attention and
the features of feed-forward networks (Shoeybi et al. 2019, arXiv 1909.08053).

| what | where |
|---|---|
| scores, trained weights, the moments of Adam | in parts over all devices (Rajbhandari et al. 2020, arXiv 1910.02054) |
| random and frozen weights; trained weights and W ⊙ M in the computation | over `model` as `_COLUMNS` and `_ROWS` say; else on all |
| batches | their rows over `data` |

A mask is selected where its scores lie, so no program gathers scores. Its bits then travel to where W lies, and are multiplied there.
On one device, all of this leaves a program unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import Array, Bool, Float, Shaped

from one_layer.layers.materializing import Selecting
from one_layer.layers.quantization import VECTORS
from one_layer.layers.trees import Path
from one_layer.models.config import ModelConfig
from one_layer.selection.counting import BLOCK
from one_layer.supermask import Supermask
from one_layer.system.errors import UserError

DATA, MODEL = "data", "model"
_SKIPS = 6  # the place of the one argument of a training step that chooses its program
_COLUMNS = ("query", "key", "value", "ffn_in", "ffn_gate")  # projections whose outputs are shared out over `model`
_ROWS = ("output", "ffn_out")  # projections that read such outputs

Tree = Any


@dataclass(frozen=True)
class Devices:
    """A mesh of devices with the axes `data` and `model`."""

    mesh: Mesh

    @classmethod
    def arranged(cls, data: int = -1, model: int = 1, devices: Sequence[Any] | None = None) -> Devices:
        """These devices, by default all of all processes, `data` x `model` of them; -1 stands for as many as there are.

        Raises: UserError if the product is not the number of devices.
        """
        devices = jax.devices() if devices is None else devices
        known = model if data == -1 else data
        shape = (len(devices) // known if data == -1 else data, len(devices) // known if model == -1 else model)
        if shape[0] * shape[1] != len(devices):
            raise UserError(
                f"mesh.data={data} and mesh.model={model} do not arrange the {len(devices)} devices that are here "
                f"({devices[0].platform}); their product must be {len(devices)}, and mesh.data=-1 takes what mesh.model leaves"
            )
        axes = (AxisType.Auto, AxisType.Auto)
        return cls(jax.make_mesh(shape, (DATA, MODEL), axis_types=axes, devices=devices))

    @classmethod
    def holding(cls, tree: Tree) -> Devices:
        """The devices that the arrays of `tree` were placed on; one device if nobody placed them."""
        for leaf in jax.tree.leaves(tree):
            sharding = getattr(leaf, "sharding", None)
            if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, Mesh):
                return cls(sharding.mesh)
        return cls(Mesh(np.array([[jax.devices()[0]]]), (DATA, MODEL)))

    @property
    def many(self) -> bool:
        """Whether there is more than one device."""
        return self.mesh.size > 1

    @property
    def platform(self) -> str:
        """What the devices are: cpu, gpu (cuda where they are only described) or tpu."""
        return str(self.mesh.devices.flat[0].platform)

    def memory_left(self) -> int:
        """The bytes of memory that are left on a device of this process; 0 where it does not say."""
        statistics = self.mesh.local_devices[0].memory_stats() or {}
        return max(0, statistics.get("bytes_limit", 0) - statistics.get("bytes_in_use", 0))

    def check(self, model: ModelConfig) -> None:
        """Checks that the axis `model` divides what it shares out. Raises: UserError if not."""
        parts = self.mesh.shape[MODEL]
        for name in ("heads", "ffn"):
            if getattr(model, name) % parts:
                raise UserError(
                    f"mesh.model is {parts}, which does not divide model.{name}={getattr(model, name)}; give one that does"
                )

    # Where an array lies

    def stored(self, path: Path, shape: tuple[int, ...]) -> NamedSharding:
        """Of scores, trained weights and moments, by the path of the variable: a matrix lies on all devices in parts.

        Parts are columns, or rows over `model` and columns over `data` where the computation shares out rows. If all devices do not divide
        the matrix, fewer have a part of it. Vectors (biases, the scales of norms) are small, and so on every device.
        """
        if len(shape) < 2 or path[-1] in VECTORS:
            return self._sharding()
        leading, data, model = [None] * (len(shape) - 2), self.mesh.shape[DATA], self.mesh.shape[MODEL]
        if self._shares_rows(path, shape):
            return self._sharding(*leading, MODEL, DATA)
        for axes, parts in (((MODEL, DATA), model * data), (DATA, data), (MODEL, model)):
            if shape[-1] % parts == 0:
                return self._sharding(*leading, None, axes)
        return self._sharding()

    def computing(self, path: Path, shape: tuple[int, ...]) -> NamedSharding:
        """Of weights in the computation, by the path of the variable. A matrix has the layer axis first, or none."""
        if self._shares_rows(path, shape):
            return self._sharding(*[None] * (len(shape) - 2), MODEL)
        if _module(path) in _COLUMNS and shape[-1] % self.mesh.shape[MODEL] == 0:
            return self._sharding(*[None] * (len(shape) - 1), MODEL)
        return self._sharding()

    def journey(self, path: Path, shape: tuple[int, ...]) -> list[NamedSharding]:
        """The places of a mask from `stored` to `computing`. What must be whole is gathered over one axis of the mesh after the other.

        For both at once, XLA would sum arrays with zeros on a pod of TPUs, which sends twice the bytes.
        """
        stored, computing = self.stored(path, shape), self.computing(path, shape)
        if self.mesh.shape[MODEL] == 1 or computing.spec or tuple(stored.spec)[-1:] != ((MODEL, DATA),):
            return [stored, computing]
        return [stored, self._sharding(*[None] * (len(shape) - 1), MODEL), computing]

    def _shares_rows(self, path: Path, shape: tuple[int, ...]) -> bool:
        """Whether the rows of the matrix lie over `model`. The selection counts them in blocks, so every part must have whole blocks."""
        matrix = _module(path) in _ROWS and path[-1] not in VECTORS
        return matrix and shape[-2] % (BLOCK * self.mesh.shape[MODEL]) == 0 and shape[-1] % self.mesh.shape[DATA] == 0

    def stored_tree(self, tree: Tree) -> Tree:
        """`stored` for every array (or shape) of a tree of trained variables, or of an optimiser's state for them."""
        return jax.tree_util.tree_map_with_path(lambda path, leaf: self.stored(_names(path), leaf.shape), tree)

    def computing_tree(self, tree: Tree) -> Tree:
        """`computing` for every array (or shape) of a tree of variables."""
        return jax.tree_util.tree_map_with_path(lambda path, leaf: self.computing(_names(path), leaf.shape), tree)

    def _sharding(self, *axes: Any) -> NamedSharding:
        return NamedSharding(self.mesh, P(*axes))

    # From NumPy to the devices, and back

    def place(self, path: Path, array: np.ndarray) -> Array:
        """Puts the variable at `path`, which begins with its collection, where it belongs. Every process has the whole array."""
        if not self.many:
            return jnp.asarray(array)
        sharding = self.stored(path, array.shape) if path[0] == "params" else self.computing(path, array.shape)
        return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])

    def batch(self, batch: dict[str, np.ndarray]) -> dict[str, Array] | dict[str, np.ndarray]:
        """Puts the rows of an update, [micro-batches, rows, width], on the devices of `data`. A process has the rows of its own devices."""
        if not self.many:
            return batch
        sharding = self._sharding(None, DATA)
        return {name: jax.make_array_from_process_local_data(sharding, array) for name, array in batch.items()}

    def rows(self, array: Shaped[np.ndarray, "rows *rest"], fill: Any = None) -> Any:
        """Puts the rows of an evaluation batch on the devices of `data`, [padded *rest]. Rows are added so that their number divides.

        They hold `fill`, or repeat the last row.
        """
        if not self.many:
            return array
        missing = -len(array) % self.mesh.shape[DATA]
        more = np.repeat(array[-1:], missing, axis=0)
        whole = np.concatenate([array, more if fill is None else np.full_like(more, fill)])
        return jax.make_array_from_callback(whole.shape, self._sharding(DATA), lambda index: whole[index])

    def shares(self) -> tuple[int, range]:
        """The number of parts that a batch has, and the parts of them that this process reads."""
        parts = self.mesh.shape[DATA]
        mine = sorted({int(np.argwhere(self.mesh.devices == device)[0][0]) for device in self.mesh.local_devices})
        return parts, range(mine[0], mine[-1] + 1)

    def initial_moments(self, init: Callable[[Tree], Tree], params: Tree) -> Tree:
        """The optimiser's state for `params`, made where it belongs."""
        if not self.many:
            return init(params)
        return jax.jit(init, out_shardings=self.stored_tree(jax.eval_shape(init, params)))(params)

    # Inside a program

    def jit_step(self, step: Callable[..., Any], params: Tree, moments: Tree, fixed: Tree) -> Callable[..., Any]:
        """Compiles what `one_layer.training.step.train_step` makes. `params`, `moments` and `fixed` are trees of shapes or arrays."""
        if not self.many:
            return jax.jit(step, donate_argnums=(0, 1), static_argnums=_SKIPS)
        state = self.stored_tree(params), self.stored_tree(moments)
        return jax.jit(
            step,
            in_shardings=(*state, self.computing_tree(fixed), self._sharding(None, DATA), None, None),
            out_shardings=(*state, self._sharding()),
            donate_argnums=(0, 1),
            static_argnums=_SKIPS,
        )

    def for_computing(self, variables: Tree) -> Tree:
        """Brings weights, inside a program, to where the computation needs them, and their gradients to where they are stored."""
        return _brought(self, variables) if self.many else variables

    def selecting(self, supermask: Supermask) -> Selecting:
        """How these devices select masks, several at once on accelerators and where they share out the work, and multiply them with W.

        One bit of an entry of M travels to where W lies, or two for masks with signs. The gradient is computed where the scores lie.
        """
        if not self.many:
            return Selecting("one" if self.platform == "cpu" else "all")
        if supermask.dynamic_scale or supermask.temperature is not None:
            # These masks have other values; W ⊙ M travels instead.
            return Selecting("shape", _layout)
        signs = "sign" in supermask.kinds
        return Selecting("shape", _layout, lambda path, weights, mask: _product(self, signs, path, weights, mask))


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _brought(devices: Devices, variables: Tree) -> Tree:
    return jax.lax.with_sharding_constraint(variables, devices.computing_tree(variables))


def _back(devices: Devices, _: None, gradients: Tree) -> tuple[Tree]:
    # The constraint's own gradient would bring whole matrices to where the weights were, and from there to the scores.
    return (jax.lax.with_sharding_constraint(gradients, devices.stored_tree(gradients)),)


_brought.defvjp(lambda devices, variables: (_brought(devices, variables), None), _back)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _product(devices: Devices, signs: bool, path: Path, weights: Array, mask: Array) -> Array:
    def travelled(chosen: Bool[Array, "*shape"]) -> Float[Array, "*shape"]:
        # Without the first place and the barriers, XLA moves the packing behind the transfer, which then moves whole numbers.
        bits = jnp.packbits(chosen, axis=-2)
        for place in devices.journey(path, mask.shape):
            bits = jax.lax.optimization_barrier(jax.lax.with_sharding_constraint(bits, place))
        return jnp.unpackbits(bits, axis=-2, count=mask.shape[-2]).astype(mask.dtype)

    spread = travelled(mask > 0) - travelled(mask < 0) if signs else travelled(mask > 0)
    spread = jnp.where(jnp.isnan(mask[..., :1, :1]), jnp.nan, spread)  # a broken mask is NaN everywhere, and stays so
    return weights * jax.lax.with_sharding_constraint(spread, devices.computing(path, spread.shape))


def _forward(devices: Devices, signs: bool, path: Path, weights: Array, mask: Array) -> tuple[Array, Any]:
    return _product(devices, signs, path, weights, mask), (weights, mask.ndim)


def _backward(devices: Devices, signs: bool, path: Path, kept: Any, gradient: Array) -> tuple[Array, Array]:
    weights, axes = kept
    gradient = jax.lax.with_sharding_constraint(gradient, devices.stored(path, gradient.shape))
    # Its own part of W: if both passes shared W, broadcast to all layers, XLA would cut it here and, for TPUs, gather it there.
    of_mask = gradient * jax.lax.with_sharding_constraint(weights, devices.stored(path, weights.shape))
    # Nothing trains W, so nothing reads its gradient.
    return jnp.zeros_like(weights), of_mask.sum(axis=0) if axes < of_mask.ndim else of_mask


_product.defvjp(_forward, _backward)


def fetch(tree: Tree) -> Tree:
    """The arrays of `tree` as whole NumPy arrays, in every process. All processes must call this."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if isinstance(leaf, jax.Array)]
    if all(leaf.is_fully_addressable or leaf.is_fully_replicated for leaf in leaves):
        return jax.device_get(tree)
    return multihost_utils.process_allgather(tree, tiled=True)


def _module(path: Path) -> str:
    return path[-2] if len(path) > 1 else ""


def _layout(path: Path) -> bool:
    """Whether the rows of the scores at `path` may be shared out."""
    return _module(path) in _ROWS


def _names(path: Any) -> Path:
    return tuple(key.key for key in path if isinstance(key, jax.tree_util.DictKey))

"""The matrices of a model as NumPy arrays by role: random weights, scores and masks; and the same model under other masks.

The roles are those of `one_layer.models.roles`, for instance `encoder/ffn/in`. An array has a leading axis for the layers where it differs
from layer to layer, so `masks[role] * random[role]` is the matrix, or the matrices, that the model multiplies by. (Under
`model.dynamic_scale`, it multiplies them by √(size / kept) besides, and under `model.gains` by the gains.)
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float32, Int8, UInt8

from one_layer.layers.trees import Path, Shape, Variables, flatten_dict, variables_of
from one_layer.models.config import ModelConfig
from one_layer.models.sharding import fetch
from one_layer.models.weights import roles, shapes
from one_layer.supermask import BROKEN, Supermask
from one_layer.system.errors import UserError

Matrices = Mapping[str, np.ndarray]


def matrices(config: ModelConfig, variables: Variables, *collections: str, leaf: str = "kernel") -> Matrices:
    """The matrices with the name `leaf` in these collections, by role."""
    names = roles(config)
    chosen = {path: array for path, array in flatten_dict(variables).items() if path[0] in collections}
    return _to_read({names[path[1:-1]]: np.asarray(fetch(array)) for path, array in chosen.items() if path[-1] == leaf})


def masks(config: ModelConfig, variables: Variables) -> Matrices:
    """The masks by role, int8, of the values of `Supermask.values`. Raises: UserError for scores that are NaN."""
    names, flat = roles(config), flatten_dict(variables)
    return _to_read({names[path[1:-1]]: _mask(config, flat, path, shape) for path, shape in _masked(config).items()})


def with_masks(config: ModelConfig, variables: Variables, given: Mapping[str, Any]) -> Variables:
    """`variables` with packed masks in the place of scores: those of `given` by role, and the model's own for other roles.

    Raises: UserError for an unknown role, a wrong shape, and values that are none of a mask.
    """
    own, names = masks(config, variables), roles(config)
    checked = {**own, **{role: _checked(config, own, role, mask) for role, mask in given.items()}}
    flat = flatten_dict(variables)
    others = {path: leaf for path, leaf in flat.items() if path[0] != "packed" and path[-1] != "scores"}
    modules = [path[1:-1] for path in _masked(config)]
    packed = {module: pack(checked[names[module]], config.supermask) for module in modules}
    return with_bits(others, {(*module, kind): bits for module in modules for kind, bits in packed[module].items()})


def with_bits(flat: Mapping[Path, Any], bits: Mapping[Path, UInt8[np.ndarray, "*rows bytes"]]) -> Variables:
    """The variables of `flat` with these packed masks, whose paths have no collection; each layer gets a row of bits."""
    packed = {}
    for (*module, kind), array in bits.items():
        kernels = (("frozen", *module, "kernel"), ("random", *module, "kernel"))
        layers = next(flat[kernel] for kernel in kernels if kernel in flat).shape[:-2]
        packed["packed", *module, kind] = np.broadcast_to(array, np.broadcast_shapes(array.shape, (*layers, 1)))
    return variables_of(jax.device_put({**flat, **packed}))


def select(
    scores: Float32[Array | np.ndarray, "*layers rows columns"], supermask: Supermask
) -> Int8[np.ndarray, "*layers rows columns"]:
    """The mask of each layer's scores. Raises: UserError for scores that are NaN."""
    whole = scores.reshape(-1, *scores.shape[-2:])
    layers = [np.asarray(supermask.select(layer)) for layer in whole]
    if any((layer == BROKEN).any() for layer in layers):
        raise UserError("the scores are not numbers: no mask can be made of this checkpoint; use another")
    return np.stack(layers).reshape(scores.shape)


def pack(
    mask: Int8[np.ndarray, "*layers rows columns"], supermask: Supermask
) -> dict[str, UInt8[np.ndarray, "*layers bytes"]]:
    """The masks as bits by their kinds (`Supermask.kinds`), as `one_layer.supermask.unpack_mask` reads them."""
    flat = mask.reshape(*mask.shape[:-2], -1)
    kinds = {"mask": flat != 0, "sign": flat < 0}
    return {kind: np.packbits(kinds[kind], axis=-1, bitorder="little") for kind in supermask.kinds}


def _to_read(found: dict[str, np.ndarray]) -> Matrices:
    """`found`, in which nobody can change an array of the model by accident."""
    views = {role: array.view() for role, array in found.items()}
    for view in views.values():
        view.flags.writeable = False
    return MappingProxyType(views)


def _masked(config: ModelConfig) -> dict[Path, Shape]:
    """Path and shape of the scores of every masked matrix."""
    return {path: shape for path, shape in shapes(config).items() if path[-1] == "scores"}


def _mask(config: ModelConfig, flat: dict[Path, Any], path: Path, shape: Shape) -> Int8[np.ndarray, "..."]:
    """The mask for scores of this shape at `path`, from the scores or the bits in `flat`."""
    if path in flat:
        return select(fetch(flat[path]), config.supermask)

    def unpacked(kind: str) -> Int8[np.ndarray, "..."]:
        bits = np.asarray(fetch(flat["packed", *path[1:-1], kind]))
        rows = bits.reshape(-1, bits.shape[-1])[: math.prod(shape[:-2])]  # one of them, where layers share one mask
        ones = np.unpackbits(rows, axis=-1, count=math.prod(shape[-2:]), bitorder="little")
        return ones.reshape(shape).astype(np.int8)

    bits = {kind: unpacked(kind) for kind in config.supermask.kinds}
    return bits.get("mask", np.ones(shape, np.int8)) * (1 - 2 * bits.get("sign", np.zeros(shape, np.int8)))


def _checked(config: ModelConfig, own: Matrices, role: str, mask: Any) -> Int8[np.ndarray, "..."]:
    if role not in own:
        known = f"give one of {', '.join(own)}" if own else "this model has no masks"
        raise UserError(f"no mask of the model has the role {role!r:.120}; {known}")
    given, values = np.asarray(mask), config.supermask.values
    if given.shape != own[role].shape:
        raise UserError(f"the mask of {role} has the shape {given.shape}; give one of the shape {own[role].shape}")
    right = np.isin(given, values) if given.dtype.kind in "biuf" else np.zeros(given.shape, bool)
    if not right.all():
        raise UserError(
            f"the mask of {role} has the value {given[~right][0]!s:.40}; with model.selection={config.selection} its values are "
            f"{', '.join(map(str, values))}"
        )
    return given.astype(np.int8)

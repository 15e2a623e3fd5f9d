"""W ⊙ M computed once for a whole model, whatever its network is: masks are selected, or unpacked, and multiplied with their W."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int8

from one_layer.layers.beside import BESIDE, with_beside
from one_layer.layers.freezing import STACKS
from one_layer.layers.trees import Path, Variables, flatten_dict, unflatten_dict
from one_layer.supermask import Supermask, unpack_mask


def trained_leaf(kind: str, mask: Supermask) -> str | None:
    """The name of the trained array of a matrix: `kernel` or `scores`; None if it has none."""
    return {"trained": "kernel", "masked": None if mask.keeps_all else "scores"}.get(kind)


@dataclass(frozen=True)
class Selecting:
    """How masks are selected and applied on one device or on many; nothing of it changes a mask.

    `at_once` tells how many masks are selected at the same time. `one` after the other stay in a CPU's cache. Those of one `shape` take
    one reduction between devices for each pass. `all` take as few kernels and passes as the slowest mask, for which a GPU waits. `layout`
    tells by the path how scores lie on the devices; those that lie alike count as of one shape. `multiply` makes W ⊙ M at a path, and may
    bring M to where W lies.
    """

    at_once: Literal["one", "shape", "all"] = "one"
    layout: Callable[[Path], Any] = lambda path: None
    multiply: Callable[[Path, Array, Array], Array] = lambda path, weights, chosen: weights * chosen


ONE_AFTER_THE_OTHER = Selecting()


def materialize(
    variables: Variables, mask: Supermask, selecting: Selecting = ONE_AFTER_THE_OTHER, packed: bool = False
) -> Variables:
    """Replaces scores and their W by W ⊙ M, computed once, in the collection `materialized`; with `packed`, also packed masks and their W.

    In a stack, scores and W each have the layer axis first unless the layers share them. The network computes the same numbers from
    the result, without selecting masks at every call. Training, evaluation and decoding use this. A product that `materialized` has
    already is kept. What is trained beside the masks goes into the products.
    """
    flat = {name: flatten_dict(variables.get(name, {})) for name in ("params", "random", "frozen")}
    held = flatten_dict(variables.get("packed", {}))
    bits = held if packed else {}
    products = flatten_dict(variables.get("materialized", {}))
    scores = {path: flat["params"].pop(path) for path in list(flat["params"]) if path[-1] == "scores"}

    def completed(kernel: Path, made: Array) -> Array:
        own = {name: flat["params"].pop((*kernel[:-1], name), None) for name in BESIDE}
        return with_beside(made, {name: array for name, array in own.items() if array is not None})

    def weights_of(kernel: Path) -> Any:
        held = next((flat[name] for name in ("frozen", "random", "params") if kernel in flat[name]), {})
        return held.pop(kernel, None)

    for kernel in products:
        scores.pop((*kernel[:-1], "scores"), None)
        weights_of(kernel)
        products[kernel] = completed(kernel, products[kernel])
    entries = select(scores, mask, selecting)
    for path in (*entries, *(path for path in bits if path[-1] == mask.kinds[0])):
        of_table = any(name.endswith("embedding") for name in path)  # which has a row for each token
        kernel, axis = (*path[:-1], "kernel"), -2 if of_table else -1
        weights = weights_of(kernel)
        if path in entries:
            chosen = mask.applied(entries[path], scores[path], axis)
        else:
            own = {kind: bits[*path[:-1], kind] for kind in mask.kinds}
            chosen = mask.scaled(unpack_mask(own, weights.shape[-2:]), axis)
        products[kernel] = completed(kernel, selecting.multiply(kernel, weights, chosen))
    bare = {path[:-1] for path in flat["params"] if path[-1] in BESIDE} - {path[:-1] for path in held}
    for kernel in sorted((*module, "kernel") for module in bare):  # at keep 1 there are no masks
        products[kernel] = completed(kernel, weights_of(kernel))
    made = {name: unflatten_dict(arrays) for name, arrays in (flat | {"materialized": products}).items()}
    kept = {name: tree for name, tree in variables.items() if not (packed and name == "packed")}
    return {**kept, **{name: tree for name, tree in made.items() if tree or name in variables or name not in flat}}


def select(
    scores: Mapping[Path, Float[Array, "*layers rows columns"]],
    mask: Supermask,
    selecting: Selecting = ONE_AFTER_THE_OTHER,
) -> dict[Path, Int8[Array, "*layers rows columns"]]:
    """Selects the entries of all masks (see `Supermask.select`) by path; the layer axis is first if the scores have one.

    One loop selects all masks of one shape, so XLA compiles one selection per shape instead of one per matrix.
    """
    alike: dict[tuple[Any, ...], list[Path]] = {}
    for path, leaf in scores.items():
        alike.setdefault((leaf.shape[-2:], selecting.layout(path)), []).append(path)
    layers = [
        [jax.lax.stop_gradient(scores[path]).reshape(-1, *shape) for path in paths]
        for (shape, _), paths in alike.items()
    ]
    groups = list(map(jnp.concatenate, layers))
    if groups and selecting.at_once == "all":
        entries = mask.select_each(groups)
    else:
        over = jax.vmap(mask.select) if selecting.at_once == "shape" else partial(jax.lax.map, mask.select)
        entries = [mask.select(group[0])[None] if len(group) == 1 else over(group) for group in groups]
    found: dict[Path, Array] = {}
    for paths, parts, made in zip(alike.values(), layers, entries, strict=True):
        ends = np.cumsum([len(part) for part in parts])
        for path, part in zip(paths, jnp.split(made, ends[:-1].tolist()), strict=True):
            found[path] = part if scores[path].ndim == 3 else part[0]
    return found


def computing(variables: Variables, dtype: str) -> Variables:
    """`variables` with the matrices of all stacks in `dtype`, so that no use has to cast them.

    A W that still waits for its mask stays as it is. So do tables, whose rows are looked up in float32, and heads.
    """
    if dtype == "float32":
        return variables
    masked = {path[1:-1] for path in flatten_dict(variables) if path[-1] in ("scores", "mask", "sign")}

    def typed(path: tuple[Any, ...], leaf: Array) -> Array:
        collection, *module, name = (each.key for each in path)
        used = name == "kernel" and collection in ("params", "random", "frozen", "materialized")
        return leaf.astype(dtype) if used and module[0] in STACKS and tuple(module) not in masked else leaf

    return jax.tree_util.tree_map_with_path(typed, variables)

"""Trees of variables as flat dictionaries, in which the key of an array is its path, and back, as Flax's functions of these names do it."""

from collections.abc import Mapping
from typing import Any

Path = tuple[str, ...]
Shape = tuple[int, ...]
Variables = dict[str, Any]  # a tree of them; the first key is the collection


def flatten_dict(tree: Mapping[str, Any]) -> dict[Path, Any]:
    """The leaves of nested dictionaries by their paths. Dictionaries without leaves leave nothing."""
    flat: dict[Path, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping):
            flat |= {(name, *path): leaf for path, leaf in flatten_dict(value).items()}
        else:
            flat[name,] = value
    return flat


def unflatten_dict(flat: Mapping[Path, Any]) -> dict[str, Any]:
    """The nested dictionaries whose leaves have these paths."""
    tree: dict[str, Any] = {}
    for (*parents, name), leaf in flat.items():
        inner = tree
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[name] = leaf
    return tree


def variables_of(flat: Mapping[Path, Any]) -> Variables:
    """The same for the variables of a model, which always have the collections `params` and `random`."""
    return {"params": {}, "random": {}, **unflatten_dict(flat)}

"""Digests of what a checkpoint holds, because not every flipped byte makes Orbax fail."""

import hashlib
import json
from typing import Any

import jax
import numpy as np

from one_layer.models.sharding import fetch


def digest(tree: Any) -> str:
    """BLAKE2b (128 bits, hexadecimal) of the names, types, shapes and bits of all arrays."""
    found = hashlib.blake2b(digest_size=16)
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        array = fetch(leaf)  # whole arrays, one after the other, so that the digest does not depend on the devices
        found.update(f"{jax.tree_util.keystr(path)} {array.dtype} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)  # bfloat16 has no buffer of its own
    return found.hexdigest()


def digest_of_text(progress: dict[str, Any]) -> str:
    """The same of what JSON makes of a progress."""
    return hashlib.blake2b(json.dumps(progress, sort_keys=True).encode(), digest_size=16).hexdigest()

"""`frozen.npz` of a run folder: fixed arrays that no seed gives, such as an imported model's random layer.

Checkpoints hold the trained arrays, and the seed usually gives the others. This file, written once, holds fixed arrays that the seed
does not give; they replace those of `initialize`. Its names are those of the variables, COLLECTION/path/to/leaf.

`start.npz` of a fine-tuned run has the same form. It holds the trained arrays with which the run begins.
"""

import hashlib
import io
from pathlib import Path
from typing import Any

import jax
import numpy as np

from one_layer.layers.trees import Variables
from one_layer.models.sharding import Devices
from one_layer.system.errors import UserError
from one_layer.system.files import write_atomically


def write_frozen(path: Path, variables: Variables) -> None:
    """Writes the arrays of these collections. If there are none, there is no file afterwards."""
    arrays: dict[str, Any] = {name: np.asarray(leaf) for name, leaf in _named(variables)}
    if not arrays:
        path.unlink(missing_ok=True)
        return
    content = io.BytesIO()
    np.savez(content, **arrays)
    write_atomically(path, content.getvalue())


def with_frozen(path: Path, variables: Variables) -> Variables:
    """`variables`, with the arrays of the file in place of their own; unchanged if there is no file.

    Raises: UserError for a file that is damaged or of another model.
    """
    arrays = read_frozen(path)
    leaves = dict(_named(variables))
    for name, array in arrays.items():
        if name not in leaves or array.shape != leaves[name].shape or array.dtype != leaves[name].dtype:
            wanted = f"{leaves[name].dtype} {list(leaves[name].shape)}" if name in leaves else "no such array"
            raise UserError(
                f"{path} has {array.dtype} {list(array.shape)} as {name}, but the model of config.json has {wanted}; restore the run's "
                "own files, or import the model again"
            )
    devices = Devices.holding(variables)
    replaced = [
        devices.place(tuple(name.split("/")), arrays[name]) if name in arrays else leaf for name, leaf in leaves.items()
    ]
    return jax.tree.unflatten(jax.tree.structure(variables), replaced)


def fingerprint(path: Path) -> str | None:
    """BLAKE2b (128 bits, hexadecimal) of the file, by which a checkpoint recognises it; None if there is no file."""
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest() if path.exists() else None


def read_frozen(path: Path) -> dict[str, np.ndarray]:
    """The arrays of the file by name; none if there is no file. Raises: UserError for a damaged file."""
    if not path.exists():
        return {}
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        if strange := [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]:
            raise ValueError(f"{strange[0]!r:.200} is not an array")  # NumPy returns the raw bytes of an unknown file
        return arrays
    except Exception as error:  # zipfile, zlib and NumPy raise a dozen types, and each means that the file is damaged
        said = " ".join(f"{type(error).__name__}: {error!s:.200}".split())
        raise UserError(
            f"{path} cannot be read ({said}); restore the run's own file, or import the model again"
        ) from None


def _named(variables: Variables) -> list[tuple[str, Any]]:
    leaves = jax.tree_util.tree_leaves_with_path(variables)
    return [("/".join(key.key for key in path), leaf) for path, leaf in leaves]

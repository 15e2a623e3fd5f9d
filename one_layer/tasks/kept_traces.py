"""Programs that are traced once are kept between processes: a second process neither traces nor lowers them (docs/speed.md)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jaxlib

from one_layer.system import program_cache
from one_layer.system.files import write_atomically

_MOST = 64  # files; one has 0.1 to 0.5 MB
_DIGEST = 32  # bytes of a digest, with which a file begins
_PACKAGE = Path(__file__).resolve().parent.parent


class KeptTraces:
    """A jitted function whose programs are read from files if another process of the same code has traced them.

    `about` names all that the function depends on beside its arguments and the package's sources. The files lie in
    `program_cache.traces()`. Where there is none, the function is called as it is, and so it is on accelerators and on several devices,
    where nothing was measured. A file that is missing, damaged, or of another program is made again. Its content is JAX's portable form
    of a program (`jax.export`).

    Arguments are trees of dicts, lists and tuples of arrays, and so are results.
    """

    def __init__(self, function: Any, about: str) -> None:
        self._function, self._about = function, about
        self._programs: dict[str, Callable[..., Any]] = {}
        self.lower = function.lower

    def __call__(self, *arguments: Any) -> Any:
        """The function's result."""
        folder = program_cache.traces()
        if folder is None or jax.default_backend() != "cpu" or jax.device_count() > 1:
            return self._function(*arguments)
        shapes, tree = jax.tree.flatten(arguments)
        name = self._name(f"{tree} {[(each.shape, str(each.dtype)) for each in shapes]}")
        if name not in self._programs:
            self._programs[name] = self._read(folder / name) or self._make(folder / name, arguments)
        return self._programs[name](*arguments)

    def _name(self, shapes: str) -> str:
        names = ("jax_enable_x64", "jax_default_matmul_precision", "jax_numpy_dtype_promotion")
        numbers = [getattr(jax.config, name) for name in names]
        parts = (self._about, shapes, repr(numbers), _code())
        return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest() + ".trace"

    def _read(self, path: Path) -> Callable[..., Any] | None:
        """The program in a file; None if there is no whole one."""
        from jax import export

        try:
            content = path.read_bytes()
            os.utime(path)  # it was used
        except OSError:
            return None
        program = content[_DIGEST:]
        return jax.jit(export.deserialize(bytearray(program)).call) if content[:_DIGEST] == _digest(program) else None

    def _make(self, path: Path, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        """The program, which is also written if the folder can be written to; the oldest files make room."""
        from jax import export

        exported = export.export(self._function)(*arguments)
        with suppress(OSError):
            program = bytes(exported.serialize())
            write_atomically(path, _digest(program) + program)
            for old in sorted(path.parent.glob("*.trace"), key=lambda each: each.stat().st_mtime)[:-_MOST]:
                old.unlink(missing_ok=True)
        return jax.jit(exported.call)


def _digest(program: bytes) -> bytes:
    return hashlib.blake2b(program, digest_size=_DIGEST).digest()


@lru_cache(maxsize=1)
def _code() -> str:
    """The code that traces and compiles: the versions of JAX and Flax, and a digest of this package's sources."""
    sources = hashlib.blake2b(digest_size=16)
    for path in sorted(_PACKAGE.rglob("*.py")):
        content = path.read_bytes()
        sources.update(f"{path.relative_to(_PACKAGE)} {len(content)}\n".encode() + content)
    return f"{jax.__version__} {jaxlib.__version__} {version('flax')} {sources.hexdigest()}"

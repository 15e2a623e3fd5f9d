"""Compiled programs that are kept between processes: a second process neither traces nor lowers nor compiles them (docs/speed.md)."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jaxlib
import zstandard
from jax.experimental.compilation_cache import compilation_cache
from jax.tree_util import PyTreeDef, default_registry
from jaxlib import xla_client

from one_layer.system import program_cache
from one_layer.system.files import write_atomically

_MOST = 2**28  # bytes of all files; a program has 0.05 to 0.5 MB
_DIGEST = 32  # bytes of a digest, with which a file begins
_PACKAGE = Path(__file__).resolve().parent.parent
_IMPORTED = time.time()  # most sources are imported before this one, and the others moments later

# Of several threads, one compiles: it switches JAX's own cache off meanwhile, for the whole process.
_compiling = threading.RLock()

Run = Callable[[list[Any]], Any]


class KeptProgram:
    """A function whose compiled programs are read from files if another process has compiled them.

    `make` gives the function, and is called only where nothing that is kept serves: what it imports is not needed otherwise. `about` names
    all that the function depends on beside its arguments and the package's sources. The files lie in `program_cache.programs()`. Where
    there is none, JAX compiles the function as any other. So it does on accelerators and on several devices, where nothing was measured,
    and where sources have changed since they were imported, because a file would have the name of the new code. A file that is missing,
    damaged, or of another machine is made again.

    There are two kinds of files. NAME.call has the digest of the program for a call (code, `about`, shapes), and the tree of its results.
    DIGEST.program is named by the program's text before it is compiled, so that a change of the code that leaves the text alone compiles
    nothing.

    Arguments are trees of dicts, lists and tuples of arrays, and so are results.
    """

    def __init__(self, make: Callable[[], Callable[..., Any]], about: str) -> None:
        self._make, self._about = make, about
        self._programs: dict[str, Run] = {}
        self._jitted: Any = None

    @property
    def _function(self) -> Any:
        with _compiling:  # a second one would be traced and compiled again
            if self._jitted is None:
                # A compiled program that is called with a list of arrays must not leave out those that it does not read.
                self._jitted = jax.jit(self._make(), keep_unused=True)
            return self._jitted

    def lower(self, *arguments: Any) -> Any:
        """The program for these arguments, or for shapes in the place of arrays, before it is compiled."""
        return self._function.lower(*arguments)

    def __call__(self, *arguments: Any) -> Any:
        """The function's result."""
        folder = program_cache.programs()
        if folder is None or not _may_keep() or (code := _code()) is None:
            return self._function(*arguments)
        leaves, tree = jax.tree.flatten(arguments)
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):  # a part of a larger program
            return self._function(*arguments)
        leaves = jax.device_put(leaves)
        name = self._name(code, f"{tree} {[(each.shape, str(each.dtype)) for each in leaves]}")
        if name not in self._programs and (result := self._first(folder, name, leaves, arguments)) is not None:
            return result
        run = self._programs.get(name)
        return run(leaves) if run else self._function(*arguments)

    def _first(self, folder: Path, name: str, leaves: list[Any], arguments: tuple[Any, ...]) -> Any:
        """The result of a program's first call; None if another thread has made the program by now, or if the user wants none."""
        with _compiling:
            if name in self._programs or not _wanted():
                return None
            self._programs[name], result = _read(folder, name, leaves) or self._written(folder, name, leaves, arguments)
            return result

    def _name(self, code: str, shapes: str) -> str:
        names = ("jax_enable_x64", "jax_default_matmul_precision", "jax_numpy_dtype_promotion")
        numbers = [getattr(jax.config, name) for name in names]
        return _digest("\0".join((self._about, shapes, repr(numbers), code, _machine())).encode()).hex()

    def _written(self, folder: Path, name: str, leaves: list[Any], arguments: tuple[Any, ...]) -> tuple[Run, Any]:
        """The program and its result. It is also written if the folder can be written to; the oldest files make room."""
        lowered = self.lower(*arguments)
        program = _digest(f"{lowered.as_text()}\0{_machine()}".encode())
        found = _tried(folder, program, lowered.out_tree, leaves)
        if found is None:
            with _compiling_anew():
                executable = lowered.compile().runtime_executable()
            run = _running(executable, lowered.out_tree)
            found = run, run(leaves)
            try:
                content = executable.serialize()
            except jax.errors.JaxRuntimeError:  # JAX gave what this process had read from JAX's cache
                return found
            _write(folder / f"{program.hex()}.program", zstandard.compress(content, 1))
        _write(folder / f"{name}.call", program + lowered.out_tree.serialize_using_proto())
        return found


def _may_keep() -> bool:
    """Whether there is one CPU device alone, and nobody debugs JAX's computations."""
    debugs = any(getattr(jax.config, name) for name in ("jax_disable_jit", "jax_debug_nans", "jax_debug_infs"))
    return not debugs and jax.default_backend() == "cpu" and jax.device_count() == 1


def _wanted() -> bool:
    """Whether the user has left JAX's cache on. While a thread compiles, it is off: ask this behind `_compiling`."""
    return bool(getattr(jax.config, "jax_enable_compilation_cache"))  # noqa: B009  # mypy knows no such field


def _read(folder: Path, name: str, leaves: list[Any]) -> tuple[Run, Any] | None:
    """The program of a call, and its result; None if there are no whole files of it."""
    call = _content(folder / f"{name}.call")
    if call is None:
        return None
    tree = PyTreeDef.deserialize_using_proto(default_registry, call[_DIGEST:])
    return _tried(folder, call[:_DIGEST], tree, leaves)


def _tried(folder: Path, program: bytes, out_tree: PyTreeDef, leaves: list[Any]) -> tuple[Run, Any] | None:
    """The program of a file, and its result; None if there is no whole one, or if it does not run."""
    content = _content(folder / f"{program.hex()}.program")
    if content is None:
        return None
    (device,) = jax.devices()
    try:
        devices = xla_client.DeviceList((device,))
        executable = device.client.deserialize_executable(zstandard.decompress(content), executable_devices=devices)
        run = _running(executable, out_tree)
        return run, jax.block_until_ready(run(leaves))
    except jax.errors.JaxRuntimeError:  # of a processor with other instructions, or without some of its functions
        return None


def _running(executable: Any, out_tree: PyTreeDef) -> Run:
    def run(leaves: list[Any]) -> Any:
        results = executable.execute_sharded(leaves).disassemble_into_single_device_arrays()
        return jax.tree.unflatten(out_tree, [array for (array,) in results])

    return run


def _content(path: Path) -> bytes | None:
    """What `_write` wrote; None if it is not there, or damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    with suppress(OSError):
        os.utime(path)  # it was used
    return content[_DIGEST:] if content[:_DIGEST] == _digest(content[_DIGEST:]) else None


def _write(path: Path, content: bytes) -> None:
    with suppress(OSError):
        write_atomically(path, _digest(content) + content)
        kept = sorted((file.stat().st_mtime, file.stat().st_size, file) for file in path.parent.glob("*.*"))
        surplus = sum(size for _, size, _ in kept) - _MOST
        for _, size, old in kept:
            if surplus > 0:
                old.unlink(missing_ok=True)
                surplus -= size


@contextmanager
def _compiling_anew() -> Iterator[None]:
    """Lets JAX compile without its own cache: what XLA has read from there lacks its functions when it is written a second time."""
    before = jax.config.jax_enable_compilation_cache  # type: ignore[attr-defined]
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", before)
        compilation_cache.reset_cache()


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()


@lru_cache(maxsize=1)
def _code() -> str | None:
    """The code that traces: the versions of JAX and Flax, and a digest of this package's sources. None if these are newer than what was
    imported, by the times of their files."""
    sources = hashlib.blake2b(digest_size=16)
    for path in sorted(_PACKAGE.rglob("*.py")):
        if path.stat().st_mtime > _IMPORTED:
            return None
        content = path.read_bytes()
        sources.update(f"{path.relative_to(_PACKAGE)} {len(content)}\n".encode() + content)
    return f"{jax.__version__} {version('flax')} {sources.hexdigest()}"


@lru_cache(maxsize=1)
def _machine() -> str:
    """What compiles, and for which processor."""
    (device,) = jax.devices()
    fingerprint = xla_client.get_topology_for_devices([device]).fingerprint()
    return f"{jaxlib.__version__} {device.client.platform_version} {fingerprint} {os.environ.get('XLA_FLAGS', '')}"

"""Several processes that train one run together: which of them writes, what they must agree on, and when all of them pause.

All processes run the same program on the same updates. The first one, which leads, writes the files and the log of the run.
"""

import hashlib
import json
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from one_layer.system.errors import UserError


def join(coordinator: str, processes: int, process: int) -> None:
    """Joins the `processes` that meet at `coordinator` (HOST:PORT of the first one). Must be called before anything is computed.

    Raises: UserError if the address or the numbers make no sense, or if the processes do not meet.
    """
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise UserError(f"--distributed={coordinator!r:.200}; give HOST:PORT, an address of the first process")
    if not 0 <= process < processes:
        raise UserError(
            f"--process={process} and --processes={processes}; processes are counted from 0, and there must be at least 1"
        )
    try:
        jax.distributed.initialize(coordinator, processes, process)
    except (RuntimeError, ValueError) as error:
        raise UserError(
            f"process {process} of {processes} did not meet the others at {coordinator} ({str(error).splitlines()[0]:.200}); start all "
            "of them with the same --distributed and --processes, each with a --process of its own"
        ) from None
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # JAX would only note it; while training, `Interruption` takes it


def alone() -> bool:
    """Whether there are no other processes."""
    return jax.process_count() == 1


def leads() -> bool:
    """Whether this process writes the files and the log."""
    return jax.process_index() == 0


@contextmanager
def leader_first(name: str) -> Iterator[None]:
    """A block that the other processes enter when the leader has left it, for instance because it writes what they read."""
    if not leads():
        multihost_utils.sync_global_devices(name)
    yield
    if leads():
        multihost_utils.sync_global_devices(name)


def told_by_the_leader(value: bool) -> bool:
    """The leader's `value`."""
    return bool(multihost_utils.broadcast_one_to_all(np.array(value)))


def agree(values: Mapping[str, Any]) -> None:
    """Checks that all processes have the same `values`. Raises: UserError, in all of them, which names what differs."""
    if alone():
        return
    names = sorted(values)
    known = multihost_utils.process_allgather(_digest(json.dumps(names)))
    if (known != known[0]).any():
        raise UserError("the processes have configs with different keys: start all of them with the same code")
    digests = np.stack([_digest(json.dumps(values[name], default=str)) for name in names])
    found = multihost_utils.process_allgather(digests)
    differing = [name for name, each in zip(names, np.moveaxis(found, 1, 0), strict=True) if (each != each[0]).any()]
    if differing:
        raise UserError(
            f"the processes differ in {', '.join(differing)}: start all of them with the same code, config and text"
        )


@lru_cache(maxsize=1)
def code() -> str:
    """A digest of the package's source."""
    root = Path(__file__).resolve().parents[1]
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def greatest(value: int) -> int:
    """The greatest `value` of all processes. All of them must call this."""
    return int(multihost_utils.process_allgather(np.array(value)).max()) if not alone() else value


class Pause:
    """Lets all processes pause after the same update when one of them wishes to: a signal came, or a checkpoint is due."""

    def __init__(self) -> None:
        self._wishes: jax.Array | None = None  # the number of processes that wished to pause after the update before
        everywhere = jax.make_mesh((jax.device_count(),), ("all",), axis_types=(AxisType.Auto,))
        self._flags = NamedSharding(everywhere, P("all"))
        self._count = jax.jit(jnp.sum, out_shardings=NamedSharding(everywhere, P()))

    def now(self, wished: bool) -> bool:
        """Whether to pause after this update. A process that is alone pauses at once; several do so one update later.

        All processes call this after every update. Nobody waits: a count is read when the next one is under way.
        """
        if alone():
            return wished
        flags = np.full(jax.local_device_count(), wished, np.int32)
        before = self._wishes
        self._wishes = self._count(jax.make_array_from_process_local_data(self._flags, flags))
        if before is None or not int(before):
            return False
        self._wishes = None
        return True


def _digest(text: str) -> np.ndarray:
    return np.frombuffer(hashlib.blake2b(text.encode(), digest_size=16).digest(), np.uint8)

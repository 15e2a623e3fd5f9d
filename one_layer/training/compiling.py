"""The programs of a run's updates, one for each shape of its batches: compiled side by side, while the first of them trains already."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax

from one_layer.data.preparation.parallel import cores

log = logging.getLogger(__name__)

Shape = tuple[int, ...]
_SOON = 2.0  # seconds of compiling of which the log says nothing
_MOST = 8  # programs at the same time: each may take a gigabyte of the host's memory


class Compiling:
    """Compiles the jitted function `step` for some batches, in this order, and as many at the same time as there are pairs of cores.

    XLA compiles outside of Python's lock. JAX keeps what it has compiled, so that a later call of `step` finds it.
    """

    def __init__(
        self, step: Callable[..., Any], state: tuple[Any, ...], batches: Sequence[dict[str, Any]], pace: Any
    ) -> None:
        self._pool = ThreadPoolExecutor(min(max(cores() // 2, 1), _MOST), "compiling")
        self._began = time.perf_counter()
        shapes = jax.tree.map(_shape_of, state)  # updates donate the arrays
        self._programs: dict[Shape, Future[None]] = {}
        for batch in batches:
            self._programs[_shape(batch)] = self._pool.submit(self._compile, step, (*shapes, batch, 0, pace))

    def wait(self, batch: dict[str, Any]) -> None:
        """Waits until the program of this batch's shape is there. Raises: what compiling it has raised."""
        if program := self._programs.pop(_shape(batch), None):
            program.result()

    def close(self) -> None:
        """Gives up what has not begun. The process ends when the programs that are being compiled are done: nothing can stop XLA."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _compile(self, step: Any, given: tuple[Any, ...]) -> None:
        began = time.perf_counter()
        step.lower(*given).compile()
        seconds, whole = (time.perf_counter() - each for each in (began, self._began))
        if whole > _SOON:
            _, rows, *length = _shape(given[3])
            shape = "x".join(map(str, (rows, *length)))
            log.info(
                "compiled the update of batches of %s in %.0f s; %.0f s since training began", shape, seconds, whole
            )


def _shape_of(leaf: Any) -> jax.ShapeDtypeStruct:
    """The shape of an array, and where it must lie: a restored array is bound to its device, and that makes another program."""
    bound = getattr(leaf, "committed", False)
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding if bound else None)


def _shape(batch: dict[str, Any]) -> Shape:
    return tuple(batch["source"].shape)

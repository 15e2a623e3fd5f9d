"""The programs of a run's updates, one for each shape of its batches: compiled side by side, while the first of them trains already."""

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax

from one_layer.data.preparation.parallel import cores

log = logging.getLogger(__name__)

Given = tuple[dict[str, Any], int, Any, bool]  # what a step is given beside its state: batch, number, pace, skips
_Program = tuple[tuple[int, ...], bool]
_SOON = 2.0  # seconds of compiling of which the log says nothing
_MOST = 8  # programs at the same time: each may take a gigabyte of the host's memory


class Compiling:
    """Compiles the jitted function `step` for what it will be given, in this order, and as much at a time as there are pairs of cores.

    XLA compiles outside of Python's lock. JAX keeps what it has compiled, so that a later call of `step` finds it.
    """

    def __init__(self, step: Any, state: tuple[Any, ...], given: Sequence[Given]) -> None:
        self._pool = ThreadPoolExecutor(min(max(cores() // 2, 1), _MOST), "compiling")
        self._began = time.perf_counter()
        self._step, self._state = step, jax.tree.map(_shape_of, state)  # updates donate the arrays
        self._programs = {_program(each): self._pool.submit(self._compile, each) for each in given}

    def wait(self, given: Given) -> None:
        """Waits until the program for this is there. Raises: what compiling it has raised."""
        if (name := _program(given)) not in self._programs:
            self._programs[name] = self._pool.submit(self._compile, given)
        self._programs[name].result()

    def close(self) -> None:
        """Gives up what has not begun. The process ends when the programs that are being compiled are done: nothing can stop XLA."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _compile(self, given: Given) -> None:
        began = time.perf_counter()
        self._step.lower(*self._state, *given).compile()
        seconds, whole = (time.perf_counter() - each for each in (began, self._began))
        if whole > _SOON:
            (_, rows, *length), skips = _program(given)
            shape = "x".join(map(str, (rows, *length))) + (" that skips backward passes" if skips else "")
            log.info(
                "compiled the update of batches of %s in %.0f s; %.0f s since training began", shape, seconds, whole
            )


def _shape_of(leaf: Any) -> jax.ShapeDtypeStruct:
    """The shape of an array, and where it must lie: a restored array is bound to its device, and that makes another program."""
    bound = getattr(leaf, "committed", False)
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=leaf.sharding if bound else None)


def _program(given: Given) -> _Program:
    batch, *_, skips = given
    return tuple(batch["source"].shape), skips

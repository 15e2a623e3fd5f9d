"""For which kind of device a program is made: the devices that are here, or those that `compiling_for` names."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TypeVar

import jax

Value = TypeVar("Value")
_PLATFORM: ContextVar[str] = ContextVar("platform", default="")


@contextmanager
def inside(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """A context in which `variable` has this `value`."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def compiling_for(platform: str) -> AbstractContextManager[None]:
    """Inside it, programs are those of this platform, such as cuda or tpu, and not of the devices that are here."""
    return inside(_PLATFORM, platform)


def on_cpu() -> bool:
    """Whether a program is for XLA's CPU backend."""
    return _platform() == "cpu"


def on_gpu() -> bool:
    """Whether a program is for a GPU."""
    return _platform() in ("gpu", "cuda", "rocm")


def _platform() -> str:
    return _PLATFORM.get() or jax.default_backend()

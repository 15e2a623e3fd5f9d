"""For which kind of device a program is made: the devices that are here, or those that `compiling_for` names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import jax

_PLATFORM: ContextVar[str] = ContextVar("platform", default="")


@contextmanager
def compiling_for(platform: str) -> Iterator[None]:
    """Inside it, programs are those of this platform, such as cuda or tpu, and not of the devices that are here."""
    token = _PLATFORM.set(platform)
    try:
        yield
    finally:
        _PLATFORM.reset(token)


def on_cpu() -> bool:
    """Whether a program is for XLA's CPU backend."""
    return _platform() == "cpu"


def on_gpu() -> bool:
    """Whether a program is for a GPU."""
    return _platform() in ("gpu", "cuda", "rocm")


def _platform() -> str:
    return _PLATFORM.get() or jax.default_backend()

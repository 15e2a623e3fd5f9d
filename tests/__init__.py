"""The tests mirror the packages of one_layer/; modules without `test_` are what they share."""

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent


def mostly_slow(cases: Iterable[Any], quick: Iterable[Any]) -> list[Any]:
    """Parameters of a test of which `make test` runs the `quick` ones alone, because each compiles programs of its own."""
    at_once = list(quick)
    return [case if case in at_once else pytest.param(case, marks=pytest.mark.slow) for case in cases]


def user_error(match: str) -> AbstractContextManager[pytest.ExceptionInfo[Exception]]:
    """What is done in it raises a UserError, whose sentence has something that matches."""
    from one_layer.system.errors import UserError  # the package is imported after typechecker.install()

    return pytest.raises(UserError, match=match)


def until(condition: Callable[[], bool]) -> bool:
    """Waits until `condition` holds, for at most a minute. Returns: whether it does."""
    end = time.monotonic() + 60
    while not (held := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return held

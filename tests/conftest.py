"""Shared fixtures; every jaxtyping annotation of the package is checked at run time while the tests run."""

import gc
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest

from tests import ROOT, typechecker

os.environ.setdefault("JAX_PLATFORMS", "cpu")

typechecker.install()

# A busy machine makes no test fail.
hypothesis.settings.register_profile("without_a_clock", deadline=None)
hypothesis.settings.load_profile("without_a_clock")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first, then those with many tests: at the end, no process waits for a long file of another."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    tests = Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path not in slow, -tests[item.path]))


def pytest_collection_finish() -> None:
    """All programs share one MLIR context, and multiply float32 numbers as the references of the tests do, also on accelerators.

    Garbage is looked for as seldom as in the program, and not among what is there by now.
    """
    from tests import compiling  # imports JAX, which reads the environment

    compiling.share_contexts()
    compiling.multiply_in_float32()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with the real corpora and the golden arrays: ONE_LAYER_SHARED, else ../shared beside the checkout."""
    folder = Path(os.environ.get("ONE_LAYER_SHARED", ROOT.parent / "shared"))
    if not (folder / "golden").is_dir():
        pytest.skip(f"no golden arrays under {folder}; set ONE_LAYER_SHARED to the folder that holds golden/ and data/")
    return folder


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the finished run of `tests.tiny`; nobody may change it."""
    from tests import tiny  # imports JAX

    return tiny.trained(tmp_path_factory)


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[], None]]:
    """Does what Ctrl-C does to Python, even where the tests are a background job of a shell, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)

"""A disk without space, a folder that cannot be written, and a folder in use: one sentence, and the last checkpoint survives."""

import ctypes
import os
import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import tiny_runs

pytestmark = pytest.mark.slow
met: list[str] = []  # the faults that the run has met
SMALL_FILES = 24_000  # bytes: the curves fit, the arrays of a checkpoint do not
DROP_FROM_BOUNDING_SET, DAC_OVERRIDE = 24, 1  # of Linux: prctl(2), capabilities(7)


@pytest.fixture(scope="module")
def half(tmp_path_factory) -> Path:
    """A run after half of its updates, which meets every fault in turn."""
    folder = tmp_path_factory.mktemp("half") / "half"
    tiny_runs.write_text(folder, "translation")
    tiny_runs.run(folder, "translation", {"train.updates": 12})
    return folder


def refused(folder: Path, before: Callable[[], None] | None = None) -> str:
    """Goes on with the run in a process that first calls `before`; returns the sentence by which it ends."""
    done = subprocess.run(
        tiny_runs.command("translation"),
        cwd=folder,
        # It reads compiled programs and modules, but must not write them: others would read what it could only write by halves. Nor can
        # coverage's file be written.
        env=tiny_runs.environment(
            JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="1e9", PYTHONDONTWRITEBYTECODE="1", COVERAGE_PROCESS_CONFIG=""
        ),
        preexec_fn=before,
        capture_output=True,
        timeout=300,
        encoding="utf-8",
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr
    (sentence,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    met.append(sentence)
    return sentence


def test_a_disk_without_space(half):
    """No file may become larger than a few kilobytes, so that a write fails in the middle, as on a full disk."""

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL_FILES, SMALL_FILES))

    sentence = refused(half, limited)
    assert (
        "a checkpoint cannot be written to" in sentence and "the same command continues from the last one" in sentence
    )


def test_a_folder_that_cannot_be_written(half):
    def bound_by_permissions():
        """Root may write anywhere, unless it gives this right up."""
        if os.geteuid() == 0 and ctypes.CDLL(None).prctl(DROP_FROM_BOUNDING_SET, DAC_OVERRIDE, 0, 0, 0):
            os._exit(99)

    folders = [path for path in (half, *half.rglob("*")) if path.is_dir()]
    for path in folders:
        path.chmod(0o555)
    try:
        assert "Permission denied; give a folder and files that can be read and written" in refused(
            half, bound_by_permissions
        )
    finally:
        for path in folders:
            path.chmod(0o755)


def test_after_every_fault_the_run_goes_on_as_if_there_had_been_none(half, tmp_path):
    if len(met) < 2:
        pytest.skip("the run meets its faults in the other tests of this file")
    tiny_runs.run(half, "translation")
    tiny_runs.write_text(tmp_path / "whole", "translation")
    tiny_runs.run(tmp_path / "whole", "translation")
    assert tiny_runs.differences(half, tmp_path / "whole") == []

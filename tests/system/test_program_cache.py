"""The folder of compiled programs: its limit holds, also with entries that JAX alone would fail at, and for processes at once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from one_layer.system.program_cache import keep_programs
from tests import ROOT

_COMPILE = """
import sys
from one_layer.cli.command import set_up
set_up()
import jax, jax.numpy as jnp
jax.config.update("jax_raise_persistent_cache_errors", True)
for number in range(int(sys.argv[1]), int(sys.argv[2])):
    jax.jit(lambda x: jnp.sin(x) * number)(1.0)
"""


def environment(home, **changes):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    every = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
    return {**kept, **every, "HOME": str(home), "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), **changes}


def entries(folder):
    return {path.name: path.stat().st_size for path in folder.glob("*-cache")}


@pytest.mark.skipif(sys.platform == "win32", reason="HOME is not where Path.home() looks on Windows")
def test_the_folder_stays_within_its_limit_while_processes_share_it(tmp_path):
    """An entry without the time of its use, as JAX writes it without a limit, makes room."""
    folder, limit = tmp_path / ".cache" / "one_layer" / "jax", 30_000
    folder.mkdir(parents=True)
    (folder / "old-cache").write_bytes(bytes(limit - 1))
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _COMPILE, *numbers],
            env=environment(tmp_path, JAX_COMPILATION_CACHE_MAX_SIZE=str(limit)),
            stderr=subprocess.PIPE,
        )
        for numbers in (("0", "8"), ("4", "12"))
    ]
    for each in running:
        _, errors = each.communicate()
        assert each.returncode == 0, errors.decode()
    found = entries(folder)
    assert found and "old-cache" not in found
    assert sum(found.values()) <= limit


def test_what_a_kill_or_a_full_disk_has_cut_off_is_removed(tmp_path, monkeypatch):
    """JAX writes the time of use last, and never writes an entry that is there."""
    folder = tmp_path / ".cache" / "one_layer" / "jax"
    folder.mkdir(parents=True)
    for name in ("whole-cache", "whole-atime", "half-cache"):
        (folder / name).write_bytes(b"1")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "")  # so that it is what it was afterwards
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_MAX_SIZE", "1000")
    keep_programs()
    assert {path.name for path in folder.iterdir()} - {".lockfile"} == {"whole-cache", "whole-atime"}


def test_a_folder_of_the_user_s_own_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / "old-cache").write_bytes(b"1")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("JAX_COMPILATION_CACHE_MAX_SIZE", raising=False)
    keep_programs()
    assert "JAX_COMPILATION_CACHE_MAX_SIZE" not in os.environ
    assert [path.name for path in tmp_path.iterdir()] == ["old-cache"]


def test_a_user_without_a_home_keeps_nothing(monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nowhere)
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    keep_programs()
    assert "JAX_COMPILATION_CACHE_DIR" not in os.environ

"""The process keeps the memory that it frees, unless the user chose otherwise."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Mapping

import pytest

from tests import ROOT

BYTES = 256 * 2**20
# Frees a large block, and says whether the settings were made and how many bytes of the block the process still has.
PROGRAM = f"""
import mmap, sys
from one_layer.system.heap import keep_freed_memory

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * mmap.PAGESIZE

kept, before = sys.argv[1] == "keep" and keep_freed_memory(), resident()
block = bytearray(b"x") * {BYTES}
del block
print(kept, resident() - before)
"""


def run(choice: str, environment: Mapping[str, str]) -> tuple[bool, int]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GLIBC_", "MALLOC_"))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, choice],
        env={**clean, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    kept, held = done.stdout.split()
    return kept == "True", int(held)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the settings are those of glibc")
def test_freed_memory_is_kept():
    kept, held = run("keep", {})
    assert kept and held > 0.9 * BYTES


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the settings are those of glibc")
@pytest.mark.parametrize(
    "environment", [{"GLIBC_TUNABLES": "glibc.malloc.perturb=0"}, {"MALLOC_MMAP_THRESHOLD_": "65536"}], ids=str
)
def test_the_users_own_settings_stay(environment: dict[str, str]):
    kept, held = run("keep", environment)
    assert not kept and held < 0.1 * BYTES

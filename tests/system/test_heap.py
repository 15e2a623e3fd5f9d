"""The process keeps the memory that it frees, unless the user chose otherwise."""

import os
import platform
import subprocess
import sys
from collections.abc import Mapping

import pytest

from tests import ROOT

BYTES = 256 * 2**20
# Frees a large block, and says how many bytes of the block the process still has.
PROGRAM = f"""
import mmap
from one_layer.system.heap import keep_freed_memory

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * mmap.PAGESIZE

keep_freed_memory()
before = resident()
block = bytearray(b"x") * {BYTES}
del block
print(resident() - before)
"""


def run(environment: Mapping[str, str]) -> int:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GLIBC_", "MALLOC_"))}
    command = [sys.executable, "-c", PROGRAM]
    return int(subprocess.check_output(command, env={**clean, **environment}, cwd=ROOT, text=True))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the settings are those of glibc")
def test_freed_memory_is_kept():
    assert run({}) > 0.9 * BYTES


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the settings are those of glibc")
@pytest.mark.parametrize(
    "environment", [{"GLIBC_TUNABLES": "glibc.malloc.perturb=0"}, {"MALLOC_MMAP_THRESHOLD_": "65536"}], ids=str
)
def test_the_users_own_settings_stay(environment: dict[str, str]):
    assert run(environment) < 0.1 * BYTES

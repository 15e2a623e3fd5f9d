"""Several processes: results come in order, errors are raised, and no process stays when the parent is killed."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from one_layer.data.preparation.parallel import chunks, cores, in_order
from one_layer.system.errors import UserError
from tests import ROOT


def test_results_come_in_order_and_errors_are_raised() -> None:
    numbers = range(30, 0, -1)
    for processes in (1, 2):
        assert list(in_order(math.factorial, numbers, processes)) == [math.factorial(number) for number in numbers]
        with pytest.raises(ValueError, match="factorial"):
            list(in_order(math.factorial, [3, -1, 2], processes))
    with pytest.raises(UserError, match="one of 2 processes was killed"):
        list(in_order(os._exit, [1, 1, 1], 2))
    assert list(chunks(range(5), 2)) == [[0, 1], [2, 3], [4]] and list(chunks([], 2)) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows processes in /proc")
def test_processes_end_when_their_parent_is_killed() -> None:
    program = "import time; from one_layer.data.preparation.parallel import in_order; list(in_order(time.sleep, [600] * 2, 2))"
    first = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    try:
        assert until(lambda: len(workers(first.pid)) == 2)
        begun = workers(first.pid)
        time.sleep(2)  # the processes have started and are working
    finally:
        first.kill()
        first.wait()
    assert until(lambda: not any(alive(pid) for pid in begun))


def workers(pid: int) -> list[int]:
    """Returns the pool processes of the process `pid`."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(condition) -> bool:
    """Waits until `condition` holds, for at most a minute. Returns: whether it does."""
    for _ in range(600):
        if condition():
            return True
        time.sleep(0.1)
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which cores a process may use")
def test_cores_counts_those_that_this_process_may_use() -> None:
    program = (
        "import os; from one_layer.data.preparation.parallel import cores\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(cores())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "1\n" and cores() == len(os.sched_getaffinity(0))

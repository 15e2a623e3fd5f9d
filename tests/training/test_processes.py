"""Several processes train one run: the same numbers as one process, one pause for all, and a checkpoint that any mesh continues."""

import contextlib
import json
import signal
import socket
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from one_layer.training import processes
from tests import tiny_runs, user_error

UPDATES = 24


def start(folder: Path, number: int, port: int, changes: dict[str, object] | None = None) -> subprocess.Popen[str]:
    """Starts process `number` of two, with two devices, in `folder`."""
    together = [f"--distributed=127.0.0.1:{port}", "--processes=2", f"--process={number}"]
    return subprocess.Popen(
        [*tiny_runs.command("translation", changes), *together],
        cwd=folder,
        env=tiny_runs.environment(JAX_NUM_CPU_DEVICES="2"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def metrics(folder: Path) -> dict[tuple[int, str], float]:
    lines = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text("utf-8").splitlines()]
    times = {*tiny_runs.TIMES, "step", "train/flops"}  # rows that make a batch divide count as work
    return {(line["step"], name): value for line in lines for name, value in line.items() if name not in times}


def finished(both: list[subprocess.Popen[str]]) -> list[str]:
    """What both print until they end."""
    try:
        return [each.communicate(timeout=600)[0] for each in both]
    finally:
        for each in both:
            with contextlib.suppress(ProcessLookupError):
                each.kill()


@pytest.mark.slow
def test_two_processes_stop_together_and_another_mesh_goes_on(tmp_path):
    for name in ("together", "alone"):
        tiny_runs.write_text(tmp_path / name, "translation")
    together, alone = tmp_path / "together", tmp_path / "alone"
    tiny_runs.run(alone, "translation")

    port = free_port()
    both = [start(together, number, port) for number in (0, 1)]
    written = together / "run" / "metrics.jsonl"
    while not (written.exists() and written.stat().st_size) and both[0].poll() is None:
        time.sleep(0.05)
    both[1].send_signal(signal.SIGTERM)
    printed = finished(both)
    assert [each.returncode for each in both] == [128 + signal.SIGTERM] * 2, printed
    assert all("interrupted after update" in text for text in printed)
    assert max(step for step, _ in metrics(together)) < UPDATES

    tiny_runs.run(together, "translation", {"mesh.model": 2}, JAX_NUM_CPU_DEVICES="4")
    ours, theirs = metrics(together), metrics(alone)
    assert ours.keys() == theirs.keys()
    for key, value in theirs.items():
        np.testing.assert_allclose(ours[key], value, rtol=1e-3, atol=1e-3, err_msg=str(key))
    result = json.loads((together / "run" / "result.json").read_text("utf-8"))
    assert result["steps"] == UPDATES and result["devices"] == 4


@pytest.mark.slow
def test_processes_with_unlike_configs_are_refused(tmp_path):
    folder, port = tmp_path / "unlike", free_port()
    tiny_runs.write_text(folder, "translation")
    both = [start(folder, number, port, {"optim.lr": 0.01 + number}) for number in (0, 1)]
    printed = finished(both)
    assert [each.returncode for each in both] == [2, 2], printed
    assert all("the processes differ in optim.lr" in text and "Traceback" not in text for text in printed)
    assert not (folder / "run").exists()


@pytest.mark.parametrize("address", ["localhost", "localhost:", ":1234", "localhost:0", "localhost:65536", "a:b"])
def test_an_address_without_host_or_port_is_refused(address):
    with user_error("give HOST:PORT"):
        processes.join(address, 2, 0)


@pytest.mark.parametrize(("count", "number"), [(2, 2), (2, -1), (0, 0)])
def test_a_process_that_does_not_exist_is_refused(count, number):
    with user_error(f"--process={number} and --processes={count}"):
        processes.join("localhost:1234", count, number)


def test_a_process_alone_pauses_at_once():
    pause = processes.Pause()
    assert [pause.now(wished) for wished in (False, True, False)] == [False, True, False]

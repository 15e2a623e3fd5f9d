"""A sweep that a signal interrupts or kills."""

import signal
import subprocess
import sys
import time

import pytest

from one_layer.sweeps.jobs import Launcher
from one_layer.sweeps.queue import Queue
from tests import ROOT, mostly_slow, until
from tests.sweeps.test_sweep import PROGRAM, finished, starts


class Started:
    """The command in a process of its own, which the tests may interrupt or kill."""

    def __init__(self, config, workdir):
        code = f"""
import sys
from pathlib import Path
from one_layer.cli import command
from one_layer.commands import sweep
sweep.PROGRAM = [sys.executable, {str(PROGRAM)!r}]
sweep.resolved = lambda plan: plan
command.run(lambda: sys.exit(sweep.main(sys.argv[1:])))
"""
        words = [f"--config={config}", f"--workdir={workdir}", "--jobs=2", "--config.train.updates=0"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *words], cwd=ROOT, stderr=subprocess.PIPE, text=True
        )

    def end(self):
        """Returns the exit code and what was printed."""
        printed = self.process.communicate(timeout=60)[1]
        return self.process.returncode, printed


@pytest.mark.parametrize("number", mostly_slow([signal.SIGINT, signal.SIGTERM], [signal.SIGINT]))
def test_a_signal_stops_the_runs_cleanly_and_the_same_command_goes_on(config, tmp_path, number):
    folder = tmp_path / "runs"
    started = Started(config, folder)
    assert until(lambda: len(list(folder.glob("*/ready"))) == 2)
    started.process.send_signal(number)
    code, printed = started.end()
    assert code == 128 + number and "the same command goes on" in printed
    assert [path.read_text() for path in folder.glob("*/saved")] == 2 * [str(int(number))]
    assert f"{folder}: 2 interrupted, 2 waiting" in printed
    again = Started(config, folder)
    assert until(lambda: len(list(folder.glob("*/ready"))) == 4)
    again.process.send_signal(number)
    assert again.end()[0] == 128 + number
    assert Started(config, folder).end()[0] == 0
    assert starts(folder) == dict.fromkeys(finished(folder), 2) and len(starts(folder)) == 4


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends the runs of a program that was killed")
def test_a_kill_leaves_no_run_behind(config, tmp_path):
    folder = tmp_path / "runs"
    started = Started(config, folder)
    assert until(lambda: len(list(folder.glob("*/ready"))) == 2)
    started.process.kill()
    started.end()
    assert until(lambda: len(list(folder.glob("*/saved"))) == 2)


def test_a_second_ctrl_c_leaves_no_run_that_seems_to_run(planned, ctrl_c, monkeypatch):
    """It does not wait for the runs to save. A process that trains both is told once each time."""

    class Deaf(Launcher):
        def start(self, runs):
            return [self for _ in runs]

        def ended(self):
            return None

        @property
        def process(self):
            return self

        def stop(self, number):
            told.append(number)

    told, changed = [], []
    queue = Queue(planned(), Deaf(["main.py"], 2))
    monkeypatch.setattr(time, "sleep", lambda _: ctrl_c())  # between two looks
    with pytest.raises(KeyboardInterrupt):
        queue.work(changed.extend)
    assert told == 2 * [signal.SIGINT] and sorted(queue.states.values()) == 2 * ["interrupted"] + 2 * ["waiting"]
    assert [queue.states[run.name] for run in changed] == 4 * ["interrupted"]  # two changes of each

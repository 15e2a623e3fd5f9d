"""What the display of a sweep shows of its runs."""

from __future__ import annotations

import io
import sys

from rich.console import Console

from one_layer.runs.progress import Progress, progress
from one_layer.sweeps.display import Display
from one_layer.sweeps.jobs import LocalLauncher
from one_layer.sweeps.queue import Queue
from one_layer.sweeps.scores import first_score
from tests.sweeps.test_sweep import PROGRAM


def test_the_table_shows_every_state(planned, tmp_path):
    plan = planned("grown")
    queue = Queue(plan, LocalLauncher([sys.executable, str(PROGRAM)], 1))
    queue.states |= {"default": "running", "seed=2": "failed", "keep=0.3": "finished"}
    queue.problems["seed=2"] = "training has diverged: [/tmp/data] is [a, b]"
    (tmp_path / "runs" / "default").mkdir(parents=True)
    (tmp_path / "runs" / "default" / "metrics.jsonl").write_text('{"step": 4, "seconds": 20.0, "valid/nll": 1.5}\n')
    (tmp_path / "runs" / "keep=0.3").mkdir()
    (tmp_path / "runs" / "keep=0.3" / "result.json").write_text('{"test": {"test": {"bleu_tokenized": 30.0}}}')
    console = Console(file=io.StringIO(), width=120, height=40, force_terminal=True)
    console.print(Display(queue, console).table())
    text = console.file.getvalue()
    for words in (
        "1 running, 1 failed, 1 finished, 3 waiting",
        "4 of 10",
        "valid/nll 1.5",
        "30 s",
        "diverged: [/tmp/data] is [a, b]",  # no markup
        "test bleu_tokenized 30",
    ):
        assert words in text
    console.height = 8
    console.print(Display(queue, console).table())
    assert "and 3 more" in console.file.getvalue()


def test_the_main_score_of_every_task_is_shown():
    for name in ("bleu_tokenized", "bleu_sacre", "accuracy", "matthews"):
        assert first_score({"test": {"test": {"nll": 1.0, name: 0.5}}}) == 0.5


def test_a_terminal_has_one_table_which_ends_as_the_runs_do(planned):
    queue = Queue(planned(), LocalLauncher([sys.executable, str(PROGRAM)], 1))
    console = Console(file=io.StringIO(), width=120, height=40, force_terminal=True)
    display = Display(queue, console)
    with display.shown:
        display.look()
        assert "4 waiting" in console.file.getvalue()
        queue.states = dict.fromkeys(queue.states, "finished")
        display.look()
        assert "4 finished" not in console.file.getvalue(), "the last table is not old enough"
    assert "4 finished" in console.file.getvalue()


def test_metrics_without_seconds_and_scores_that_are_not_finite_stop_no_display(planned):
    run = planned("small", "--config.train.updates=100").runs[0]
    run.folder.mkdir(parents=True)
    run.paths.metrics_file.write_text('{"step": 10, "valid/nll": "nan"}\n')
    assert progress(run.paths, run.config["train"]) == Progress(10, 100, "valid/nll nan", None)

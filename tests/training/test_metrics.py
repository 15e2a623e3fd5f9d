"""The log survives what stops a run."""

import json
import math

import pytest

from one_layer.runs.folder import RunFolder
from one_layer.training.metrics import MetricsLog, read_metrics
from tests import tiny, user_error


def written(workdir, steps, start=0):
    workdir.mkdir(exist_ok=True)
    log = MetricsLog(RunFolder(workdir), start)
    for step in steps:
        log.write(step, step / 3, {"train/loss": 1 / 3 + step, "valid/bleu": 0.1 * step})
    log.close()


def test_a_line_holds_what_was_written(tmp_path):
    written(tmp_path, [1, 2])
    assert read_metrics(tmp_path / "metrics.jsonl")[1] == {
        "step": 2,
        "seconds": 0.667,
        "train/loss": 1 / 3 + 2,
        "valid/bleu": 0.2,
    }
    assert list((tmp_path / "tensorboard").glob("events.*"))
    assert read_metrics(tmp_path / "nowhere" / "metrics.jsonl") == []


def test_a_kill_takes_nothing_that_was_written(tmp_path):
    """Not closed: what a SIGKILL finds on the disk."""
    log = MetricsLog(RunFolder(tmp_path), 0)
    sizes = [events(tmp_path)]
    for step in (1, 2, 3):
        log.write(step, 1.0, {"train/loss": 1.0})
        sizes.append(events(tmp_path))
        assert [line["step"] for line in read_metrics(tmp_path / "metrics.jsonl")] == list(range(1, step + 1))
    assert sizes == sorted(set(sizes)), "each line is in TensorBoard's file at once"
    log.close()
    assert events(tmp_path) == sizes[-1]


def test_tensorboard_reads_a_resumed_run_last_whatever_the_clock_says(tmp_path, monkeypatch):
    """It reads files in the order of their names, and each hides later steps of those before it."""
    made = []
    for clock in (2e9, 1e9):
        monkeypatch.setattr("time.time", lambda clock=clock: clock)
        MetricsLog(RunFolder(tmp_path), 0).close()
        made += [path.name for path in (tmp_path / "tensorboard").iterdir() if path.name not in made]
    assert len(made) == 2 and made == sorted(made)


def events(workdir):
    """The bytes in TensorBoard's files."""
    return sum(path.stat().st_size for path in (workdir / "tensorboard").glob("events.*"))


def test_lines_are_json_even_where_values_are_not_finite(tmp_path):
    """JSON has no nan; float() reads what stands there."""
    log = MetricsLog(RunFolder(tmp_path), 0)
    log.write(1, 0.5, {"a": math.nan, "b": -math.inf, "c": 2.0})
    log.close()

    def refused(name):
        raise AssertionError(name)

    line = json.loads((tmp_path / "metrics.jsonl").read_text(), parse_constant=refused)
    assert math.isnan(float(line["a"])) and float(line["b"]) == -math.inf and line["c"] == 2.0


@pytest.mark.parametrize("restored", [0, 1, 3, 5, 9])
def test_lines_after_the_restored_step_are_dropped(tmp_path, restored):
    written(tmp_path / "whole", [1, 3, 3, 5])
    written(tmp_path / "cut", [1, 3, 3, 5])
    written(tmp_path / "cut", [step for step in (1, 3, 3, 5) if step > restored], restored)
    assert read_metrics(tmp_path / "cut" / "metrics.jsonl") == read_metrics(tmp_path / "whole" / "metrics.jsonl")


@pytest.mark.parametrize("evaluated", [True, False])
def test_an_evaluation_that_will_be_done_again_is_dropped(tmp_path, evaluated):
    """Its line was written, but the checkpoint with its score was not: the restored one was saved when a signal stopped the evaluation."""
    log = MetricsLog(RunFolder(tmp_path), 0)
    for step, values in ((4, {"valid/nll": 2.0}), (8, {"train/loss": 1.0}), (8, {"valid/nll": 1.5})):
        log.write(step, 1.0, values)
    log.close()
    MetricsLog(RunFolder(tmp_path), 8, evaluated).close()
    assert len(read_metrics(tmp_path / "metrics.jsonl")) == 2 + evaluated
    assert sum("valid/nll" in line for line in read_metrics(tmp_path / "metrics.jsonl")) == 1 + evaluated


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_a_last_line_cut_short_is_left_out(tmp_path, cut):
    written(tmp_path, [1, 2, 3])
    path = tmp_path / "metrics.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert [line["step"] for line in read_metrics(tmp_path / "metrics.jsonl")] == [1, 2]
    written(tmp_path, [3], 2)
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "line", [b"{nonsense", b"\xff\x00", b"", b"[]", b"3", b'{"loss": 1}', b'{"step": "1"}', b"[" * 100_000]
)
def test_a_damaged_line_is_said_and_left(tmp_path, line):
    written(tmp_path, [1])
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(path.read_bytes() + line + b"\n" + json.dumps({"step": 1, "seconds": 0}).encode() + b"\n")
    before = tiny.contents(tmp_path)
    with user_error(r"metrics\.jsonl, line 2 is damaged"):
        MetricsLog(RunFolder(tmp_path), 1)
    assert tiny.contents(tmp_path) == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("valid/bleu", "low"),
        ("train/loss", {}),
        ("train/loss", None),
        ("seconds", "nan"),
        ("seconds", 10**400),
        ("step", True),
    ],
)
def test_a_value_that_is_no_number_is_named_with_its_line(tmp_path, name, value):
    """Whoever reads metrics computes with them: reports of unfinished runs, curves, and runs that go on."""
    written(tmp_path, [1])
    line = {"step": 2, "seconds": 1.0, "train/loss": "nan"}
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n" + json.dumps({**line, name: value}) + "\n")
    with user_error(rf"metrics\.jsonl, line 3 is damaged \(.*({name}|int too large)"):
        read_metrics(tmp_path / "metrics.jsonl")

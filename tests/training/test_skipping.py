"""Updates whose loss or gradient is not finite: none is applied, each is counted, and too many in a row end the run."""

import signal

import pytest

from one_layer.training import course
from one_layer.training import trainer as training
from one_layer.training.interruption import Interrupted
from one_layer.training.train import train
from tests import tiny, user_error
from tests.training.test_train import assert_same_run, disturbed, kept_steps, metrics, result


def skipped_lines(folder):
    return [(line["step"], line["skipped/in_a_row"]) for line in metrics(folder) if "skipped/loss" in line]


@pytest.mark.slow
def test_skipped_updates_are_counted_and_written(tmp_path, monkeypatch, caplog):
    """Also over an interruption. Batches go on; the learning rate waits."""
    bad = {4, 6, 7}

    def pressed(count):
        if count == 7:
            signal.raise_signal(signal.SIGINT)
        return count in bad

    for name in ("whole", "cut"):
        folder = tmp_path / name
        with monkeypatch.context() as patched:
            if name == "cut":
                patched.setattr(training, "train_step", disturbed(pressed))
                with pytest.raises(Interrupted):
                    train(tiny.run(), folder, [])
            patched.setattr(training, "train_step", disturbed(bad.__contains__))
            train(tiny.run(), folder, [])
        assert skipped_lines(folder) == [(5, 1), (7, 1), (8, 2)]
        assert result(folder)["skipped_updates"] == 3
    line = next(line for line in metrics(folder) if line["step"] == 7 and "skipped/loss" in line)
    assert line["skipped/loss"] == "nan" and line["skipped/gradient_norm"] == 7 and line["skipped/parameter_norm"] > 0
    assert "update 7 is not applied: its loss is nan and the norm of its gradient is 7 (batch " in caplog.text
    assert_same_run(tmp_path / "cut", tmp_path / "whole")
    rates = {line["step"]: line["train/learning_rate"] for line in metrics(folder) if "train/loss" in line}
    assert rates[12] == pytest.approx(0.01 * (4 / (11 - 3)) ** 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 4])
def test_too_many_in_a_row_end_the_run_and_the_same_command_repeats_them(tmp_path, monkeypatch, most):
    """Also where an evaluation is between them. What was saved before stays, and is saved again."""
    monkeypatch.setattr(training, "train_step", disturbed(lambda count: 6 <= count < 6 + most))
    monkeypatch.setattr(course, "MOST_IN_A_ROW", most)
    for _ in range(2):
        said = rf"in {most} updates in a row \(7 to {6 + most}\), .*training has diverged; lower optim\.lr"
        with user_error(said):
            train(tiny.run(), tmp_path, [])
        assert kept_steps(tmp_path) == [4, 8][: 1 + (most > 2)]
    monkeypatch.setattr(course, "MOST_IN_A_ROW", 5)
    train(tiny.run(), tmp_path, [])
    assert result(tmp_path)["skipped_updates"] == most and result(tmp_path)["steps"] == tiny.UPDATES


def test_a_rate_without_measure_is_noticed_by_the_next_evaluation(tmp_path):
    """The loss of the one update before is still a number; no hypotheses are asked of what it leaves."""
    wild = {"model.weights": "dense", "optim.lr": 1e18, "optim.warmup": 0}
    wild |= {"train.evaluate_every": 1, "train.updates": 3}
    searching = {"train.select": "bleu", "evaluation.valid_beam": 1}
    with user_error("validation loss is nan at update 1: training has diverged"):
        train(tiny.run(wild | searching), tmp_path, [])
    assert not any((tmp_path / "checkpoints").iterdir())

"""A run that a signal, a kill or a missing file has interrupted ends as an uninterrupted one does, or says why it cannot."""

import itertools
import shutil
import signal

import pytest

from one_layer.data.batches import evaluation_batches
from one_layer.runs.checkpoints import Checkpoints
from one_layer.tasks.translation import task as translation
from one_layer.training import trainer as training
from one_layer.training.interruption import Interrupted
from one_layer.training.train import train
from tests import tiny
from tests.training.test_train import assert_same_run, disturbed, kept_steps, lines, metrics, result


def interrupted(monkeypatch, folder, run, happens):
    """Trains in `folder` until `happens(count)`, which is asked before each update, sends a signal. Returns: what ended the run."""
    with monkeypatch.context() as patched:
        patched.setattr(training, "train_step", disturbed(happens))
        with pytest.raises(Interrupted) as caught:
            train(run, folder, [])
    return caught.value


def at(update, number=signal.SIGINT):
    """Sends the signal before the update after so many others."""
    return lambda count: count == update and signal.raise_signal(number)


@pytest.mark.slow
def test_a_signal_is_obeyed_at_the_next_update_and_nothing_is_lost(tiny_run, tmp_path, monkeypatch):
    """In the middle of an interval, and of a line of metrics."""
    caught = interrupted(monkeypatch, tmp_path, tiny.run(), at(6, signal.SIGUSR2))
    assert (caught.number, caught.step) == (signal.SIGUSR2, 7)
    assert kept_steps(tmp_path)[-1] == 7
    train(tiny.run(), tmp_path, [])
    assert kept_steps(tmp_path) == kept_steps(tiny_run)
    assert_same_run(tmp_path, tiny_run)


def scored(folder):
    checkpoints = Checkpoints(folder / "checkpoints", read_only=True)
    steps = checkpoints.scored()
    checkpoints.close()
    return steps


def pressed_in_evaluation(number):
    """`evaluation_batches`, but Ctrl-C is pressed when the validation of that number begins."""
    calls = itertools.count(1)

    def batches(*given):
        if next(calls) == number:
            signal.raise_signal(signal.SIGINT)
        return evaluation_batches(*given)

    return batches


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 3])
def test_a_signal_during_an_evaluation_stops_it_and_nothing_is_lost(tiny_run, tmp_path, monkeypatch, number):
    """It is obeyed at the next batch of the validation set. The evaluation is done when the run goes on, and its checkpoint is scored."""
    with monkeypatch.context() as patched:
        patched.setattr(translation, "evaluation_batches", pressed_in_evaluation(number))
        with pytest.raises(Interrupted) as caught:
            train(tiny.run(), tmp_path, [])
    steps = [tiny.EVERY * place for place in range(1, number + 1)]
    assert caught.value.step == steps[-1] and kept_steps(tmp_path) == steps
    assert lines(tmp_path)[-1]["step"] == steps[-1] and "valid/nll" not in lines(tmp_path)[-1]
    train(tiny.run(), tmp_path, [])
    assert_same_run(tmp_path, tiny_run)
    assert scored(tmp_path) == scored(tiny_run) and kept_steps(tmp_path) == kept_steps(tiny_run)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # what Orbax leaves where it gives up
@pytest.mark.parametrize("weights", ["one_layer", "dense"])
def test_a_run_goes_on_without_the_checkpoint_of_its_last_evaluation(tmp_path, monkeypatch, caplog, weights):
    """It serves a metric alone, which the next evaluation then lacks."""
    run = tiny.run({"model.weights": weights, "data.tests": ()})
    interrupted(monkeypatch, tmp_path, run, at(5))
    assert kept_steps(tmp_path) == [tiny.EVERY, 6]
    shutil.rmtree(tmp_path / "checkpoints" / str(tiny.EVERY) / "params")
    train(run, tmp_path, [])
    assert result(tmp_path)["steps"] == tiny.UPDATES
    masked = weights == "one_layer"
    assert ("the next evaluation has no mask/flips: the checkpoint" in caplog.text) == masked
    scored = [line["step"] for line in metrics(tmp_path) if "mask/flips" in line]
    assert scored == [tiny.EVERY, tiny.UPDATES] * masked


@pytest.mark.slow
def test_a_run_that_now_ends_before_its_checkpoint_evaluates_it(tmp_path, monkeypatch):
    """A signal stopped it after update 7, and train.updates is lowered to 5 then."""
    interrupted(monkeypatch, tmp_path, tiny.run(), at(6))
    train(tiny.run({"train.updates": 5}), tmp_path, [])
    assert [line["step"] for line in metrics(tmp_path) if "valid/nll" in line] == [tiny.EVERY, 7]
    assert [line["step"] for line in metrics(tmp_path) if "train/loss" in line] == [2, 4, 6, 7]
    assert result(tmp_path)["steps"] == 7


@pytest.mark.slow
def test_checkpoints_between_evaluations_change_nothing_and_a_run_goes_on_from_them(tiny_run, tmp_path, monkeypatch):
    """A checkpoint after each update: the process ends without a warning in the middle of an interval."""

    def gone(count):
        if count == 6:
            raise OSError("the machine is gone")

    with monkeypatch.context() as patched:
        patched.setattr(training, "train_step", disturbed(gone))
        with pytest.raises(OSError, match="gone"):
            train(tiny.run({"train.checkpoint_minutes": 1e-9}), tmp_path, [])
    assert kept_steps(tmp_path)[-1] == 6  # not an evaluation: those come after every fourth update
    train(tiny.run(), tmp_path, [])  # the key may change
    assert kept_steps(tmp_path) == kept_steps(tiny_run)
    assert_same_run(tmp_path, tiny_run)

"""A run of a language model for the tests of each kind: a module has its WORDS, the number of its LINES, and its CHANGES to tiny ones."""

import shutil

import numpy as np
import pytest

import one_layer
from one_layer.runs.evaluate import evaluate
from one_layer.runs.folder import RunFolder
from one_layer.runs.restore import restore_run
from one_layer.runs.settings import resolve
from one_layer.training.train import train
from tests import tiny


@pytest.fixture(scope="module")
def run_of(request, tmp_path_factory):
    """Gives the settings of the run, with further changes; its text is written."""
    folder, dice, own = tmp_path_factory.mktemp("text"), np.random.default_rng(1), request.module
    text = "".join(f"{' '.join(dice.choice(own.WORDS, 4))}\n" for _ in range(own.LINES))
    (folder / "text.txt").write_text(text, "utf-8")
    plain = {"data.source": "plain", "data.train": "text.txt", "data.held_out": 0.1, "data.directory": str(folder)}
    often = {"train.updates": 40, "train.evaluate_every": 20, "train.log_every": 10}
    without = {"model.dropout": 0.0, "optim.label_smoothing": 0.0, "evaluation.max_tokens": 64}
    changes = {**plain, **often, **without, **own.CHANGES}
    return lambda **more: resolve(tiny.config({**changes, **more}))


@pytest.fixture(scope="module")
def folder(tmp_path_factory, run_of):
    """The run's folder, after training."""
    path = tmp_path_factory.mktemp("run") / "run"
    train(run_of(), path, [])
    return RunFolder(path)


@pytest.fixture(scope="module")
def model(folder):
    """Its best model."""
    return restore_run(folder)


def assert_ticket_is_checkpoint(model, ticket, folder, lines, score):
    """Alone in another folder, with masks as bits too, a ticket says of `lines` what its checkpoint says, and has its test score.

    So has the checkpoint with the masks of its ticket. Returns: the model of the ticket.
    """
    alone = shutil.copy(ticket, folder / "alone.safetensors")
    whole, packed = one_layer.load(alone), one_layer.load(alone, packed=True)
    said = [each.lines(iter(lines)) for each in (model, whole, packed, model.with_masks(whole.masks))]
    assert said == [said[0]] * 4 and len(said[0]) == len(lines)
    scores = [evaluate(each, "test", None)["test"][score] for each in (model, whole, packed)]
    assert scores == pytest.approx([scores[0]] * 3, rel=1e-6)
    return whole

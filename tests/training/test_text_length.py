"""`data.max_length=0`: the training text of a classifier decides how much of a text is read."""

import numpy as np

from one_layer.runs.folder import RunFolder
from one_layer.runs.paths import read_metrics
from one_layer.runs.settings import resolve
from one_layer.tickets.settings import Settings, read_settings, write_settings
from one_layer.training.train import train
from tests import user_error
from tests.tasks.classification import test_classification as labelled
from tests.tasks.classification.test_classification import texts, values

folder = labelled.folder  # a fixture


def test_the_training_text_decides_how_much_of_a_text_is_read(folder, tmp_path, caplog):
    """0 is replaced by the length that 95 of 100 training texts have; the run is that of the number, and keeps it when it goes on."""
    changes = {"train.updates": 2, "train.evaluate_every": 2, "optim.warmup": 1}
    run = resolve(values(folder, **changes, **{"data.max_length": 0}))
    with caplog.at_level("INFO"):
        train(run, tmp_path / "by text", [])
    chosen = RunFolder(tmp_path / "by text").read_config().data.max_length
    lengths = np.sort([len(text.split()) + 2 for text, _ in texts(120, 0)])
    assert (lengths <= chosen).mean() >= 0.95 > (lengths < chosen).mean() and chosen > 2
    assert f"chosen: data.max_length={chosen}" in caplog.text
    train(resolve(values(folder, **changes, **{"data.max_length": chosen})), tmp_path / "given", [])
    ours, theirs = (read_metrics(tmp_path / name / "metrics.jsonl") for name in ("by text", "given"))
    assert [line["valid/nll"] for line in ours if "valid/nll" in line] == [
        line["valid/nll"] for line in theirs if "valid/nll" in line
    ]
    train(run, tmp_path / "by text", [])
    assert RunFolder(tmp_path / "by text").read_config().data.max_length == chosen


def test_a_length_of_one_is_refused_and_no_ticket_leaves_it_open(folder):
    with user_error(r"data\.max_length=1 is too small"):
        resolve(values(folder, **{"data.max_length": 1}))
    run = resolve(values(folder, **{"data.max_length": 0}))
    settings = Settings(run.task, run.model_config(10, 10), run.seed, 0, run.data, run.evaluation)
    with user_error(r"data\.max_length is 0, which only the training text can decide"):
        read_settings(write_settings(settings))

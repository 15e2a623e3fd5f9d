"""Whole runs with reservoirs: frozen means frozen, and tickets hold them as recipes."""

import jax
import numpy as np
import pytest
from flax.traverse_util import flatten_dict

from one_layer import tickets
from one_layer.models import initialize, recipes
from one_layer.runs.folder import RunFolder
from one_layer.runs.restore import restore_run
from one_layer.training.train import train
from tests import tiny

CHANGES = {
    "model.weights": "dense",
    "model.embedding": "trained",
    "model.encoder_layers": "1L+2R",
    "model.decoder_layers": "LR",
    "model.reservoir": "gru",
    "model.norm_position": "pre",
    "train.backskip": "identity",
    "train.updates": 4,
    "train.evaluate_every": 2,
}

pytestmark = pytest.mark.slow  # each trains a model


@pytest.fixture(scope="module", params=["dense", "one_layer"])
def finished(request, tmp_path_factory):
    """The folder and the result of a run, all-updatable and masked beside reservoirs and updatable layers."""
    folder = tmp_path_factory.mktemp("run")
    changes = CHANGES
    if request.param == "one_layer":
        changes = {**CHANGES, "model.weights": "one_layer", "model.embedding": "masked", "model.encoder_layers": "LSRS"}
    return folder, train(tiny.run(changes), folder, [])


def test_reservoirs_are_the_seed_s_and_nothing_else_knows_them(finished):
    folder, result = finished
    restored = restore_run(folder, "best")
    drawn = flatten_dict(initialize(restored.config, result["seed"])["random"])
    found = flatten_dict(restored.variables["random"])
    reservoirs = [path for path in drawn if "reservoir" in path]
    assert reservoirs
    for path in reservoirs:
        np.testing.assert_array_equal(found[path], drawn[path])
        assert "orthogonal" in recipes(restored.config)[path[:-1]].scheme
    saved = jax.tree_util.tree_leaves_with_path(restored.variables["params"])
    assert not [path for path, _ in saved if any(key.key == "reservoir" for key in path)]
    names = [str(path) for path in (folder / "checkpoints").rglob("*")]
    assert names and not [name for name in names if "reservoir" in name]


def test_a_ticket_holds_recipes_of_reservoirs_and_translates_alike(finished):
    folder, result = finished
    path = RunFolder(folder).ticket_file
    ticket = tickets.load(path)
    assert any("reservoir" in module for module in ticket.drawn)
    assert not [name for name in ticket.arrays if "reservoir" in name]
    lines = ["das kind schläft .", "ein hund sieht die katze ."]
    assert tickets.restore_ticket(path).lines(lines) == restore_run(folder, "best").lines(lines)
    assert result["bytes"]["ticket_file"] == path.stat().st_size

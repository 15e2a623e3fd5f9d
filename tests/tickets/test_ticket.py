"""A ticket is made of a model's variables, and gives back those that the network needs, as NumPy computes them."""

from __future__ import annotations

import dataclasses
import logging

import numpy as np
import pytest

from one_layer import tickets
from one_layer.data.config import DataConfig
from one_layer.layers.trees import flatten_dict, unflatten_dict
from one_layer.models import ModelConfig, recipes, shapes
from one_layer.supermask import kept_count
from one_layer.system.errors import UserError
from one_layer.tasks.translation.model import TranslationModel
from one_layer.tasks.translation.settings import SearchSettings
from tests.random_tickets import ASSETS, CONFIG, DICE, ticket_of

SCALED = CONFIG.replace(dynamic_scale=True)


def scale_of(mask: np.ndarray, axis: int) -> np.ndarray:
    kept = mask.sum(axis=axis, keepdims=True)
    return np.sqrt(mask.shape[axis] / np.maximum(kept, 1)) * (kept > 0)


@pytest.mark.parametrize("changes", [{}, {"weights": "multi_layer", "sharing": "masks"}], ids=str)
def test_the_network_gets_products_or_bits(changes):
    ticket = ticket_of(SCALED.replace(**changes))
    plain = dict(ticket.arrays)
    plain |= {("random", *module, "kernel"): drawn.weights for module, drawn in ticket.drawn.items()}
    products, bits = dict(plain), dict(plain)
    for (*module, kind), array in ticket.masks.items():
        weights = products.pop(("random", *module, "kernel"))
        layers = weights.shape[:-2] or array.shape[:-1]
        bits["packed", *module, kind] = np.broadcast_to(array, (*layers, array.shape[-1]))
        size = weights.shape[-2] * weights.shape[-1]
        mask = np.unpackbits(array, axis=-1, count=size, bitorder="little").reshape(
            *array.shape[:-1], *weights.shape[-2:]
        )
        scale = scale_of(mask, -2 if module[-1].endswith("embedding") else -1)
        products["materialized", *module, "kernel"] = weights * mask * scale
    for expected, found in ((products, tickets.variables(ticket)), (bits, tickets.variables(ticket, packed=True))):
        assert found.keys() >= {"params", "random"}
        flat = flatten_dict(found)
        assert flat.keys() == expected.keys()
        for path, leaf in flat.items():
            np.testing.assert_allclose(leaf, expected[path], rtol=1e-6)


def variables_of(config: ModelConfig) -> dict:
    """As training leaves them, but for one random number, which the seed does not give."""
    made = recipes(config)
    flat = {
        path: made[path[1:-1]].draw(1) if path[0] == "random" else DICE.normal(size=shape).astype(np.float32)
        for path, shape in shapes(config).items()
    }
    other = next(path for path in flat if path[0] == "random" and made[path[1:-1]].role == "encoder/ffn/in")
    flat[other] = flat[other].copy()
    flat[other].flat[0] *= -1
    return unflatten_dict(flat)


VARIABLES = variables_of(CONFIG)


def model_of(config: ModelConfig, variables: dict) -> TranslationModel:
    return TranslationModel(config, 1, 9, DataConfig(seed=5), SearchSettings(beam=2), ASSETS, variables, "best", {})


def test_a_ticket_holds_every_variable_and_what_the_seed_gives_by_its_recipe():
    flat, made = flatten_dict(VARIABLES), recipes(CONFIG)
    ticket = tickets.from_run(model_of(CONFIG, VARIABLES))
    assert (ticket.step, ticket.data.seed, ticket.evaluation.beam) == (9, 5, 2)
    for path, leaf in flat.items():
        collection, *module, name = path
        if name == "scores":
            magnitude = np.abs(leaf).reshape(*leaf.shape[:-2], -1)
            least = np.sort(magnitude)[..., -kept_count(magnitude.shape[-1], CONFIG.keep), None]
            mask = np.packbits(magnitude >= least, axis=-1, bitorder="little")
            np.testing.assert_array_equal(ticket.masks[*module, "mask"], mask)
        elif collection == "random" and made[tuple(module)].role != "encoder/ffn/in":
            np.testing.assert_array_equal(ticket.drawn[tuple(module)].weights, leaf)
            assert path not in ticket.arrays
        else:
            np.testing.assert_array_equal(ticket.arrays[path], leaf)
            assert tuple(module) not in ticket.drawn


def test_what_is_not_said_of_a_ticket_has_a_default():
    ticket = tickets.make(CONFIG, 1, VARIABLES, ASSETS)
    assert (ticket.task.name, ticket.step, ticket.data) == ("translation", 0, DataConfig())
    assert ticket.evaluation == SearchSettings()
    with pytest.raises(AssertionError, match="variables of another model"):
        tickets.make(CONFIG, 1, {**VARIABLES, "random": {}}, ASSETS)


def test_a_file_is_loaded_and_restored_and_its_size_is_said(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    path = tmp_path / "t"
    total = tickets.export(model_of(CONFIG, VARIABLES), path)
    masked = sum(leaf.size for name, leaf in flatten_dict(VARIABLES).items() if name[-1] == "scores")
    assert f"{path}: {total:,} bytes, {8 * total / masked:.3f} bits per masked weight" in caplog.text
    loaded = tickets.load(path)
    sizes = tickets.save(tmp_path / "again", loaded)
    assert sizes["total"] == total == path.stat().st_size and "mask/encoder/ffn/in" in sizes
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    restored = tickets.restore_ticket(path)
    assert (restored.config, restored.seed, restored.step) == (CONFIG, 1, 9)
    assert "materialized" in restored.prepared and "packed" not in restored.prepared
    assert tickets.restore_ticket(path, packed=True).prepared.keys() >= {"random", "packed"}
    (tmp_path / "broken").write_bytes(b"")
    with pytest.raises(UserError, match=r"the ticket .*broken cannot be used: it ends within its header"):
        tickets.load(tmp_path / "broken")


def test_a_model_without_masks_has_no_bits_for_a_masked_weight(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    config = CONFIG.replace(keep=1.0)
    tickets.export(model_of(config, variables_of(config)), tmp_path / "t")
    assert caplog.text.rstrip().endswith("bytes; it holds update 9 (best)")


@pytest.mark.parametrize(
    ("source", "held"),
    [
        ("best", "update 9 (best)"),
        ("last", "update 9 (last)"),
        ("9", "update 9"),
        ("average:3", "the average of checkpoints up to update 9 (average:3)"),
        ("average-best:3", "the average of checkpoints up to update 9 (average-best:3)"),
    ],
)
def test_the_log_says_which_checkpoint_the_file_holds(source, held, tmp_path, caplog):
    """The file has the same name for all of them."""
    caplog.set_level(logging.INFO)
    tickets.export(dataclasses.replace(model_of(CONFIG, VARIABLES), source=source), tmp_path / "t")
    assert caplog.text.rstrip().endswith(f"; it holds {held}")


@pytest.mark.parametrize(
    ("source", "known"), [("best", "best"), ("average:3", "average:3"), ("9", "9"), ("some/file", "")]
)
def test_a_ticket_knows_its_checkpoint_and_its_training(source, known, tmp_path):
    trained_with = {"optim": {"lr": 0.1}, "train": {"updates": 9, "init_from": "/home/x", "patience": 3}}
    model = dataclasses.replace(model_of(CONFIG, VARIABLES), source=source, trained_with=trained_with)
    tickets.export(model, tmp_path / "t")
    restored = tickets.restore_ticket(tmp_path / "t")
    assert restored.ticket_checkpoint == known and b"/home/x" not in (tmp_path / "t").read_bytes()
    assert restored.trained_with["optim"] == {"lr": 0.1} and restored.trained_with["train"] == {"updates": 9}


@pytest.mark.parametrize(
    ("changes", "precision", "said"),
    [({}, "int8", True), ({}, "float32", False), ({"embedding": "trained"}, "int8", False)],
)
def test_a_precision_that_no_matrix_is_stored_in_is_said(changes, precision, said, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    config = CONFIG.replace(**changes)
    variables = unflatten_dict({**flatten_dict(variables_of(config)), **_as_drawn(config)})
    tickets.export(model_of(config, variables), tmp_path / "t", precision)
    assert ("nothing is stored in int8" in caplog.text) == said
    tickets.export(model_of(config, variables), tmp_path / "plain")
    assert ((tmp_path / "t").read_bytes() == (tmp_path / "plain").read_bytes()) == (said or precision == "float32")


def _as_drawn(config: ModelConfig) -> dict:
    made = recipes(config)
    return {path: made[path[1:-1]].draw(1) for path in shapes(config) if path[0] == "random"}

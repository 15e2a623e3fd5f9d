"""A trained model becomes a ticket's file, which becomes a trained model again, and the log says what the file holds."""

import dataclasses
import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import one_layer
from one_layer import tickets
from one_layer.data.config import DataConfig
from one_layer.layers.trees import flatten_dict
from one_layer.system.errors import UserError
from one_layer.tasks.translation.model import TranslationModel
from one_layer.tasks.translation.settings import SearchSettings
from tests import ROOT
from tests.fuzz_tickets import assets
from tests.tiny_tickets import SEED, TINY, trained


def model_of(source: str = "best", variables: dict | None = None, **changes: object) -> TranslationModel:
    config = TINY.replace(**changes)
    given = (DataConfig(seed=5), SearchSettings(beam=2), assets(config), variables or trained(config), source, {})
    return TranslationModel(config, SEED, 9, *given)


def test_what_is_not_said_of_a_ticket_has_a_default():
    variables = trained(TINY)
    ticket = tickets.make(TINY, SEED, variables, assets(TINY))
    assert (ticket.task.name, ticket.step, ticket.data) == ("translation", 0, DataConfig())
    assert ticket.evaluation == SearchSettings()
    with pytest.raises(AssertionError, match="variables of another model"):
        tickets.make(TINY, SEED, {**variables, "random": {}}, assets(TINY))
    with pytest.raises(UserError, match="the scores are not numbers"):
        tickets.make(TINY, SEED, jax.tree.map(lambda leaf: leaf * jnp.nan, variables), assets(TINY))


def test_a_file_is_loaded_and_restored_and_its_size_is_said(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    path, model = tmp_path / "t", model_of()
    total = tickets.export(model, path)
    masked = sum(leaf.size for name, leaf in flatten_dict(model.variables).items() if name[-1] == "scores")
    assert f"{path}: {total:,} bytes, {8 * total / masked:.3f} bits per masked weight" in caplog.text
    sizes = tickets.save(tmp_path / "again", tickets.load(path))
    assert sizes.pop("total") == total == path.stat().st_size > sum(sizes.values()) and "mask/encoder/ffn/in" in sizes
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    restored = tickets.restore_ticket(path)
    assert (restored.config, restored.seed, restored.step, restored.data.seed) == (TINY, SEED, 9, 5)
    assert restored.settings.beam == 2
    assert "materialized" in restored.prepared and "packed" not in restored.prepared
    assert tickets.restore_ticket(path, packed=True).prepared.keys() >= {"random", "packed"}


def test_a_model_without_masks_has_no_bits_for_a_masked_weight(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    tickets.export(model_of(keep=1.0, norm="affine"), tmp_path / "t")
    assert caplog.text.rstrip().endswith("bytes; it holds update 9 (best)")


@pytest.mark.parametrize(
    ("source", "held", "known"),
    [
        ("best", "update 9 (best)", "best"),
        ("9", "update 9", "9"),
        ("average:3", "the average of checkpoints up to update 9 (average:3)", "average:3"),
        ("average-best:3", "the average of checkpoints up to update 9 (average-best:3)", "average-best:3"),
        ("some/file", "update 9 (some/file)", ""),
    ],
)
def test_the_file_and_the_log_say_which_checkpoint_it_is_and_how_it_was_trained(source, held, known, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    trained_with = {"optim": {"lr": 0.1}, "train": {"updates": 9, "init_from": "/home/x", "patience": 3}}
    tickets.export(dataclasses.replace(model_of(source), trained_with=trained_with), tmp_path / "t")
    assert caplog.text.rstrip().endswith(f"; it holds {held}")
    restored = tickets.restore_ticket(tmp_path / "t")
    assert restored.ticket_checkpoint == known and b"/home/x" not in (tmp_path / "t").read_bytes()
    assert restored.trained_with["optim"] == {"lr": 0.1} and restored.trained_with["train"] == {"updates": 9}


@pytest.mark.parametrize(
    ("changes", "precision", "said"),
    [({}, "int8", True), ({}, "float32", False), ({"embedding": "trained"}, "int8", False)],
)
def test_a_precision_that_no_matrix_is_stored_in_is_said(changes, precision, said, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    tickets.export(model_of(**changes), tmp_path / "t", precision)
    assert ("nothing is stored in int8" in caplog.text) == said
    tickets.export(model_of(**changes), tmp_path / "plain")
    assert ((tmp_path / "t").read_bytes() == (tmp_path / "plain").read_bytes()) == (said or precision == "float32")


def test_random_weights_of_no_seed_are_in_the_file(tmp_path):
    variables = trained(TINY)
    kernel = variables["random"]["encoder"]["layers"]["ffn_in"]["kernel"]
    variables["random"]["encoder"]["layers"]["ffn_in"]["kernel"] = kernel.at[0, 0].multiply(-1)
    ticket = tickets.from_run(model_of(variables=variables))
    sizes = tickets.save(tmp_path / "t", ticket)
    assert {name for name in sizes if name.startswith("random/")} == {"random/encoder/ffn/in/kernel"}
    found = flatten_dict(tickets.variables(tickets.load(tmp_path / "t"), packed=True)["random"])
    for path, leaf in flatten_dict(variables["random"]).items():
        np.testing.assert_array_equal(found.pop(path), leaf)
    assert not found


def test_a_model_that_came_from_a_ticket_is_no_checkpoint(tmp_path):
    given = ROOT / "tickets" / "sst2.safetensors"
    for packed in (False, True):
        with pytest.raises(UserError, match=r"sst2\.safetensors has masks and no scores, .* copy the file, or, for"):
            tickets.export(one_layer.load(given, packed=packed), tmp_path / "again")
    assert not any(tmp_path.iterdir())

"""A selection of one's own in whole runs: `model.selection=module:Class`."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import one_layer
from examples.own_selection import TwoOfFour
from one_layer.importers.fairseq import check_translates
from one_layer.own_selection import own_class, stored_as
from one_layer.runs.settings import resolve
from one_layer.supermask import Supermask
from one_layer.tickets.settings import read_settings
from one_layer.training.beginning import opened
from one_layer.training.train import train
from tests import tiny, user_error

OWN = "examples.own_selection:TwoOfFour"
LINES = ["die katze sieht den hund", "der hund schläft"]


class NotStored(TwoOfFour):
    stored_as = ""


class WrongValues(Supermask):
    def select(self, scores):
        return (np.asarray(scores) > 0).astype(np.int8) * 2


class Raises(Supermask):
    def select(self, scores):
        return scores.reshape(-1, 7)


class WrongType(Supermask):
    def select(self, scores):
        return np.asarray(scores) > 0


class WronglyStored(TwoOfFour):
    stored_as = "sign"


class UnknownStore(TwoOfFour):
    stored_as = "bits"


class Signs(Supermask):
    values = (-1, 1)

    def select(self, scores):
        return np.where(np.asarray(scores) < 0, -1, 1).astype(np.int8)


class Softens(TwoOfFour):
    temperature = 2.0


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own") / "run"
    train(tiny.run({"model.selection": OWN}), folder, [])
    return folder


def test_a_run_trains_with_it_and_its_ticket_translates_without_it(trained, monkeypatch):
    assert json.loads((trained / "config.json").read_text())["model"]["selection"] == OWN
    whole = one_layer.load(trained)
    expected = whole.translate(LINES)
    for mask in whole.masks.values():
        assert (np.count_nonzero(np.asarray(mask).reshape(-1, 4), axis=1) == 2).all()
    own_class.cache_clear()
    monkeypatch.setitem(sys.modules, "examples.own_selection", None)  # as on a machine that does not have it
    with user_error(r"model\.selection is 'examples\.own_selection:TwoOfFour': .* PYTHONPATH"):
        tiny.run({"model.selection": OWN})
    assert one_layer.load(trained / "ticket.safetensors").translate(LINES) == expected


def test_without_a_way_to_store_its_bits_there_is_no_ticket_and_a_run_says_so_at_its_beginning(tmp_path, caplog):
    with opened(tiny.run({"model.selection": f"{__name__}:NotStored"}), tmp_path / "run"):
        pass
    with user_error("does not say how its bits are stored"):
        stored_as(NotStored(selection=f"{__name__}:NotStored"))
    assert "this run will have no ticket: model.selection is tests.selection.test_own:NotStored" in caplog.text


@pytest.mark.parametrize(
    ("selection", "problem"),
    [
        ("examples.nothing:TwoOfFour", "No module named 'examples.nothing'"),
        ("examples.own_selection:Nothing", "has no attribute 'Nothing'"),
        (":TwoOfFour", "Empty module name"),
        ("json:dumps", "it is no class that extends one_layer.supermask.Supermask"),
        (
            f"{__name__}:WrongValues",
            "with values from 0 to 2; it must make int8 of the same shape, with the values 0, 1",
        ),
        (f"{__name__}:Raises", "it cannot make a mask of scores .*ValueError: cannot reshape"),
        (f"{__name__}:Softens", "its `temperature` is 2.0, but .* rename it"),
        (f"{__name__}:WrongType", "its `select` makes bool"),
        (f"{__name__}:Signs", "model.dynamic_scale counts ones, and model.selection='[^']*:Signs' has -1 too"),
        (f"{__name__}:UnknownStore", "its stored_as is 'bits'; give one of magnitude"),
        ("biggest", "known are magnitude, .*, and module:Class for one's own"),
    ],
)
def test_what_is_no_selection_is_refused_with_the_reason(selection, problem):
    with user_error(problem):
        resolve(tiny.config({"model.selection": selection, "model.dynamic_scale": True}))


def test_bits_of_other_values_are_not_stored_as_what_they_are_not():
    with user_error("is stored as sign, whose masks have other values"):
        stored_as(WronglyStored(selection=f"{__name__}:WronglyStored"))


def test_no_ticket_makes_a_reader_run_code():
    """The class is not even looked for."""
    metadata = {"task": json.dumps("translation"), "seed": "1", "step": "1", "training": "{}", "evaluation": "{}"}
    model = {"selection": "antigravity:Anything", "source_vocab": 9, "target_vocab": 9}
    with user_error(r"its model\.selection names a class"):
        read_settings({**metadata, "model": json.dumps(model), "data": "{}"})
    assert "antigravity" not in sys.modules


def test_the_papers_code_does_not_have_it():
    with user_error(r"model\.selection is .*, but fairseq, or the paper's fork of it"):
        check_translates(tiny.run({"model.selection": OWN}).model_config(9, 9))

"""Run folders and tickets of earlier versions stay good: they are restored, evaluated and used, with the numbers of their day.

tests/old_runs has a run of each task, trained before the packages of one_layer/ were what they are.
"""

from __future__ import annotations

import dataclasses
import json
import shutil

import pytest

import one_layer
from one_layer.runs.evaluate import evaluate
from one_layer.runs.folder import RunFolder
from one_layer.system.errors import UserError
from one_layer.training.train import train
from tests import ROOT

OLD = ROOT / "tests" / "old_runs"
LINES = {
    "translation": ["wen besucht sie jetzt ?", "", "frauen glauben , dass sie ein fahrrad fährt ."],
    "classification": ["a fine river", "", "the poor bridge of a garden"],
}
TASKS = tuple(LINES)


@pytest.fixture(autouse=True)
def beside_the_texts(monkeypatch):
    monkeypatch.chdir(OLD)  # the classifier's config names its texts by a relative path


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", ["run", "ticket", "packed"])
def test_it_scores_what_it_scored(task, kind):
    path = OLD / task / ("" if kind == "run" else "ticket.safetensors")
    found = evaluate(one_layer.load(path, packed=kind == "packed"), "test", None)
    for name, scores in json.loads((OLD / task / "result.json").read_text())["test"].items():
        then = {key: value for key, value in scores.items() if key not in ("signature", "nll")}
        assert {key: found[name][key] for key in then} == then
        if "nll" in scores:
            assert found[name]["nll"] == pytest.approx(scores["nll"], abs=1e-5)


@pytest.mark.parametrize("task", TASKS)
def test_the_ticket_says_what_the_run_says(task):
    run, ticket = (one_layer.load(path) for path in (OLD / task, OLD / task / "ticket.safetensors"))
    assert run.task == ticket.task == task
    said = run.lines(LINES[task])
    assert said == ticket.lines(line for line in LINES[task]) and said[1] == "" and said[0] and said[2]


@pytest.mark.parametrize(
    ("task", "changes"), [("classification", {}), ("translation", {"source": "text", "directory": "texts"})]
)
def test_a_text_that_is_gone_is_asked_for_in_words_that_an_evaluation_takes(monkeypatch, tmp_path, task, changes):
    model = one_layer.load(OLD / task / "ticket.safetensors")
    model = dataclasses.replace(model, data=dataclasses.replace(model.data, **changes))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        UserError, match=r"does not exist .* give the run's --config, and --config.data.directory=FOLDER$"
    ) as caught:
        evaluate(model, "test", None)
    assert "held_out" not in str(caught.value)


@pytest.mark.parametrize("task", TASKS)
def test_it_goes_on(task, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(OLD / task, folder)
    config = RunFolder(folder).read_config()
    train(config, folder, [])  # it is finished: the result is written again, and equals the old one
    before, after = (json.loads((path / "result.json").read_text()) for path in (OLD / task, folder))
    for scores in (*before["test"].values(), *after["test"].values()):
        scores.pop("signature", None)
        if "nll" in scores:
            scores["nll"] = pytest.approx(scores["nll"], abs=1e-5)
    for name, scores in before["test"].items():  # a later version may report more
        assert {key: after["test"][name][key] for key in scores} == scores
    assert after["test"].keys() == before["test"].keys() and after["steps"] == before["steps"]

"""Short names: as short as the report allows, each of one model, and without folders and fingerprints."""

import json

import pytest

from one_layer.report.point import KEEP
from one_layer.report.points import points
from one_layer.report.reading import read_runs
from tests import ROOT
from tests.report.made_runs import SEARCH, found, write_run

DENSE = {"model.weights": "dense", "model.embedding": "trained"}

RESERVOIRS = {**DENSE, "model.encoder_layers": "LRL"}


def named(folder, models):
    """The short names of runs with these changes, in their order."""
    for number, changes in enumerate(models):
        write_run(folder / f"{number:02}", changes, 30.0)
    return [point.label for point in sorted(found(folder), key=lambda point: point.records[0].folder)]


@pytest.mark.parametrize(
    ("models", "names"),
    [
        ([{}], ["masks"]),
        ([{}, DENSE], ["masks", "dense"]),
        ([{"model.d_model": 512}, DENSE], ["masks 512", "dense 128"]),
        ([{}, {}, {"optim.lr": 0.1}], ["masks", "masks run no. 2 of this seed", "masks lr 0.1"]),
        ([{KEEP: 0.3}, {KEEP: 0.5}], ["masks keep 0.3", "masks keep 0.5"]),
        ([{KEEP: 0.3}, {"seed": 2}, {"optim.lr": 0.1}], ["masks lr 0.002 keep 0.3", "masks lr 0.002", "masks lr 0.1"]),
        ([{"optim.freeze": "masks"}, {}], ["random masks", "masks"]),
        ([{"model.selection": "sign"}, {"model.selection": "sign", "optim.freeze": "masks"}, {}], ["signs", "random signs", "masks"]),
        ([{}, {"model.encoder_layers": 4}, {"model.encoder_layers": 2, "optim.lr": 0.1}], ["masks", "masks 4+2", "masks lr 0.1"]),
        ([{}, {"train.init_from": "runs/a"}], ["masks from scratch", "masks fine-tuned"]),
        ([{"train.init_from": f"runs/{name}"} for name in "ab"], ["masks (no. 1)", "masks (no. 2)"]),
        (
            [{"data.teacher": "runs/a"}, {"data.translations": "runs/b.de"}, {"data.teacher": "runs/a", "optim.lr": 0.1}, {}],
            ["masks (no. 1)", "masks (no. 2)", "masks lr 0.1", "masks no teacher"],
        ),
        ([{**RESERVOIRS, "model.reservoir": kind} for kind in ("gru", "ffn")], ["reservoirs gru", "reservoirs ffn"]),
        ([RESERVOIRS, {**RESERVOIRS, "train.backskip": "policy"}], ["reservoirs", "reservoirs backskip policy"]),
        ([DENSE, {**DENSE, "model.layerdrop": 0.1}], ["dense", "dense LayerDrop 0.1"]),
    ],
)  # fmt: skip
def test_a_name_says_what_tells_a_model_from_the_others_and_no_more(tmp_path, models, names):
    assert named(tmp_path, models) == names


def test_imported_models_and_what_is_taken_over_from_them_are_not_called_random(tmp_path):
    """The imported run has scores alone; the other one has masks over its layers, and its frozen table."""
    imported = write_run(tmp_path / "0", {"model.embedding": "frozen"}, 0.0)
    (imported / "result.json").unlink()
    (imported / "metrics.jsonl").write_text("")
    values = {"split": "test", "checkpoint": "best", "bleu_tokenized": 20.0, "signature": "tok:13a|version:2.6.0"}
    (imported / "evaluation-test-best.json").write_text(json.dumps({**values, **SEARCH, "fingerprint": "cccc3333"}))
    write_run(tmp_path / "1", {"model.embedding": "frozen", "train.init_from": "runs/0"}, 30.0)
    write_run(tmp_path / "2", {"model.embedding": "frozen", "optim.lr": 0.1}, 10.0)
    points = sorted(found(tmp_path), key=lambda point: point.records[0].folder)
    assert [point.label for point in points] == ["masks imported", "masks fine-tuned", "masks frozen random embeddings"]
    assert ["taken over, frozen embeddings" in point.description for point in points] == [True, True, False]


def test_a_selection_of_one_s_own_is_named(tmp_path):
    write_run(tmp_path / "own", {"model.selection": "mine:TwoOfFour"}, 30.0)
    (point,) = found(tmp_path)
    assert "selection mine:TwoOfFour" in point.description


@pytest.mark.slow
def test_no_two_models_of_the_recorded_runs_have_one_name_and_none_has_a_folder_or_a_fingerprint():
    for file in sorted((ROOT / "results").rglob("*.jsonl.zst")):
        every = points(read_runs(f"{file}/figures" if file.name.startswith("toy") else str(file)))
        labels = {(point.bench, point.label): (point.setting, point.scored) for point in every}
        assert len(labels) == len(every)
        assert {point.label: point.setting for point in every}.items() == {(p.label, p.setting) for p in every}
        words = [word for point in every for word in point.label.split()]
        assert not [word for word in words if "/" in word or len(word) > 16]

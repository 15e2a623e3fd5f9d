"""What the report says of the papers' tables and claims."""

from __future__ import annotations

import pytest

from one_layer.report.claims import claims
from one_layer.report.figures import comparisons
from one_layer.report.points import points
from one_layer.report.reading import read_runs
from one_layer.report.tables import all_points, examples, table_1
from tests.report.made_runs import KEEPS, found, write_run


def test_the_papers_numbers_stand_beside_ours(runs):
    every = points(read_runs(str(runs)))
    rows = {row[0].split(" (")[0]: row for row in table_1({every[0].bench: every}).rows}
    assert rows["fully weighted"][1] == "34.66 ± 0.11" and rows["fully weighted"][-1] == "97.20 ± 0.10 (3 runs)"
    assert rows["one random layer, pre-trained embeddings"][-1] == "93.00 ± 0.40 (3 runs)"
    assert rows["the same, twice as deep"][-1] == "missing"
    assert "90.00" in rows["one random layer, random embeddings"][-1]


def test_layer_strings_and_numbers_of_layers_are_compared_by_depth(tmp_path):
    pretrained = {"model.embedding_path": "runs/dense", "model.embedding_source": "run"}
    models = [
        ({}, 10.0),
        ({"model.weights": "dense", "model.encoder_layers": "LL", "model.decoder_layers": "LL"}, 20.0),
        ({**pretrained, "model.encoder_layers": "SS"}, 30.0),
        ({**pretrained, "model.d_model": 256, "model.decoder_layers": "2S+0R"}, 40.0),
        ({**pretrained, "model.encoder_layers": "SSSS", "model.decoder_layers": "SSSS"}, 50.0),
    ]
    for changes, value in models:
        write_run(tmp_path / str(value), changes, value)
    every = found(tmp_path)
    assert [row[-1].split()[0] for row in table_1({every[0].bench: every}).rows] == [
        "20.00",
        "10.00",
        "30.00",
        "40.00",
        "50.00",
    ]


def test_claims_follow_the_points(runs, tmp_path):
    every = points(read_runs(str(runs)))
    verdicts = {row[1]: row[2] for row in claims({every[0].bench: comparisons(every)}).rows}
    assert verdicts["one layer about equals L layers"] == verdicts["pre-trained embeddings help"] == "holds"
    assert verdicts["one layer: best around keep 0.5, worst near 0 and 1"] == "holds"
    for keep, one, other in ((0.1, 20.0, 30.0), (0.5, 35.0, 30.0), (0.9, 50.0, 30.0)):
        write_run(tmp_path / f"a{keep}", {"model.keep": keep}, one)
        write_run(
            tmp_path / f"b{keep}", {"model.keep": keep, "model.weights": "multi_layer", "model.sharing": "none"}, other
        )
    others = found(tmp_path)
    rows = {row[1]: row for row in claims({others[0].bench: comparisons(others)}).rows}
    assert rows["one layer about equals L layers"][2] == "does not hold"
    assert rows["one layer about equals L layers"][3].endswith("not at keep 0.1, 0.5, 0.9")
    assert rows["one layer: best around keep 0.5, worst near 0 and 1"][2] == "does not hold"


def test_of_two_nlls_the_smaller_one_is_better(tmp_path):
    def write(changes, nll):
        line = {"source": "a", "reference": "b", "hypothesis": str(nll)}
        write_run(tmp_path / str(nll), changes, 0.0, test={"test": {"nll": nll}}, examples={"test": [line]})

    pretrained, many = {"model.embedding_path": "runs/dense"}, {"model.weights": "multi_layer", "model.sharing": "none"}
    for keep, nll in ((0.1, 2.0), (0.5, 1.5), (0.9, 1.9)):
        for changes, more in ((pretrained, 0.0), ({}, 0.01), (many, 0.02)):
            write({**changes, "model.keep": keep}, nll + more)
    for nll in (1.2, 3.0):
        write({"model.weights": "dense", "optim.lr": nll}, nll)
    every = found(tmp_path)
    bench = every[0].bench
    judged = {row[1]: row[2:] for row in claims({bench: comparisons(every)}).rows}
    best = next(verdict for claim, verdict in judged.items() if claim.startswith("one layer: best"))
    assert best == ["holds", "best at 0.5 (1.51), worst at 0.1 (2.01)"]
    assert judged["pre-trained embeddings help"][0] == "holds"
    assert sorted(examples(every).rows[0][2:]) == ["1.2", "1.5", "1.52"]
    table = all_points(bench, every)
    assert {row[table.columns.index("of the best fully weighted")] for row in table.rows} == {""}


@pytest.mark.parametrize(
    ("task", "measure", "verdicts"),
    [
        ("translation", "bleu_tokenized", ["holds", "does not hold"]),
        ("classification", "accuracy", ["does not hold", "holds"]),
        ("causal_lm", "nll", []),
        ("masked_lm", "accuracy", []),
    ],
)
def test_each_task_is_judged_by_what_paper_a_says_of_it(tmp_path, task, measure, verdicts):
    """Of two models, one is best at keep 0.5 and the other at 0.7."""
    for rate, best in ((0.1, 0.5), (0.2, 0.7)):
        for keep in KEEPS:
            values = {"test": {measure: 0.9 - abs(keep - best)}}
            write_run(
                tmp_path / f"{best},{keep}", {"task": task, "model.keep": keep, "optim.lr": rate}, 0.0, test=values
            )
    every = found(tmp_path)
    rows = claims({every[0].bench: comparisons(every)}).rows
    assert [row[2] for row in rows] == verdicts

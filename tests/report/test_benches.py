"""Benches: which points are on the same text, and what models and texts are called there."""

import pytest

from one_layer.report.figures import comparisons
from one_layer.report.tables import all_points
from tests.report.made_runs import found, write_run


def test_runs_on_two_texts_are_told_apart(tmp_path):
    """Runs alike but for the text, which lies in folders of two names."""
    for seed, text in ((1, "small"), (2, "small"), (3, "large")):
        changes = {"data.source": "text", "data.directory": text, "seed": seed}
        write_run(tmp_path / f"{seed}", changes, 30.0 + seed, data={"train": f"{text}5678", "test": "cccc3333"})
    every = found(tmp_path)
    assert {point.values for point in every} == {(31.0, 32.0), (33.0,)}
    (table,) = [all_points(bench, every) for bench in {point.bench for point in every}]
    assert sorted(row[0] for row in table.rows) == ["masks training text large5678", "masks training text small5678"]


def test_runs_that_were_validated_on_two_texts_share_no_mean(tmp_path):
    """Their checkpoints were selected by other texts. A training text that differs says so alone: ids of the same text differ with it."""
    for seed, valid in ((1, "bbbb2222"), (2, "bbbb2222"), (3, "dddd4444")):
        write_run(tmp_path / f"{seed}", {"seed": seed}, 30.0, data={"train": "a", "valid": valid, "test": "c"})
    assert sorted(len(point.values) for point in found(tmp_path)) == [1, 2]
    assert {name for point in found(tmp_path) for name, _ in point.setting if " " in name} == {"validation text"}
    write_run(tmp_path / "4", {"seed": 1}, 30.0, data={"train": "e", "valid": "ffff", "test": "c"})
    named = [dict(point.setting) for point in found(tmp_path)]
    assert sorted((each["training text"], each.get("validation text", "")) for each in named) == [
        ("a", "bbbb22"),
        ("a", "dddd44"),
        ("e", ""),
    ]


@pytest.mark.parametrize("texts", [("small567", "small567"), ("small567", "large567")])
def test_models_on_two_texts_are_in_no_figure_together(tmp_path, texts):
    for keep in (0.3, 0.5, 0.7):
        for changes, text in zip(({}, {"model.weights": "multi_layer", "model.sharing": "none"}), texts, strict=True):
            each = {**changes, "model.keep": keep, "data.source": "text", "data.directory": text}
            write_run(tmp_path / f"{keep},{len(changes)}", each, 30.0, data={"train": text, "test": "cccc3333"})
    kinds = {comparison.kind.name for comparison in comparisons(found(tmp_path))}
    assert kinds == ({"figure2"} if len(set(texts)) == 1 else {"keep"})


def test_other_shares_of_masked_tokens_are_other_benches(tmp_path):
    for share in (0.15, 0.3):
        changes = {"task": "masked_lm", "data.mask_share": share}
        write_run(tmp_path / f"{share}", changes, 0.0, test={"test": {"nll": 3.0}})
    assert len({point.bench for point in found(tmp_path)}) == len({point.bench.title for point in found(tmp_path)}) == 2


def test_benches_of_one_test_set_and_measure_have_titles_of_their_own(tmp_path):
    other = {"signature": "tok:13a|case:lc"}
    for name, content, more in (("a", "cccc3333", {}), ("b", "dddd4444", {}), ("c", "dddd4444", other)):
        scores = {"test": {"bleu_tokenized": 30.0, **more}}
        write_run(tmp_path / name, {}, 0.0, data={"test": content}, test=scores)
    titles = [point.bench.title for point in found(tmp_path)]
    assert sorted(title.partition(", tok")[0] for title in titles) == [
        "test (text cccc33, signature A)",
        "test (text dddd44, signature A)",
        "test (text dddd44, signature B)",
    ]

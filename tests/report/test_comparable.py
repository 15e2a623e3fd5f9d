"""Which validation scores can be compared: those of tables, of curves and of areas."""

import pytest

from one_layer.report.areas import areas, table
from one_layer.report.comparable import groups
from one_layer.report.curves import convergence
from one_layer.report.reading import read_runs
from tests.report.made_runs import found, write_curve, write_run

TEXT = {"train": "aaaa1111", "test": "cccc3333"}
LANGUAGE = {"task": "causal_lm", "evaluation.stride": 64, "evaluation.valid_tokens": 0}
MASKED = {"task": "masked_lm", "data.mask_share": 0.15, "data.block": 128}
SEARCHED = {"evaluation.valid_beam": 1, "train.select": "bleu"}


@pytest.mark.parametrize(
    ("key", "valid", "together"),
    [
        ("data.bpe_merges", ("bbbb2222", "bbbb2222"), True),  # the ids say what a token is, however they came about
        ("data.max_length", ("bbbb2222", "dddd4444"), False),
        ("data.bpe_merges", ("", ""), False),  # runs of earlier versions, of whose validation text nothing is known
        ("data.max_length", ("", ""), False),
        ("data.max_length", ("", "bbbb2222"), False),
        ("data.max_tokens", ("", ""), True),
        ("data.max_tokens", ("", "bbbb2222"), True),
    ],
)
def test_scores_of_other_tokens_are_apart(tmp_path, key, valid, together):
    for number, fingerprint in enumerate(valid, 1):
        data = TEXT | ({"valid": fingerprint} if fingerprint else {})
        write_run(tmp_path / f"{number}", {key: number}, 90.0, data=data)
    assert len(groups(read_runs(str(tmp_path / "*")), "nll")) == (1 if together else 2)
    assert len(convergence(found(tmp_path), 1)) == (1 if together else 2)


def test_runs_without_a_fingerprint_join_no_two_texts(tmp_path):
    """Their keys are those of two runs with fingerprints, which say that the texts are different."""
    for name, valid in (("0", ""), ("1", "aaaa"), ("2", "bbbb")):
        data = {"train": "1", "test": "2"} | ({"valid": valid} if valid else {})
        write_run(tmp_path / name, {}, 90.0, data=data)
    found = groups(read_runs(str(tmp_path / "*")), "nll")
    assert [[record.folder.name for record in each] for each in found] == [["1", "0"], ["2"]]


@pytest.mark.parametrize(
    ("changes", "other", "score", "together"),
    [
        ({}, {"optim.lr": 1.0}, "nll", True),
        (LANGUAGE, {"evaluation.stride": 32}, "nll", False),
        (LANGUAGE, {"evaluation.valid_tokens": 1000}, "nll", False),
        (MASKED, {"data.mask_share": 0.3}, "nll", False),
        (MASKED, {"data.mask_share": 0.3}, "accuracy", False),
        (MASKED, {"evaluation.valid_tokens": 1000}, "accuracy", False),
        (MASKED, {"evaluation.stride": 32}, "nll", True),  # only a causal model is scored by windows
        (SEARCHED, {"evaluation.valid_beam": 5}, "bleu", False),
        (SEARCHED, {"evaluation.valid_beam": 5}, "nll", True),
    ],
)
def test_areas_are_compared_where_the_score_is_of_the_same(tmp_path, changes, other, score, together):
    for name, more in (("a", {}), ("b", other)):
        folder = write_run(tmp_path / name, changes | more, 90.0, valid={"select": score, "score": 1.0, "step": 2})
        write_curve(folder, {1: 1.0, 2: 1.0}, score)
    found = areas(read_runs(str(tmp_path / "*")))
    assert [len(each.records) for each in found] == ([2] if together else [1, 1])
    titles = [table(each, []).title for each in found]
    assert len(set(titles)) == len(found)

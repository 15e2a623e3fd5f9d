"""How two runs differ: keys, scores and costs."""

import pytest

from one_layer.report.differences import costs, keys, scores
from one_layer.report.reading import Record, read_runs
from tests.report.made_runs import write_run


def pair(folder, first=None, second=None, more=None, other=None) -> tuple[Record, Record]:
    write_run(folder / "1", first or {}, 30.0, **(more or {}))
    write_run(folder / "2", second or {}, 32.0, **(other or {}))
    one, two = read_runs(str(folder / "*"))
    return one, two


def test_keys_that_change_scores_come_first(tmp_path):
    one, two = pair(tmp_path, {"data.store": "x", "model.keep": 0.3}, {"optim.newer": "x"})
    assert keys(one, two).rows == [
        ["model.keep", "0.3", "0.5", ""],
        ["optim.newer", "-", '"x"', ""],
        ["data.store", '"x"', "-", "no score"],
    ]
    assert keys(one, one).rows == []


def test_a_key_that_is_gone_is_a_difference_only_where_it_did_something(tmp_path):
    one, two = pair(tmp_path, {"model.coats": 1, "data.min_count": 1}, {"data.min_count": 2})
    assert keys(one, two).rows == [["data.min_count", "1", "2", ""]]


@pytest.mark.parametrize(
    ("other", "names"),
    [
        ({}, ["test, tokenised BLEU", "nll on valid"]),
        ({"data": {"test": "another", "valid": "bbbb2222"}}, ["nll on valid"]),
        ({"data": {"test": "cccc3333", "valid": "another"}}, ["test, tokenised BLEU"]),
        ({"test": {"test": {"bleu_tokenized": 32.0, "signature": "tok:zh"}}}, ["nll on valid"]),
        ({"valid": {"select": "bleu"}}, ["test, tokenised BLEU"]),
    ],
)
def test_only_scores_of_one_content_by_one_measure_are_compared(tmp_path, other, names):
    one, two = pair(tmp_path, other=other)
    table = scores(one, two)
    assert [row[0] for row in table.rows] == names
    assert ("Only one of the runs has test" in table.caption) == ("test, tokenised BLEU" not in names)


def test_better_follows_the_measure(tmp_path):
    """More BLEU is better, and less nll, so that the best evaluation is the one with the least."""
    one, two = pair(tmp_path)
    found = [row[-4:] for row in scores(one, two).rows]
    assert found == [["30", "32", "+2", "second"], ["2.45", "2.43", "-0.02", "second"]]
    assert [row[-2:] for row in scores(two, one).rows] == [["-2", "first"], ["+0.02", "first"]]


def test_seconds_of_other_devices_have_no_ratio_and_skipped_updates_are_said(tmp_path):
    one, two = pair(
        tmp_path, more={"skipped_updates": 3, "train_flops": 2e12}, other={"device": "gpu", "train_flops": 1e12}
    )
    rows = {row[0]: row[1:] for row in costs(one, two).rows}
    assert rows["seconds"] == ["60", "60", "other devices"] and rows["operations"] == ["2e+12", "1e+12", "0.500"]
    assert rows["updates that were skipped"] == ["3", "0", ""]
    assert "updates that were skipped" not in {row[0] for row in costs(two, two).rows}

"""Labelled text: every publisher's layout gives the same rows; what does not fit is named with its line."""

import json
from pathlib import Path

import pytest
import tensorflow_datasets as tfds

from one_layer.tasks.classification.glue import TASKS, UNDECIDED, rows_of_file, rows_of_tfds
from one_layer.tasks.classification.scoring import SCORES
from tests import tfds_sets, user_error

PAIRS = [
    ('A man "eats".', "He eats.", "entailment"),
    ("It rains.", "It is dry.", "contradiction"),
    ("A dog.", "A\u2028cat?", "neutral"),
]


def read(folder: Path, task: str, text: str) -> list[list[str]]:
    path = folder / ("file.jsonl" if text.startswith("{") else "file")
    path.write_text(text, encoding="utf-8")
    return [row for _, row in rows_of_file(task, path)]


def rows(*cells: tuple[object, ...]) -> str:
    return "".join("\t".join(map(str, row)) + "\n" for row in cells)


MNLI = (
    "index", "promptID", "pairID", "genre", "sentence1_binary_parse", "sentence2_binary_parse", "sentence1_parse",
    "sentence2_parse", "sentence1", "sentence2", "label1", "gold_label",
)  # fmt: skip
SNLI = ("gold_label", *MNLI[4:10])  # in the same order
LAYOUTS = {
    "mnli of GLUE": rows(MNLI, *[(*range(8), a, b, "neutral", label) for a, b, label in PAIRS]),
    "snli_1.0": rows(SNLI, *[(label, *range(4), a, b) for a, b, label in PAIRS]),
    "jsonl": "".join(json.dumps({"sentence1": a, "sentence2": b, "gold_label": c}) + "\n" for a, b, c in PAIRS),
    "other jsonl": "".join(json.dumps({"premise": a, "hypothesis": b, "label": c}) + "\n" for a, b, c in PAIRS),
    "label first": rows(*[(label, a, b) for a, b, label in PAIRS]),
    "label first and an id": rows(*[(label, a, b, 17) for a, b, label in PAIRS]),
    "label last": rows(*PAIRS),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_of_pairs_gives_the_same_rows(tmp_path: Path, layout: str) -> None:
    assert read(tmp_path, "mnli", LAYOUTS[layout]) == [list(pair) for pair in PAIRS]


@pytest.mark.parametrize(
    ("task", "text", "expected"),
    [
        (
            "qqp",
            rows(("id", "qid1", "qid2", "question1", "question2", "is_duplicate"), (1, 2, 3, "a?", "b?", 1)),
            ["a?", "b?", "1"],
        ),
        ("qqp", rows((0, "a?", "b?")), ["a?", "b?", "0"]),
        ("sst2", rows(("sentence", "label"), ("good ", 1)), ["good ", "1"]),
        ("sst2", rows((0, "bad")), ["bad", "0"]),
        ("sst2", '{"sentence": "bad", "label": 0, "idx": 4}\n', ["bad", "0"]),
        ("cola", rows(("gj04", 0, "*", "Him runs.")), ["Him runs.", "0"]),
        ("cola", rows((1, "He runs.")), ["He runs.", "1"]),
    ],
)
def test_layouts_of_the_other_tasks(tmp_path: Path, task: str, text: str, expected: list[str]) -> None:
    assert read(tmp_path, task, text) == [expected]
    assert expected[-1] in TASKS[task].written


def test_blank_lines_and_a_few_broken_ones_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    good = [("neutral", "a", "b")] * 2000
    assert len(read(tmp_path, "mnli", rows(*good) + "  \n\n\t\t\n" + rows(("neutral", "a")))) == 2000
    assert "1 lines with another number of columns than line 1 are left out" in caplog.text


@pytest.mark.parametrize(
    ("task", "text", "message"),
    [
        (
            "qqp",
            rows((0, "a", "b"), (1, "c")),
            r"file, line 2: it has another number of columns than line 1, like 1 of",
        ),
        ("qqp", rows(("a", "b", "c")), r"file, line 1: 'a\|b\|c' is neither a header of qqp nor 3 columns"),
        ("rte", rows(("index", "sentence1", "sentence2"), (0, "a", "b")), r"file has no gold_label or label or is_dup"),
        ("sst2", rows(("gj04", 1, "", "He runs.")), r"file, line 1: .* is neither a header of sst2 nor 2 columns"),
        (
            "sst2",
            rows((1, "a", "b"), (0, "c", "d")),
            r"file, line 1: '1\|a\|b' is neither a header of sst2 nor 2 columns",
        ),
        ("sst2", '{"premise": "a", "hypothesis": "b", "label": 0}\n', r"file.jsonl has no sentence among premise"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, task: str, text: str, message: str) -> None:
    with user_error(message):
        read(tmp_path, task, text)


def test_tasks_have_scores_that_exist() -> None:
    assert all(set(task.scores) <= set(SCORES) for task in TASKS.values())
    assert TASKS["cola"].scores == ("matthews",) and "f1" in TASKS["qqp"].scores


def test_a_data_set_of_tfds_gives_the_same_rows(tmp_path: Path) -> None:
    labels = tfds.features.ClassLabel(names=["contradiction", "entailment", "neutral"])  # another order
    text = tfds.features.Text()
    features = tfds.features.FeaturesDict({"premise": text, "hypothesis": text, "label": labels})
    examples = [{"premise": a, "hypothesis": b, "label": label} for a, b, label in PAIRS]
    examples.append({"premise": "x", "hypothesis": "y", "label": -1})
    tfds_sets.write(tmp_path, "tiny_mnli", features, {"train": examples})
    found = [tuple(row) for _, row in rows_of_tfds("mnli", "tiny_mnli", "train", str(tmp_path))]
    assert set(found) == {*PAIRS, ("x", "y", UNDECIDED[0])} and len(found) == 4
    for task, message in (
        ("qqp", "has no question1 among"),
        ("rte", "has the labels contradiction entailment neutral, but rte"),
    ):
        with user_error(message):
            next(rows_of_tfds(task, "tiny_mnli", "train", str(tmp_path)))

"""Labelled text: every publisher's layout gives the same records; what does not fit is named with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tensorflow_datasets as tfds

from one_layer.system.errors import UserError
from one_layer.tasks.classification.glue import TASKS, Example, read_examples, read_tfds_examples, task_named
from one_layer.tasks.classification.measures import SCORES
from tests import tfds_sets

PAIRS = [('A man "eats".', "He eats.", 0), ("It rains.", "It is dry.", 2), ("A dog.", "A\u2028cat?", 1)]


def written(folder: Path, text: str) -> Path:
    (folder / "file").write_text(text, encoding="utf-8")
    return folder / "file"


def rows(*cells: tuple[object, ...]) -> str:
    return "".join("\t".join(map(str, row)) + "\n" for row in cells)


def names(task: str) -> list[tuple[str, str, str]]:
    return [(first, second, TASKS[task].labels[label]) for first, second, label in PAIRS]


MNLI = (
    "index", "promptID", "pairID", "genre", "sentence1_binary_parse", "sentence2_binary_parse", "sentence1_parse",
    "sentence2_parse", "sentence1", "sentence2", "label1", "gold_label",
)  # fmt: skip
SNLI = (
    "gold_label",
    "sentence1_binary_parse",
    "sentence2_binary_parse",
    "sentence1_parse",
    "sentence2_parse",
    *MNLI[8:10],
)
LAYOUTS = {
    "mnli of GLUE": rows(MNLI, *[(*range(8), a, b, "neutral", label) for a, b, label in names("mnli")]),
    "snli_1.0": rows(SNLI, *[(label, *range(4), a, b) for a, b, label in names("snli")]),
    "jsonl": "".join(json.dumps({"sentence1": a, "sentence2": b, "gold_label": c}) + "\n" for a, b, c in names("mnli")),
    "other jsonl": "".join(json.dumps({"premise": a, "hypothesis": b, "label": c}) + "\n" for a, b, c in names("mnli")),
    "label first": rows(*[(label, a, b) for a, b, label in names("mnli")]),
    "label first and an id": rows(*[(label, a, b, 17) for a, b, label in names("mnli")]),
    "label last": rows(*names("mnli")),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("task", ["mnli", "snli"])
def test_every_layout_of_pairs_gives_the_same_records(tmp_path: Path, layout: str, task: str) -> None:
    read = read_examples(TASKS[task], written(tmp_path, LAYOUTS[layout]))
    assert read.examples == tuple(Example(*pair) for pair in PAIRS) and (read.unlabelled, read.malformed) == (0, 0)


@pytest.mark.parametrize(
    ("task", "text", "expected"),
    [
        (
            "qqp",
            rows(("id", "qid1", "qid2", "question1", "question2", "is_duplicate"), (1, 2, 3, "a?", "b?", 1)),
            ("a?", "b?", 1),
        ),
        ("qqp", rows((0, "a?", "b?")), ("a?", "b?", 0)),
        ("rte", rows(("index", "sentence1", "sentence2", "label"), (0, "a", "b", "not_entailment")), ("a", "b", 1)),
        ("sst2", rows(("sentence", "label"), ("good ", 1)), ("good ", "", 1)),
        ("sst2", rows((0, "bad")), ("bad", "", 0)),
        ("sst2", '{"sentence": "bad", "label": 0, "idx": 4}\n', ("bad", "", 0)),
        ("cola", rows(("gj04", 0, "*", "Him runs.")), ("Him runs.", "", 0)),
        ("cola", rows(("gj04", 1, "", "He runs.")), ("He runs.", "", 1)),
        ("cola", rows((1, "He runs.")), ("He runs.", "", 1)),
    ],
)
def test_layouts_of_the_other_tasks(tmp_path: Path, task: str, text: str, expected: tuple[str, str, int]) -> None:
    assert read_examples(TASKS[task], written(tmp_path, text)).examples == (Example(*expected),)


def test_what_has_no_agreed_label_and_a_few_broken_lines_are_left_out_and_counted(tmp_path: Path) -> None:
    text = rows(*[("neutral", "a", "b")] * 2000, ("-", "a", "b"), ("neutral", "a"), ("-1", "c", "d"))
    read = read_examples(TASKS["mnli"], written(tmp_path, text))
    assert (len(read), read.unlabelled, read.malformed) == (2000, 2, 1)
    assert read.describe() == (
        "mnli: 2,000 examples (0 entailment, 2,000 neutral, 0 contradiction; always neutral: 100.0 %); left out: 2 without an agreed "
        "label, 1 broken lines"
    )


@pytest.mark.parametrize(
    ("task", "text", "message"),
    [
        (
            "mnli",
            rows((0, "a", "b"), (3, "c", "d")),
            r"file, line 1: the label '0' is unknown; mnli has entailment neutral .* data.labels=0:entailment,1:neutral,2:contra",
        ),
        ("qqp", rows((0, "a", "b"), ("entailment", "c", "d")), r"file, line 2: the label 'entailment' is unknown"),
        (
            "qqp",
            rows((0, "a", "b"), (1, "c")),
            r"file, line 2: '1\\tc' has another number of columns than line 1, like 1 of 2 lines",
        ),
        ("qqp", rows(("a", "b", "c")), r"file, line 1: 'a\\tb\\tc' is neither a header of qqp nor 3 columns"),
        (
            "rte",
            rows(("index", "sentence1", "sentence2"), (0, "a", "b")),
            r"file has no gold_label or label or is_duplicate",
        ),
        (
            "mnli",
            '{"premise": "a", "hypothesis": "b", "label": "neutral"}\n{"premise": "a"}\n',
            r"file, line 2: KeyError\('label'\)",
        ),
        (
            "mnli",
            '{"premise": "a", "hypothesis": "b", "label": "neutral"}\n{"premise\n',
            r"file, line 2: JSONDecodeError",
        ),
        *(
            ("sst2", f'{{"sentence": "a", "label": 0}}\n{line}\n', r"file, line 2: (TypeError|ValueError)")
            for line in ("3", "null", '{"sentence": 7, "label": 0}')
        ),
        ("sst2", rows(("gj04", 1, "", "He runs.")), r"file, line 1: .* is neither a header of sst2 nor 2 columns"),
        ("mnli", '{"premise\n', r"file, line 1: .*; each line needs a JSON object"),
        ("sst2", '{"a":' * 100_000 + "\n", r"file, line 1: .*; each line needs a JSON object"),
        (
            "sst2",
            '{"sentence": "a", "label": 1}\n[1]\n',
            r"file, line 2: TypeError.* in '\[1\]'; each line needs texts",
        ),
        ("sst2", '{"sentence": null, "label": 1}\n', r"file, line 1: ValueError\('None is not a text'\)"),
        ("sst2", '{"sentence": "\\ud800", "label": 1}\n', r"file, line 1: ValueError.*ud800.* is not a text"),
        (
            "sst2",
            rows((1, "a", "b"), (0, "c", "d")),
            r"file, line 1: '1\\ta\\tb' is neither a header of sst2 nor 2 columns",
        ),
        ("sst2", '{"premise": "a", "hypothesis": "b", "label": 0}\n', r"file has no sentence among premise"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, task: str, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_examples(task_named(task), written(tmp_path, text))


def test_tasks_have_scores_that_exist() -> None:
    assert all(set(task.scores) <= set(SCORES) for task in TASKS.values())
    assert TASKS["cola"].scores == ("matthews",) and "f1" in TASKS["qqp"].scores
    with pytest.raises(UserError, match=r"data\.labels is 'wnli'; known are qqp, mnli"):
        task_named("wnli")


def test_a_data_set_of_tfds_gives_the_same_records(tmp_path: Path) -> None:
    labels = tfds.features.ClassLabel(names=["contradiction", "entailment", "neutral"])  # another order
    text = tfds.features.Text()
    features = tfds.features.FeaturesDict({"premise": text, "hypothesis": text, "label": labels})
    examples = [{"premise": a, "hypothesis": b, "label": label} for a, b, label in names("mnli")]
    examples.append({"premise": "x", "hypothesis": "y", "label": -1})
    tfds_sets.write(tmp_path, "tiny_mnli", features, {"train": examples})
    read = read_tfds_examples(TASKS["mnli"], "tiny_mnli", "train", str(tmp_path))
    assert set(read.examples) == {Example(*pair) for pair in PAIRS} and (len(read), read.unlabelled) == (3, 1)
    for task, message in (
        ("qqp", "has no question1 among"),
        ("rte", "has the labels contradiction entailment neutral, but rte"),
    ):
        with pytest.raises(UserError, match=message):
            read_tfds_examples(TASKS[task], "tiny_mnli", "train", str(tmp_path))


@pytest.mark.parametrize("end", ["\n", "  \n\n", "\t\t\n"])
def test_blank_lines_are_skipped(tmp_path: Path, end: str) -> None:
    text = rows(("sentence", "label"), ("A dog.", 1), ("Rain.", 0))
    found = read_examples(TASKS["sst2"], written(tmp_path, text + end))
    assert [(each.first, each.label) for each in found.examples] == [("A dog.", 1), ("Rain.", 0)]
    assert found.malformed == found.unlabelled == 0
    record = json.dumps({"sentence": "A dog.", "label": 1}) + "\n"
    assert len(read_examples(TASKS["sst2"], written(tmp_path, record + end + record))) == 2

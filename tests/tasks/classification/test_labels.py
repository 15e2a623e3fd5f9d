"""Labels of the user's own: every kind of file gives the same texts, and a number never stands for a name that nobody gave it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus
from one_layer.data.loading import load, load_scored
from one_layer.data.special_tokens import UNK
from one_layer.tasks.classification.corpus import LabelledReader
from one_layer.tasks.classification.labels import describe_counts, label_set, majority
from tests import user_error

ROWS = [("a b", "c", "entails"), ("b", "a", "neutral"), ("c", "c", "entails"), ("a", "b c", "neutral")]
LABELS = "entails,neutral"


def config(folder: Path, labels: str = LABELS, columns: str = "one,two,gold", **keys: object) -> DataConfig:
    names = {name: next(folder.glob(f"{name}.*")).name for name in ("train", "valid") if list(folder.glob(f"{name}.*"))}
    given = {"source": "labelled", "source_language": "en", "directory": str(folder), "tests": (), **names, **keys}
    return DataConfig(labels=labels, columns=columns, **given)  # type: ignore[arg-type]


def written(folder: Path, ending: str, text: str) -> Path:
    for name in ("train", "valid"):
        (folder / f"{name}.{ending}").write_text(text)
    return folder


def read(config: DataConfig) -> Corpus:
    return load(config, reader=LabelledReader())


def names(corpus: Corpus) -> list[str]:
    return [corpus.target_vocabulary.tokens[ids[0]] for ids in corpus.train.target]


def tabbed(rows: list[tuple[str, ...]], header: str = "") -> str:
    return header + "".join("\t".join(row) + "\n" for row in rows)


def test_files_of_every_kind_give_the_same_texts(tmp_path: Path) -> None:
    kinds = {
        "tsv": (tabbed(ROWS, "one\ttwo\tgold\n"), "one,two,gold"),
        "txt": (tabbed([(label, b, a) for a, b, label in ROWS]), "3,2,1"),
        "csv": (tabbed(ROWS, "one\ttwo\tgold\n").replace("\t", ","), "one,two,gold"),
        "jsonl": ("".join(json.dumps({"gold": c, "two": b, "one": a}) + "\n" for a, b, c in ROWS), "one,two,gold"),
    }
    found = []
    for place, (ending, (text, columns)) in enumerate(kinds.items()):
        (folder := tmp_path / str(place)).mkdir()
        corpus = read(config(written(folder, ending, text), columns=columns))
        found.append(([ids.tolist() for ids in corpus.train.source], names(corpus), corpus.valid.source_text))
    assert found[0][1] == [label for _, _, label in ROWS] and all(each == found[0] for each in found)


def test_labels_can_come_from_the_training_text(tmp_path: Path) -> None:
    rows = [(a, b, f"very {label}") for a, b, label in ROWS]
    corpus = read(config(written(tmp_path, "tsv", tabbed(rows)), "from_train", "1,2,3"))
    assert corpus.target_vocabulary.tokens[UNK + 1 :] == ("very_entails", "very_neutral")
    assert "valid.tsv: 4 texts (2 very_entails, 2 very_neutral; always very_entails: 50.0 %)" in corpus.report
    # A run's folder or ticket has the labels: the training text is not needed to score.
    (tmp_path / "train.tsv").unlink()
    (tmp_path / "valid.tsv").write_text(tabbed([("a", "b", "other")]))
    data = config(tmp_path, "from_train", "1,2,3", train="train.tsv")
    with user_error(
        r"the label 'other' does not occur in the training text, which has very_entails.*_neutral; correct the label, or list the "
        r"labels in data\.labels$"
    ):
        load_scored(data, corpus.vocabularies, None, "valid", LabelledReader())
    _, encode = LabelledReader().encoders(replace(data, held_out=0.1), corpus.vocabularies)
    with user_error(r"_neutral \(data\.held_out=0\.1 may have taken all of its texts out\); correct the"):
        encode("other")
    _, encode = LabelledReader().encoders(replace(data, teacher="runs/t"), corpus.vocabularies)
    with user_error(r"in the training text of data\.teacher=runs/t, which has very_.*; .* give a teacher that has it$"):
        encode("other")


def test_bare_numbers_need_names(tmp_path: Path) -> None:
    rows = [(a, b, str(int(label == "entails"))) for a, b, label in ROWS]
    folder = written(tmp_path, "tsv", tabbed(rows))
    with user_error(r"valid.tsv, line 1: the label '1' is unknown; .* data.labels=0:entails,1:neutral"):
        read(config(folder, LABELS, "1,2,3"))
    for labels in ("0:neutral,1:entails", "1:entails,0:neutral"):
        assert names(read(config(folder, labels, "1,2,3"))) == [label for _, _, label in ROWS]
    assert names(read(config(folder, "0,1", "1,2,3"))) == [label for *_, label in rows]
    # Nor does a training text say what its numbers mean.
    with user_error(r"bare numbers, 0, 1; .* --config.data.labels=0:NAME,1:NAME, or keep .*=0,1$"):
        read(config(folder, "from_train", "1,2,3"))
    written(folder, "tsv", tabbed([*rows, ("a", "c", "2")]))
    with user_error(r"line 5: the label '2' is unknown; data.labels has 0, 1; add 2:NAME$"):
        read(config(folder, "0:neutral,1:entails", "1,2,3"))
    written(folder, "tsv", tabbed([*rows, ("a", "c", "2nd")] * 2))
    assert names(read(config(folder, "from_train", "1,2,3"))).count("2nd") == 2  # one name is enough


@pytest.mark.parametrize("pair", [("-1", "1"), ("0.0", "1.0"), ("1e0", "-1e0"), ("-1", "neutral")])
def test_numbers_are_numbers_however_they_are_written(tmp_path: Path, pair: tuple[str, str]) -> None:
    first, second = sorted(pair)
    folder = written(tmp_path, "tsv", tabbed([(a, b, pair[label == "entails"]) for a, b, label in ROWS]))
    if "neutral" in pair:
        assert read(config(folder, "from_train", "1,2,3")).target_vocabulary.tokens[UNK + 1 :] == (first, second)
        return
    with user_error(rf"numbers, {first}, {second}; .* --config.data.labels={first}:NAME,{second}:NAME"):
        read(config(folder, "from_train", "1,2,3"))
    assert set(names(read(config(folder, f"{first}:bad,{second}:good", "1,2,3")))) == {"bad", "good"}
    with user_error(rf"the label '{pair[1]}' is unknown; .* say what the numbers mean"):
        read(config(folder, LABELS, "1,2,3"))


def test_a_task_whose_publisher_has_names_takes_no_numbers(tmp_path: Path) -> None:
    folder = written(tmp_path, "tsv", tabbed([("1", "a", "b"), ("0", "b", "c")]))
    with user_error(r"line 1: the label '1' is unknown; .*data.labels=0:entailment,1:not_ent"):
        read(config(folder, "rte", ""))
    assert names(read(config(folder, "qqp", ""))) == ["duplicate", "not_duplicate"]
    assert names(read(config(folder, "qqp", "2,3,1"))) == ["duplicate", "not_duplicate"]


@pytest.mark.parametrize(
    ("labels", "columns", "message"),
    [
        ("wnli", "1,2", r"data.labels='wnli' is neither one of the tasks qqp, .* entails,neutral"),
        ("a,a", "1,2", "nor a list of at least two different labels"),
        ("0:a,0:b", "1,2", "nor a list of at least two different labels"),
        ("a,", "1,2", "nor a list of at least two different labels"),
        ("a,b", "", r"are labels of your own, which need data.source=labelled and data.columns"),
        ("a,b", "text", r"data.columns='text' has 1 column; classification needs one text or two, and then the label"),
        ("a,b", "1,2,3,4", r"has 4 columns"),
        ("a,b", "text,2", r"must be different names, or, for files without a header, numbers from 1"),
        ("a,b", "0,1", r"numbers from 1"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, labels: str, columns: str, message: str) -> None:
    with user_error(message):
        label_set(config(tmp_path, labels, columns))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [("text", "label"), ("a", "x"), ("b", "y"), ("c", "y")],
            r"'label', occurs only once; if the first line is a header",
        ),
        ([("a", "x"), ("b", "x")], r"has 1 different label in 2 lines"),
        ([("x", "a"), ("x", "b"), ("x", "a"), ("x", "c"), ("y", "d")], r"has 4 different labels in 5 lines"),
        ([("a", ""), ("b", "x")], r"valid.tsv, line 1: the label is empty"),
        ([("a", "x"), ("b", "</s>")], r"valid.tsv, line 2: the label '</s>' is the name of a special token"),
    ],
)
def test_labels_of_a_training_text_that_cannot_be_meant(
    tmp_path: Path, rows: list[tuple[str, ...]], message: str
) -> None:
    with user_error(message):
        read(config(written(tmp_path, "tsv", tabbed(rows)), "from_train", "1,2"))


def test_the_most_frequent_label() -> None:
    assert majority(["b", "a", "b", "c"]) == ("b", 0.5, {"a": 1, "b": 2, "c": 1})
    assert describe_counts(["good"] * 3 + ["bad"]) == "1 bad, 3 good; always good: 75.0 %"


def test_two_labels_that_would_have_one_name_are_not_merged(tmp_path):
    rows = [("a", "b", label) for label in ("very good", "bad", " very  good", "very_good")]
    with user_error(r"line 4: the labels 'very good' and 'very_good' would have one name"):
        read(config(written(tmp_path, "txt", tabbed(rows)), labels="from_train", columns="1,2,3"))

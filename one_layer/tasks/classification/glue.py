"""Readers of the GLUE tasks and SNLI: they turn the publishers' file formats into one type of record.

Wang et al. 2019 (arXiv 1804.07461), table 1, describes the tasks and their scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from one_layer.data.sources.table import json_row
from one_layer.data.sources.tfds_records import TfdsRecords
from one_layer.data.text.lines import read_lines
from one_layer.system.errors import UserError

_LABEL = ("gold_label", "label", "is_duplicate")
_MALFORMED_SHARE = 1e-3  # GLUE's own QQP has a few broken lines; a file with a larger share has another format


@dataclass(frozen=True)
class Task:
    """A labelled task on sentences or pairs of sentences.

    `labels`: names in the order of their numbers; files may have names or numbers. `scores`: names in
    `one_layer.tasks.classification.measures`; the first is the main score. `columns`: the names of the one or two texts in headers,
    JSON and TFDS. `bare`: the columns of the label and the texts in a publisher's file without a header. `numbered`: the publisher's
    files have the numbers of the labels; only then do bare numbers stand for labels.
    """

    name: str
    labels: tuple[str, ...]
    scores: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    bare: tuple[int, ...] = ()
    numbered: bool = False

    def number(self, label: Any) -> int | None:
        """The label's number; None for `-` and -1, which mean that annotators did not agree. Raises: ValueError for an unknown label."""
        text = str(label)
        if text in ("-", "-1"):
            return None
        if self.numbered and text.isascii() and text.isdigit() and int(text) < len(self.labels):
            return int(text)
        return self.labels.index(text)


_PREMISE, _HYPOTHESIS = ("sentence1", "premise"), ("sentence2", "hypothesis")
_INFERENCE = ("entailment", "neutral", "contradiction")
TASKS = {
    task.name: task
    for task in (
        Task(
            "qqp", ("not_duplicate", "duplicate"), ("accuracy", "f1"), (("question1",), ("question2",)), numbered=True
        ),
        Task("mnli", _INFERENCE, ("accuracy",), (_PREMISE, _HYPOTHESIS)),
        Task("snli", _INFERENCE, ("accuracy",), (_PREMISE, _HYPOTHESIS)),
        Task("rte", ("entailment", "not_entailment"), ("accuracy",), (_PREMISE, _HYPOTHESIS)),
        Task("sst2", ("negative", "positive"), ("accuracy",), (("sentence",),), numbered=True),
        Task("cola", ("unacceptable", "acceptable"), ("matthews",), (("sentence",),), bare=(1, 3), numbered=True),
    )
}


@dataclass(frozen=True)
class Example:
    """One text or two, and the number of the label; `second` is empty if the task has one text."""

    first: str
    second: str
    label: int


@dataclass(frozen=True)
class Examples:
    """A split of a task's data, in the order of the file, and the numbers of lines that were left out."""

    task: Task
    examples: tuple[Example, ...]
    unlabelled: int
    malformed: int

    def __len__(self) -> int:
        return len(self.examples)

    def describe(self) -> str:
        """One line for people."""
        counts = [sum(example.label == number for example in self.examples) for number in range(len(self.task.labels))]
        shares = ", ".join(f"{count:,} {name}" for name, count in zip(self.task.labels, counts, strict=True))
        left_out = f"left out: {self.unlabelled:,} without an agreed label, {self.malformed:,} broken lines"
        always = max(range(len(counts)), key=counts.__getitem__)
        share = f"always {self.task.labels[always]}: {100 * counts[always] / max(len(self), 1):.1f} %"
        return f"{self.task.name}: {len(self):,} examples ({shares}; {share}); {left_out}"


def task_named(name: str) -> Task:
    """The labelled task with this name. Raises: UserError for a name that is not in TASKS."""
    if name not in TASKS:
        raise UserError(f"data.labels is {name!r:.200}; known are {', '.join(TASKS)}")
    return TASKS[name]


def read_examples(task: Task, path: str | Path) -> Examples:
    """The examples of a file: tab-separated with its publisher's header, JSON lines, or tab-separated without a header.

    Without a header, the columns are `label a b` or `a b label`, whichever fits the first line; CoLA has its publisher's four columns.
    Quotation marks are part of the text. Blank lines are skipped.

    Raises: UserError, which names the line, for an unknown label, invalid JSON, a file without labels, and more than a few broken lines.
    """
    lines = read_lines(path)
    row, first = _layout(task, lines[0], str(path))
    found: list[Example] = []
    unlabelled, malformed = 0, []
    for number, line in enumerate(lines[first:], start=first + 1):
        if not line.strip():
            continue
        try:
            label, *texts = row(line)
        except IndexError:
            malformed.append(number)
            continue
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise UserError(
                f"{path}, line {number}: {error!r} in {line[:60]!r}; each line needs texts and a label"
            ) from None
        try:
            value = task.number(label)
        except ValueError:
            known = " ".join(task.labels)
            raise UserError(
                f"{path}, line {number}: the label {label!r} is unknown; {task.name} has {known}{_hint(task, label)}"
            ) from None
        if value is None:
            unlabelled += 1
        else:
            found.append(Example(texts[0], texts[1] if len(texts) > 1 else "", value))
    if malformed and (len(malformed) > _MALFORMED_SHARE * len(lines) or not found):
        raise UserError(
            f"{path}, line {malformed[0]}: {lines[malformed[0] - 1][:60]!r} has another number of columns than line 1, like "
            f"{len(malformed):,} of {len(lines):,} lines; is the file cut short, or of another task than {task.name}?"
        )
    return Examples(task, tuple(found), unlabelled, len(malformed))


def read_tfds_examples(task: Task, name: str, split: str, directory: str = "") -> Examples:
    """The examples of a split of a TFDS data set, for instance glue/qqp. Raises: UserError as TfdsRecords does."""
    records = TfdsRecords(name, directory)
    fields = [_present(names, records.fields, name) for names in task.columns]
    label = _present(_LABEL, records.fields, name)
    if not (names := records.labels(label)):
        raise UserError(
            f"the field {label!r} of {name} has no names of classes, so it is no label; give a data set that has one"
        )
    if set(names) != set(task.labels):
        raise UserError(f"{name} has the labels {' '.join(names)}, but {task.name} has {' '.join(task.labels)}")
    labels, *texts = records.read(split, (label, *fields))
    if len(texts) == 1:
        texts.append([""] * len(labels))
    found = [
        Example(first, second, task.labels.index(names[value]))
        for value, first, second in zip(labels, *texts, strict=True)
        if value >= 0
    ]
    return Examples(task, tuple(found), len(labels) - len(found), 0)


Row = Callable[
    [str], list[Any]
]  # turns a line into its label and texts; raises IndexError if it has another number of columns than line 1


def _layout(task: Task, line: str, name: str) -> tuple[Row, int]:
    """The reader for a file that begins with `line`, and the number of its header lines."""
    if line.startswith("{"):
        return _from_json(task, line, name), 0
    cells = line.split("\t")
    if any(set(names) & set(cells) for names in task.columns):
        places = [cells.index(_present(names, cells, name)) for names in (_LABEL, *task.columns)]
        return _columns(places, len(cells)), 1
    texts = len(task.columns)
    if task.bare and len(cells) > max(task.bare):
        return _columns(list(task.bare), len(cells)), 0
    # After `label a b`, another column is the pair's number. After a single text, another column would be a second text, of another
    # task. A label that is neither first nor last, as in CoLA, belongs to another layout.
    if (len(cells) > 2 if texts == 2 else len(cells) == 2) and _is_label(task, cells[0]):
        return _columns([0, *range(1, texts + 1)], len(cells)), 0
    if len(cells) == texts + 1 and _is_label(task, cells[texts]):
        return _columns([texts, *range(texts)], len(cells)), 0
    raise UserError(
        f"{name}, line 1: {line[:60]!r} is neither a header of {task.name} nor {texts + 1} columns with a label first or last"
    )


def _columns(places: list[int], width: int) -> Row:
    """Reads the columns at `places` of lines with `width` columns. In a line of another width, nobody knows which value is which."""

    def row(line: str) -> list[str]:
        cells = line.split("\t")
        if len(cells) != width:
            raise IndexError(len(cells))
        return [cells[place] for place in places]

    return row


def _from_json(task: Task, line: str, name: str) -> Row:
    try:
        known = list(json_row(line))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name}, line 1: {error}; each line needs a JSON object") from None
    keys = [_present(names, known, name) for names in (_LABEL, *task.columns)]

    def row(line: str) -> list[Any]:
        record = json_row(line)
        label, *texts = [record[key] for key in keys]
        for text in texts:
            if not isinstance(text, str) or any("\ud800" <= letter <= "\udfff" for letter in text):
                raise ValueError(f"{text!r:.60} is not a text")
        return [label, *texts]

    return row


def _present(names: tuple[str, ...], known: list[str], name: str) -> str:
    for each in names:
        if known.count(each) > 1:
            raise UserError(f"{name} has the column {each!r} {known.count(each)} times; give each its own name")
        if each in known:
            return each
    raise UserError(
        f"{name} has no {' or '.join(names)} among {', '.join(known)}; is the file of another task, or a test set?"
    )


def _is_label(task: Task, text: str) -> bool:
    """Whether this can be meant as a label. A bare number can, so that it is refused by a sentence about labels."""
    try:
        task.number(text)
    except ValueError:
        return text.isdecimal()
    return True


def _hint(task: Task, label: Any) -> str:
    if task.numbered or not str(label).isdecimal():
        return ""
    numbers = ",".join(f"{number}:{name}" for number, name in enumerate(task.labels))
    return (
        f". Its publisher's files have no numbers; say what they mean, for instance data.labels={numbers}, with data.columns, for instance "
        "sentence1,sentence2,label, or 2,3,1 without a header"
    )

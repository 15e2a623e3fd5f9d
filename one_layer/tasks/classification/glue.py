"""Labelled sentences and pairs of the GLUE tasks and SNLI, as publishers lay them out, as one type of record.

Wang et al. 2019 (arXiv 1804.07461), table 1: what each task asks, and by what it is scored.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from one_layer.data.sources.tfds_records import TfdsRecords
from one_layer.data.text.lines import read_lines
from one_layer.errors import UserError

_LABEL = ("gold_label", "label", "is_duplicate")
_MALFORMED_SHARE = 1e-3  # GLUE's own QQP has a handful of broken lines; a file with more is another file


@dataclass(frozen=True)
class Task:
    """What is asked of a sentence or a pair.

    labels: names in the order of their numbers, which files give as well. scores: names in
    `one_layer.tasks.classification.measures`, the first decides. columns: what headers, JSON and TFDS call the one or two
    texts. bare: places of label and texts in a file that has no header, by its publisher's habit.
    """

    name: str
    labels: tuple[str, ...]
    scores: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    bare: tuple[int, ...] = ()

    def number(self, label: Any) -> int | None:
        """The label's number; None for `-` and -1, which say that annotators did not agree. Raises: ValueError for others."""
        text = str(label)
        if text in ("-", "-1"):
            return None
        if text.isascii() and text.isdigit() and int(text) < len(self.labels):
            return int(text)
        return self.labels.index(text)


_PREMISE, _HYPOTHESIS = ("sentence1", "premise"), ("sentence2", "hypothesis")
_INFERENCE = ("entailment", "neutral", "contradiction")
TASKS = {
    task.name: task
    for task in (
        Task("qqp", ("not_duplicate", "duplicate"), ("accuracy", "f1"), (("question1",), ("question2",))),
        Task("mnli", _INFERENCE, ("accuracy",), (_PREMISE, _HYPOTHESIS)),
        Task("snli", _INFERENCE, ("accuracy",), (_PREMISE, _HYPOTHESIS)),
        Task("rte", ("entailment", "not_entailment"), ("accuracy",), (_PREMISE, _HYPOTHESIS)),
        Task("sst2", ("negative", "positive"), ("accuracy",), (("sentence",),)),
        Task("cola", ("unacceptable", "acceptable"), ("matthews",), (("sentence",),), bare=(1, 3)),
    )
}


@dataclass(frozen=True)
class Example:
    """One text, or two, and the number of its label; `second` is empty where the task has one text."""

    first: str
    second: str
    label: int


@dataclass(frozen=True)
class Examples:
    """A part of a task's data, in the order of the file, and what was left out of it."""

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
        return f"{self.task.name}: {len(self):,} examples ({shares}); {left_out}"


def task_named(name: str) -> Task:
    """Raises: UserError for a name that is not in TASKS."""
    if name not in TASKS:
        raise UserError(f"the task {name!r} is unknown; known are {', '.join(TASKS)}")
    return TASKS[name]


def read_examples(task: Task, path: str | Path) -> Examples:
    """The examples of a file: tab-separated with its publisher's header, JSON lines, or bare columns.

    Bare columns are `label a b` or `a b label` as the first line shows, CoLA's are its publisher's four. Quotation marks are text.

    Raises: UserError that names the line of a label that the task has not, of JSON that is none, of a file without labels, and of a
    broken line where these are more than a few.
    """
    lines = read_lines(path)
    row, first = _layout(task, lines[0], str(path))
    found: list[Example] = []
    unlabelled, malformed = 0, []
    for number, line in enumerate(lines[first:], start=first + 1):
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
            raise UserError(f"{path}, line {number}: the label {label!r} is unknown; {task.name} has {known}") from None
        if value is None:
            unlabelled += 1
        else:
            found.append(Example(texts[0], texts[1] if len(texts) > 1 else "", value))
    if malformed and (len(malformed) > _MALFORMED_SHARE * len(lines) or not found):
        raise UserError(
            f"{path}, line {malformed[0]}: {lines[malformed[0] - 1][:60]!r} has too few columns, like {len(malformed):,} of "
            f"{len(lines):,} lines; is it cut short, or of another task than {task.name}?"
        )
    return Examples(task, tuple(found), unlabelled, len(malformed))


def read_tfds_examples(task: Task, name: str, split: str, directory: str = "") -> Examples:
    """The examples of a split of a data set of TFDS, for instance glue/qqp. Raises: UserError as TfdsRecords does."""
    records = TfdsRecords(name, directory)
    fields = [_present(names, records.fields, name) for names in task.columns]
    label = _present(_LABEL, records.fields, name)
    names = records.labels(label)
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


Row = Callable[[str], list[Any]]  # a line to its label and texts; IndexError where it has too few columns


def _layout(task: Task, line: str, name: str) -> tuple[Row, int]:
    """How to read a file that begins with `line`, and how many lines its header has."""
    if line.startswith("{"):
        return _from_json(task, line, name), 0
    cells = line.split("\t")
    if any(set(names) & set(cells) for names in task.columns):
        places = [cells.index(_present(names, cells, name)) for names in (_LABEL, *task.columns)]
        return _columns(places), 1
    texts = len(task.columns)
    if task.bare and len(cells) > max(task.bare):
        return _columns(list(task.bare)), 0
    # What stands behind `label a b` is the pair's number; what stands behind one text makes it a pair, of another task. A label that is
    # neither first nor last, CoLA's say, is of another layout.
    if (len(cells) > 2 if texts == 2 else len(cells) == 2) and _is_label(task, cells[0]):
        return _columns([0, *range(1, texts + 1)]), 0
    if len(cells) == texts + 1 and _is_label(task, cells[texts]):
        return _columns([texts, *range(texts)]), 0
    raise UserError(
        f"{name}, line 1: {line[:60]!r} is neither a header of {task.name} nor {texts + 1} columns with a label first or last"
    )


def _columns(places: list[int]) -> Row:
    def row(line: str) -> list[str]:
        cells = line.split("\t")
        return [cells[place] for place in places]

    return row


def _from_json(task: Task, line: str, name: str) -> Row:
    try:
        known = list(json.loads(line))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name}, line 1: {error}; each line needs a JSON object") from None
    keys = [_present(names, known, name) for names in (_LABEL, *task.columns)]

    def row(line: str) -> list[Any]:
        record = json.loads(line)
        label, *texts = [record[key] for key in keys]
        for text in texts:
            if not isinstance(text, str) or any("\ud800" <= letter <= "\udfff" for letter in text):
                raise ValueError(f"{text!r:.60} is no text")
        return [label, *texts]

    return row


def _present(names: tuple[str, ...], known: list[str], name: str) -> str:
    for each in names:
        if each in known:
            return each
    raise UserError(
        f"{name} has no {' or '.join(names)} among {', '.join(known)}: is it of another task, or a test set?"
    )


def _is_label(task: Task, text: str) -> bool:
    try:
        task.number(text)
    except ValueError:
        return False
    return True

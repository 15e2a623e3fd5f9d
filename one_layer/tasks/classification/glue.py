"""The tasks of GLUE, and SNLI: their labels, their scores, and where the texts and the label are in the files of their publishers.

Wang et al. 2019 (arXiv 1804.07461), table 1, describes the tasks and their scores.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from one_layer.data.sources.table import Row, Table, table_kind
from one_layer.data.sources.tfds_records import TfdsRecords
from one_layer.system.errors import UserError

log = logging.getLogger(__name__)

UNDECIDED = ("-", "-1")  # in the place of a label, where annotators did not agree

_LABEL = ("gold_label", "label", "is_duplicate")
_MALFORMED_SHARE = 1e-3  # GLUE's own QQP has a few broken lines; a file with a larger share has another format


@dataclass(frozen=True)
class Task:
    """A labelled task on sentences or pairs of sentences.

    `labels`: names in the order of their numbers; files may have names or numbers. `scores`: names in
    `one_layer.tasks.classification.scoring`; the first is the main score. `columns`: the names of the one or two texts in headers,
    JSON and TFDS. `bare`: the columns of the texts and the label, from 1, in a publisher's file without a header. `numbered`: the
    publisher's files have the numbers of the labels; only then do bare numbers stand for labels.
    """

    labels: tuple[str, ...]
    scores: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    bare: tuple[int, ...] = ()
    numbered: bool = False

    @property
    def written(self) -> dict[str, str]:
        """The name of each label by what files have in its place."""
        numbers = {str(number): name for number, name in enumerate(self.labels)} if self.numbered else {}
        return {name: name for name in self.labels} | numbers

    def may_mean(self, text: str) -> bool:
        """Whether this can be meant as a label. Any bare number can, so that it is refused by a sentence about labels."""
        return text in self.written or text in UNDECIDED or text.isdecimal()


_PREMISE, _HYPOTHESIS = ("sentence1", "premise"), ("sentence2", "hypothesis")
_INFERENCE = Task(("entailment", "neutral", "contradiction"), ("accuracy",), (_PREMISE, _HYPOTHESIS))
TASKS = {
    "qqp": Task(("not_duplicate", "duplicate"), ("accuracy", "f1"), (("question1",), ("question2",)), numbered=True),
    "mnli": _INFERENCE,
    "snli": _INFERENCE,
    "rte": Task(("entailment", "not_entailment"), ("accuracy",), (_PREMISE, _HYPOTHESIS)),
    "sst2": Task(("negative", "positive"), ("accuracy",), (("sentence",),), numbered=True),
    "cola": Task(("unacceptable", "acceptable"), ("matthews",), (("sentence",),), bare=(4, 2), numbered=True),
}


def columns_of(name: str, path: Path) -> tuple[str, ...]:
    """The columns of the texts and of the label in a file of the task `name`: the publisher's names, or numbers if there is no header.

    Without a header, the columns are `label a b` or `a b label`, whichever fits the first line; CoLA has its publisher's four columns.
    Raises: UserError for a file of another layout.
    """
    task, cells = TASKS[name], Table(path, ()).first()
    if table_kind(path) == "json" or any(set(names) & set(cells) for names in task.columns):
        return tuple(_present(names, cells, str(path)) for names in (*task.columns, _LABEL))
    texts, width = len(task.columns), len(cells)
    # After `label a b`, another column is the pair's number. After a single text, another column would be a second text, of another
    # task. A label that is neither first nor last, as in CoLA, belongs to another layout.
    if task.bare and width >= max(task.bare):
        places: tuple[int, ...] = task.bare
    elif (width > 2 if texts == 2 else width == 2) and task.may_mean(cells[0]):
        places = (*range(2, texts + 2), 1)
    elif width == texts + 1 and task.may_mean(cells[texts]):
        places = tuple(range(1, texts + 2))
    else:
        raise UserError(
            f"{path}, line 1: {'|'.join(cells)[:60]!r} is neither a header of {name} nor {texts + 1} columns with a label first or last"
        )
    return tuple(map(str, places))


def rows_of_file(name: str, path: Path) -> Iterator[Row]:
    """The texts and the label of each line of a file, after the line's number. Blank lines, and a few broken ones, are left out.

    Raises: UserError, which names the line, for what no table has, and for more than a few broken lines.
    """
    number, broken = 0, list[int]()
    for number, row in Table(path, columns_of(name, path), broken=broken):
        if any(map(str.strip, row)):
            yield number, row
    if len(broken) > _MALFORMED_SHARE * max([number, *broken]):
        raise UserError(
            f"{path}, line {broken[0]}: it has another number of columns than line 1, like {len(broken):,} of all lines; is the file cut "
            f"short, or of another task than {name}?"
        )
    if broken:
        log.warning("%s: %d lines with another number of columns than line 1 are left out", path, len(broken))


def rows_of_tfds(name: str, data_set: str, split: str, directory: str) -> Iterator[Row]:
    """The same of a split of a TFDS data set, for instance glue/qqp. Raises: UserError as TfdsRecords does, and for other labels."""
    task, records = TASKS[name], TfdsRecords(data_set, directory)
    *texts, label = (_present(names, records.fields, data_set) for names in (*task.columns, _LABEL))
    if set(names := records.labels(label)) != set(task.labels):
        raise UserError(
            f"{data_set} has the labels {' '.join(names) or '(none)'}, but {name} has {' '.join(task.labels)}"
        )
    for number, (*row, value) in enumerate(records.stream(split, (*texts, label)), start=1):
        yield number, [*row, names[value] if value >= 0 else UNDECIDED[0]]


def _present(names: tuple[str, ...], known: list[str], where: str) -> str:
    for each in names:
        if each in known:
            return each
    raise UserError(
        f"{where} has no {' or '.join(names)} among {', '.join(known)}; is the file of another task, or a test set?"
    )

"""What `data.labels` says: the labels of a published task, labels that the user lists, or those of the training text."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from one_layer.data.columns import column_names
from one_layer.data.config import DataConfig
from one_layer.data.text.vocabulary import SPECIALS
from one_layer.system.errors import UserError, counted
from one_layer.tasks.classification.glue import TASKS

FROM_TRAIN = "from_train"
_MOST = 1000  # labels that are read from a training text


@dataclass(frozen=True)
class LabelSet:
    """The labels of a classifier.

    - `labels`: their names in the order of their ids; empty if the training text decides them.
    - `written`: the name of each label by what the files have in its place.
    - `scores`: names in `one_layer.tasks.classification.scoring`; the first is the main score.
    - `texts`: the number of texts that one label belongs to, 1 or 2.
    """

    labels: tuple[str, ...]
    scores: tuple[str, ...]
    texts: int
    written: dict[str, str] = field(default_factory=dict)

    def name(self, text: str) -> str:
        """The name of a label as a file has it. Raises: UserError for a label that is not known."""
        label = spelled(text)
        if not label:
            raise UserError("the label is empty")
        if label in SPECIALS:
            raise UserError(
                f"the label {label!r} is the name of a special token of all vocabularies; give it another name"
            )
        if not self.labels:
            return label
        if label not in self.written:
            raise UserError(
                f"the label {text!r:.60} is unknown; data.labels has {', '.join(self.written)}{self._hint(label)}"
            )
        return self.written[label]

    def _hint(self, label: str) -> str:
        if not _is_number(label):
            return ""
        if any(map(_is_number, self.written)):
            return f"; add {label}:NAME"
        meant = ",".join(f"{number}:{name}" for number, name in enumerate(self.labels))
        return f"; say what the numbers mean, for instance data.labels={meant}"


def spelled(text: str) -> str:
    """A label without spaces around it, and with `_` for each space in it: vocabularies hold no spaces."""
    return "_".join(text.split())


def check_spelling(label: str, known: dict[str, str]) -> None:
    """Adds a label to the `known` ones. Raises: UserError if it would have the name of another one."""
    words = " ".join(label.split())
    if (other := known.setdefault(spelled(label), words)) != words:
        raise UserError(
            f"the labels {other!r:.60} and {words!r:.60} would have one name, {spelled(label)!r:.60}; rename one of them"
        )


def _is_number(label: str) -> bool:
    """Whether a label is a number, as programs write one: 1, -1 and 1.0 are."""
    try:
        float(label)
    except ValueError:
        return False
    return True


def label_set(config: DataConfig) -> LabelSet:
    """What `config.labels` and `config.columns` say.

    Raises: UserError for a value that is neither a task nor a list of labels, and for columns that do not fit.
    """
    columns = column_names(config.columns)
    if config.labels in TASKS:
        task = TASKS[config.labels]
        found = LabelSet(task.labels, task.scores, len(columns) - 1 if columns else len(task.columns), task.written)
    else:
        found = _own(config.labels, len(columns) - 1)
        if config.source != "labelled" or not columns:
            raise UserError(
                f"data.labels={config.labels!r:.200} are labels of your own, which need data.source=labelled and data.columns; there are "
                f"data.source={config.source!r:.200} and data.columns={config.columns!r:.200}. Give the columns "
                "of the texts and then of the label, for instance text,label, or 2,1 for a file without a header"
            )
    if columns and found.texts not in (1, 2):
        raise UserError(
            f"data.columns={config.columns!r:.200} has {counted(len(columns), 'column')}; classification needs one text or two, and then "
            "the label"
        )
    return found


def _own(given: str, texts: int) -> LabelSet:
    if given == FROM_TRAIN:
        return LabelSet((), ("accuracy",), texts)
    pairs = [each.partition(":") for each in given.split(",")]
    written = {spelled(first): spelled(name or first) for first, _, name in pairs}
    labels = tuple(written.values())
    if len(labels) < max(2, len(pairs)) or len(set(labels)) < len(labels) or not all((*written, *labels)):
        raise UserError(
            f"data.labels={given!r:.200} is neither one of the tasks {', '.join(TASKS)} nor a list of at least two different labels; give "
            f"for instance entails,neutral, or 0:neutral,1:entails if the files have numbers, or {FROM_TRAIN} for those of the "
            "training text"
        )
    return LabelSet(labels, ("accuracy",), texts, written)


def labels_of(train: Iterable[str], numbered: bool) -> tuple[str, ...]:
    """The labels of a training text, sorted. `numbered`: its columns are numbers, so that it should have no header.

    Raises: UserError for a text whose labels cannot be meant (only one, too many, or a header), and for bare numbers, which the user has
    to explain: files of two publishers may count their labels in other orders.
    """
    counts = Counter(train)
    first = next(iter(counts))
    if numbered and counts[first] == 1:
        raise UserError(
            f"the first label of the training text, {first!r:.60}, occurs only once; if the first line is a header, give its names as "
            "data.columns, and not numbers"
        )
    if not 2 <= len(counts) <= min(_MOST, max(2, counts.total() // 2)):
        raise UserError(
            f"the training text has {counted(len(counts), 'different label')} in {counted(counts.total(), 'line')}; data.columns must end "
            f"with the column of the labels, and data.labels={FROM_TRAIN} takes 2 to {_MOST:,} labels"
        )
    labels = sorted(counts)
    if all(map(_is_number, labels)):
        raise UserError(
            f"the labels of the training text are bare numbers, {', '.join(labels)[:200]}; say what they mean, "
            f"--config.data.labels={','.join(f'{label}:NAME' for label in labels)[:200]}, or keep the numbers, "
            f"--config.data.labels={','.join(labels)[:200]}"
        )
    return tuple(labels)


def majority(labels: Iterable[str]) -> tuple[str, float, dict[str, int]]:
    """The most frequent label, the accuracy of a classifier that always gives it, and the count of every label."""
    counts = Counter(labels)
    ((name, most),) = counts.most_common(1)
    return name, most / counts.total(), dict(sorted(counts.items()))


def describe_counts(labels: Iterable[str]) -> str:
    """A phrase for people, such as `20 bad, 80 good; always good: 80.0 %`."""
    name, share, counts = majority(labels)
    listed = ", ".join(f"{count:,} {label}" for label, count in counts.items())
    return f"{listed}; always {name}: {100 * share:.1f} %"

"""A classifier's log-probabilities of labels, and its scores as GLUE reports them, also beside those of another classifier."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Int, Integer
from tqdm import tqdm

from one_layer.data.batches import evaluation_batches
from one_layer.data.corpus import Split
from one_layer.data.special_tokens import UNK
from one_layer.layers.trees import Variables
from one_layer.models import ModelConfig
from one_layer.models.sharding import Devices, fetch
from one_layer.system.errors import check_least
from one_layer.tasks.losses import log_p_program
from one_layer.tasks.protocol import FEWEST, Paired

Labels = Integer[np.ndarray, " examples"]
LogP = Float32[np.ndarray, "texts labels"]


@dataclass(frozen=True)
class LabellingSettings:
    """configs/common.py comments on every key. Raises: UserError for values below 1."""

    max_tokens: int = 4096
    buckets: int = 4

    def __post_init__(self) -> None:
        check_least("evaluation", self, max_tokens=1, buckets=1)


def label_probabilities(
    model: ModelConfig,
    settings: LabellingSettings,
    variables: Variables,
    texts: Sequence[Int[np.ndarray, "_"]],
    title: str,
    between: Callable[[], None] = lambda: None,
) -> LogP:
    """The log-probabilities of the labels for every text, in order. `between` is called before every batch.

    It is fastest if `variables` have their masks applied already (`prepared`).
    """
    found: dict[int, np.ndarray] = {}
    devices, program = Devices.holding(variables), log_p_program(model)
    buckets = min(settings.buckets, 1 + len(texts) // 100)
    with tqdm(total=len(texts), desc=title, unit="text", disable=None, leave=False) as bar:
        for batch in evaluation_batches(texts, None, settings.max_tokens, buckets):
            between()
            rows = batch["index"] >= 0
            log_p = fetch(program(variables, devices.rows(batch["source"])))[: len(rows)][rows]
            found.update(zip(batch["index"][rows].tolist(), log_p, strict=True))
            bar.update(len(log_p))
    return np.stack([found[place] for place in range(len(texts))])


def accuracy(predicted: Labels, labels: Labels) -> float:
    """The share of examples whose predicted label is right."""
    return float(np.mean(predicted == labels))


def f1(predicted: Labels, labels: Labels) -> float:
    """The harmonic mean of precision and recall of label 1; 0 if no prediction of label 1 is right."""
    right = int(np.sum((predicted == 1) & (labels == 1)))
    return 2 * right / max(int(np.sum(predicted == 1)) + int(np.sum(labels == 1)), 1)


def matthews(predicted: Labels, labels: Labels) -> float:
    """Matthews' correlation for two labels, in [-1, 1]; 0 if either side has only one label."""
    count = len(labels)
    given, true, both = (int(np.sum(side == 1)) for side in (predicted, labels, predicted * labels))
    product = given * (count - given) * true * (count - true)  # Python integers, which do not overflow
    return (both * count - given * true) / math.sqrt(product) if product else 0.0


SCORES = {"accuracy": accuracy, "f1": f1, "matthews": matthews}


def label_scores(log_p: LogP, split: Split, scores: Sequence[str]) -> dict[str, float]:
    """`nll` in nats per text, and the named `scores`, but for those that cannot measure this text.

    Such a score is not 1 even if all labels are right: F1 where no text has the label 1, Matthews' correlation where all have one label.
    """
    right = np.array([ids[0] for ids in split.target]) - (UNK + 1)
    nll = -float(log_p[np.arange(len(right)), right].astype(np.float64).mean())
    given = log_p.argmax(axis=1)
    return {
        "nll": nll,
        **{name: SCORES[name](given, right) for name in scores if math.isclose(SCORES[name](right, right), 1)},
    }


def paired_labels(references: Sequence[str], systems: tuple[Sequence[str], Sequence[str]]) -> Paired:
    """The accuracy of two lists of labels; a line has 1 where its label is right, else 0. The test is McNemar's, which is exact."""
    one, other = ([float(a == b) for a, b in zip(lines, references, strict=True)] for lines in systems)
    totals = sum(one) / len(references), sum(other) / len(references)
    paired = Paired("accuracy", totals, list(zip(one, other, strict=True)))
    first, second, _ = paired.counts
    if first + second < FEWEST:
        return paired
    return paired._replace(p=sign_test(first, second), test="McNemar's test, exact")


def sign_test(first: int, second: int) -> float:
    """The probability, for a fair coin, of counts at least as unequal as these two (McNemar 1947, in its exact form)."""
    tosses = first + second
    tail = sum(math.comb(tosses, each) for each in range(min(first, second) + 1))
    return min(1.0, 2 * tail / 2**tosses)

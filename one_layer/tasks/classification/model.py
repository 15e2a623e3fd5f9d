"""A trained classifier: it labels raw texts and scores splits."""

import logging
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int32

from one_layer.data.corpus import Split
from one_layer.data.special_tokens import UNK
from one_layer.data.text.marks import composed
from one_layer.data.tokens import cut_texts
from one_layer.system.errors import UserError, counted
from one_layer.tasks.classification.labels import describe_counts, label_set, majority
from one_layer.tasks.classification.scoring import LogP, label_probabilities, label_scores
from one_layer.tasks.model import TrainedModel, not_finite

log = logging.getLogger(__name__)
Ids = Int32[np.ndarray, "_"]


class Label(NamedTuple):
    """The most probable label of a text, and its probability."""

    name: str
    probability: float


class ClassificationModel(TrainedModel):
    """Labels texts, or pairs of texts separated by a tab."""

    task = "classification"
    verb = "classify"

    def classify(self, texts: Iterable[str | tuple[str, str]]) -> list[Label | None]:
        """The label of every text, in order; None for an empty line.

        A pair of texts is a tuple, or a line with a tab between them. The preprocessing of the training text is applied to them, and
        letters with marks may be one character or several (`one_layer.data.text.marks`).
        A line of more than `data.max_length` tokens is cut, of two texts the longer one first, and the number of such lines is logged.

        Raises: UserError, with the line's number, for a line with too few or too many texts, and for anything but a list of texts.
        """
        texts, assets = self.given(texts), self.assets
        wanted = label_set(self.data).texts
        full = [place for place, line in enumerate(texts) if line.strip()]
        for place in full:
            if (found := texts[place].count("\t") + 1) != wanted:
                what = "one text" if wanted == 1 else "two texts, as a tuple or with a tab between them"
                raise UserError(
                    f"line {place + 1}, {texts[place][:60]!r}, has {counted(found - 1, 'tab')}, but this model labels {what}"
                )
        steps, encode = assets.source_preprocessing, assets.source_vocabulary.encode_texts
        typed = (composed(texts[place], lambda text: encode(*steps.apply([text]))) for place in full)
        ids = self._cut(list(map(encode, steps.apply(typed))))
        given: list[Label | None] = [None] * len(texts)
        if ids:
            log_p = self._log_p(ids, "classifying")
            for place, name, each in zip(full, self._names(log_p), log_p, strict=True):
                given[place] = Label(name, math.exp(each.max()))
        return given

    def given(self, lines: Iterable[Any]) -> list[str]:
        """The same, where a pair of texts may also be a tuple."""
        several = isinstance(lines, Iterable) and not isinstance(lines, (str, bytes))
        return super().given(map(_line, lines) if several else lines)

    def lines(self, lines: Iterable[str]) -> list[str]:
        """`label<TAB>probability` for every line."""
        return [f"{label.name}\t{label.probability:.4f}" if label else "" for label in self.classify(lines)]

    def score(self, split: Split, title: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """The labelled task's scores in [0, 1] (Matthews' correlation in [-1, 1]), and the predicted label of every text.

        Beside them: `texts/LABEL`, the number of texts with each label, and `majority_accuracy`, which one label for all would have.
        """
        log_p = self._log_p(split.source, title)
        given = self._names(log_p)
        values = label_scores(log_p, split, label_set(self.data).scores)
        shown = ", ".join(f"{name} {value:.4f}" for name, value in values.items())
        log.info("%s: %s (%s)", title, shown, describe_counts(split.reference))
        _, share, counts = majority(split.reference)
        for place in range(0, len(given), -(-len(given) // 3)):
            log.info("  text  %.500s", split.source_text[place].replace("\t", " | "))
            log.info("  label %s, given %s (p %.2f)", split.reference[place], given[place], np.exp(log_p[place].max()))
        texts = {"texts": len(given), **{f"texts/{label}": count for label, count in counts.items()}}
        return {**values, "majority_accuracy": share, **texts}, {"plain": given}

    def _log_p(self, texts: Sequence[Ids], title: str) -> LogP:
        return label_probabilities(self.config, self.settings, self.prepared, texts, title)

    def _cut(self, whole: list[Ids]) -> list[Ids]:
        """The ids of texts, or of pairs of texts, as the training text was cut. Logs how many are cut."""
        longest = self.data.max_length
        if too_long := sum(len(ids) > longest for ids in whole):
            log.warning(
                "%d of %d lines have more than %d tokens (data.max_length); only these are read",
                *(too_long, len(whole), longest),
            )
        return [cut_texts(ids, longest) for ids in whole]

    def _names(self, log_p: LogP) -> list[str]:
        """The most probable label of every text. Raises: UserError if the model's outputs are not finite."""
        if not np.isfinite(log_p).all():
            raise not_finite("classify")
        return [self.assets.target_vocabulary.tokens[UNK + 1 + label] for label in log_p.argmax(axis=1)]


def _line(text: Any) -> Any:
    """A pair of texts as one line with a tab between them; anything else as it is."""
    pair = isinstance(text, tuple) and all(isinstance(each, str) for each in text)
    return "\t".join(each.replace("\t", " ") for each in text) if pair else text

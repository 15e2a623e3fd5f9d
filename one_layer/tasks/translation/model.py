"""A trained translation model: it translates raw lines and scores splits."""

import dataclasses
import logging
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from one_layer.data.corpus import Split
from one_layer.data.text.marks import composed
from one_layer.data.tokens import LONGEST, cut
from one_layer.system.errors import UserError
from one_layer.tasks.model import TrainedModel, Writer
from one_layer.tasks.translation.engine import Search, opened
from one_layer.tasks.translation.generate import Found, Ids, best_translations

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False, repr=False)
class TranslationModel(TrainedModel):
    """Translates by beam search with its settings. A program is compiled once for each padded shape, and kept.

    With an `engine`, CTranslate2 searches instead, in a folder that `writer` writes.
    """

    writer: Writer | None = None

    task = "translation"
    verb = "translate"

    def translate(self, lines: Iterable[str]) -> list[str]:
        """The translations of raw lines, in order, as plain text: the best of `n_best`."""
        return [best[0][0] for best in self.n_best(lines)]

    def n_best(self, lines: Iterable[str], n: int = 1) -> list[list[tuple[str, float]]]:
        """The `n` best translations of each raw line, with their Σ log p / length^penalty in nats, best first; an empty line stays empty.

        The preprocessing of the training text (Moses, lower-casing, BPE) is applied to the lines and undone on the translations. Letters
        with marks may be one character or several (`one_layer.data.text.marks`). A line of more than 1024 tokens is cut, and the
        number of such lines is logged.

        Raises: UserError for anything but a list of texts, and for more translations than the beam has.
        """
        lines = self.given(lines)
        if not 1 <= n <= self.settings.beam:
            raise UserError(
                f"{n} translations of a line are asked for, and evaluation.beam={self.settings.beam} finds 1 to {self.settings.beam}; "
                "give such a number to --n_best, or a wider beam"
            )
        steps, vocabulary = self.assets.source_preprocessing, self.assets.source_vocabulary
        lines = [composed(line, lambda text: vocabulary.encode(*steps.apply([text]))) for line in lines]
        prepared = steps.apply(lines)
        blank_stays = [text if line.strip() else "" for line, text in zip(lines, prepared, strict=True)]
        found = self._of_tokens(blank_stays, n)
        subwords = self._subwords([each.tokens for best in found for each in best])
        plain = map(_one_line, self.assets.target_preprocessing.undo(subwords))
        return [[(next(plain), each.score) for each in best] for best in found]

    def lines_of_tokens(self, lines: list[str]) -> list[str]:
        """The same from tokens to tokens: the lines are prepared as the model's training text was, and so are their translations.

        A line without tokens stays empty.
        """
        return self._subwords([best.tokens for best, *_ in self._of_tokens(lines)])

    def _of_tokens(self, lines: list[str], n: int = 1) -> list[list[Found]]:
        whole = list(map(self.assets.source_vocabulary.encode, lines))
        if long := sum(len(ids) > LONGEST for ids in whole):
            log.warning("%d of %d lines have more than %d tokens; only these are translated", long, len(lines), LONGEST)
        return self._search(list(map(cut, whole)), "translating", n)

    lines = translate

    def score(self, split: Split, title: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """The BLEU scores, whose names say which form they are, and the hypotheses: `plain` (detokenised) and `tokenized` (BPE joined)."""
        from one_layer.tasks.translation import bleu

        if self.file_bytes is not None:
            bleu.refuse_download(self.settings.tokenize)  # before anything is computed
        source, target = self.assets.source_preprocessing, self.assets.target_preprocessing
        hypotheses = [best.tokens for best, *_ in self._search(split.sentences, title)]
        subwords = self._subwords(hypotheses)
        plain = list(map(_one_line, target.undo(subwords)))
        scores = bleu.all_scores(target, subwords, split, self.settings.tokenize)
        scores["tokens"] = sum(map(len, hypotheses))
        tokenized, sacre = (scores.get(name, math.nan) for name in ("bleu_tokenized", "bleu_sacre"))
        same = f"{sacre:.2f}" == f"{tokenized:.2f}"
        other = f"sacreBLEU {'the same' if same else f'{sacre:.2f}'}, {scores['signature']}"
        log.info(
            "%s: %s; %s", title, scores["details_tokenized"], "no sacreBLEU either" if math.isnan(sacre) else other
        )
        # Lines that were prepared before they were read have BPE's marks; in others, a mark is text.
        shown = source.join(split.source_text) if self.data.is_prepared else split.source_text
        for place in range(0, len(plain), -(-len(plain) // 3)):
            log.info("  source      %.500s", shown[place])
            log.info("  reference   %.500s", split.reference_detokenized[place])
            log.info("  translation %.500s", plain[place])
        return scores, {"plain": plain, "tokenized": list(map(_one_line, target.join(subwords)))}

    def with_engine(self, name: str, write: Writer) -> TrainedModel:
        return dataclasses.replace(self, engine=name, writer=write)

    @cached_property
    def opened(self) -> Search:
        """The search of the engine with this model."""
        assert self.writer
        return opened(self, self.engine, self.writer)

    def _search(self, sentences: Sequence[Ids], title: str, n: int = 1) -> list[list[Found]]:
        if self.engine:
            return self.opened(sentences, title, n)
        return best_translations(self.config, self.settings, self.prepared, sentences, title, n=n)

    def _subwords(self, hypotheses: list[Ids]) -> list[str]:
        return list(map(self.assets.target_vocabulary.decode, hypotheses))


def _one_line(text: str) -> str:
    """A text without line ends, which pieces of bytes may spell: each source line has one line of translation."""
    return re.sub(r"\r\n|[\r\n]", " ", text)

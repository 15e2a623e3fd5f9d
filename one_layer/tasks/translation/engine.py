"""Beam search in CTranslate2 in the place of this program's: `--engine=ctranslate2` or `ctranslate2-int8` (docs/engines.md)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from one_layer.data.preparation.parallel import cores
from one_layer.data.special_tokens import EOS, PAD
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.vocabulary import SPECIALS
from one_layer.tasks.model import TrainedModel, Writer, not_finite
from one_layer.tasks.translation.generate import EMPTY, Found, Ids
from one_layer.tasks.translation.settings import SearchSettings

_ROWS = 32  # sentences of a batch, at most
PRECISIONS = {"ctranslate2": "float32", "ctranslate2-int8": "int8"}  # of matrices, by the names of engines


def opened(model: TrainedModel, engine: str, write: Writer) -> Search:
    """The search of an engine with a model, which `write` writes into a folder that is deleted as soon as it is read."""
    from ctranslate2 import Translator

    precision = PRECISIONS[engine]
    with tempfile.TemporaryDirectory() as folder:
        write(model, Path(folder), precision)
        threads = {"inter_threads": cores(), "intra_threads": 1, "max_queued_batches": -1}
        return Search(model.assets, model.settings, Translator(folder, compute_type=precision, **threads))


class Search:
    """Translates ids to ids. Each core has batches of its own: products of this size are too small for several cores."""

    def __init__(self, assets: TextAssets, settings: SearchSettings, translator: Any) -> None:
        self._source, self._target = assets.vocabularies
        self._settings, self._translator = settings, translator

    def __call__(self, sentences: Sequence[Ids], title: str, n: int = 1) -> list[list[Found]]:
        """The `n` best translations of every sentence, best first; of one without tokens, the empty one.

        A translation has at most as many tokens as the longest source of its batch allows (`evaluation.max_length_a`).
        Raises: UserError if the model's outputs are not finite.
        """
        found = [[EMPTY]] * len(sentences)
        longest_first = sorted(range(len(sentences)), key=lambda place: -len(sentences[place]))
        places = [place for place in longest_first if len(sentences[place]) > 1]
        with tqdm(total=len(places), desc=title, unit="sentence", disable=None, leave=False) as bar:
            # All batches wait in the engine's queue, and a thread that is ready takes the next one.
            batches = list(self._batches(places, sentences))
            waiting = [self._begun([sentences[place] for place in batch], n) for batch in batches]
            for batch, results in zip(batches, waiting, strict=True):
                for place, result in zip(batch, results, strict=True):
                    found[place] = self._found(result.result())
                    bar.update()
        return found

    def _batches(self, places: list[int], sentences: Sequence[Ids]) -> Iterator[list[int]]:
        """The `places` in batches that have at most `evaluation.max_tokens` padded tokens, or one sentence. The longest come first.

        Few sentences are shared out among the cores, so that none of them waits for the only batch.
        """
        most = min(_ROWS, -(-len(places) // cores()))
        while places:
            rows = max(1, min(most, self._settings.max_tokens // len(sentences[places[0]])))
            yield places[:rows]
            places = places[rows:]

    def _begun(self, sentences: Sequence[Ids], n: int) -> list[Any]:
        return self._translator.translate_batch(
            [[self._source.tokens[number] for number in ids[:-1]] for ids in sentences],
            asynchronous=True,
            beam_size=self._settings.beam,
            num_hypotheses=n,
            length_penalty=self._settings.length_penalty,
            max_decoding_length=self._settings.longest(max(map(len, sentences))),
            max_input_length=0,
            suppress_sequences=[[SPECIALS[PAD]]],  # as fairseq: a pad is never chosen
            return_scores=True,
        )

    def _found(self, result: Any) -> list[Found]:
        if not np.isfinite(result.scores).all():
            raise not_finite("translate")
        ids = ([*(self._target.ids[token] for token in tokens), EOS] for tokens in result.hypotheses)
        return [Found(np.array(each, np.int32), score) for each, score in zip(ids, result.scores, strict=True)]

"""What training reads, for people: the first pair as the model sees it, and a warning where the sides seem to be swapped."""

import logging
from itertools import islice

from one_layer.data.corpus import Corpus
from one_layer.data.text.preprocess import Preprocessing
from one_layer.data.text.telling import swapped
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.data.tokens import TokenStore

log = logging.getLogger(__name__)

_LINES = 300  # of the training text, from which the languages are told
_LONGEST = 300  # characters of a line that are shown


def first_look(corpus: Corpus) -> None:
    """Logs the first training pair: of each side the text, its pieces and their ids. Warns of swapped languages. `corpus` has pairs."""
    train = corpus.train
    sides = list(zip((train.source, train.target), corpus.vocabularies, corpus.steps, corpus.languages, strict=True))
    log.info("the first training pair, as the model reads it:")
    for store, vocabulary, steps, language in sides:
        ids = store[0]
        log.info("  %-8s %s", language, _text(store, vocabulary, steps, 1)[0][:_LONGEST])
        log.info("    pieces %s", " ".join(vocabulary.tokens[each] for each in ids)[:_LONGEST])
        log.info("    ids    %s", " ".join(map(str, ids))[:_LONGEST])
    source, target = (_text(store, vocabulary, steps, _LINES) for store, vocabulary, steps, _ in sides)
    if swapped(source, target, corpus.languages):
        ours, theirs = corpus.languages
        log.warning(
            "the source text looks like %s and the target text like %s: the two sides seem to be swapped; look at the pair above, and at "
            "data.source_language=%s, data.target_language=%s and data.columns",
            *(theirs, ours, ours, theirs),
        )


def _text(store: TokenStore, vocabulary: Vocabulary, steps: Preprocessing, count: int) -> list[str]:
    tokens = [vocabulary.decode(ids) for ids in islice(store, count)]
    return [line.replace("\t", " | ") for line in steps.undo(tokens)]

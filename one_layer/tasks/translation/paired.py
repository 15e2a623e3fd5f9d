"""Two translations of one test set: sacreBLEU of each line, and its paired bootstrap of the whole."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.significance import PairedTest, Result

from one_layer.tasks.paired import FEWEST, Paired
from one_layer.tasks.translation.bleu import bleu_sacre, can_measure, sacrebleu_metric

SAMPLES = 1000


def translations(
    references: Sequence[str], systems: tuple[Sequence[str], Sequence[str]], tokenize: str, lowercase: bool
) -> Paired:
    """sacreBLEU of two lists of plain translations: of the corpus, and of each sentence with its effective order.

    The test is sacreBLEU's paired bootstrap (Koehn 2004), whose seed is the environment's SACREBLEU_SEED or 12345.
    Raises: UserError for lists of unequal lengths, and for a tokenizer whose package is missing.
    """
    found = [bleu_sacre(lines, references, lowercase, tokenize) for lines in systems]
    by_line = BLEU(lowercase=lowercase, tokenize=tokenize, effective_order=True)
    scores = [
        [
            round(by_line.sentence_score(line, [reference]).score, 6)
            for line, reference in zip(lines, references, strict=True)
        ]
        for lines in systems
    ]
    totals, signature = (found[0][0], found[1][0]), found[0][1]
    paired = Paired(f"sacreBLEU ({signature})", totals, list(zip(*scores, strict=True)))
    differing = sum(one != other for one, other in zip(*systems, strict=True))
    # sacreBLEU gives two equal lists p = 0.001, and resampling says little where only a few lines differ.
    if differing < FEWEST or not can_measure(references, tokenize):
        return paired
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)
    test = PairedTest(
        [("first", systems[0]), ("second", systems[1])],
        {"BLEU": sacrebleu_metric(tokenize, lowercase)},
        [references],
        test_type="bs",
        n_samples=SAMPLES,
    )
    _, results = test()
    (p,) = (each[1].p_value for each in results.values() if isinstance(each[1], Result))
    return paired._replace(p=p, test=f"paired bootstrap by sacreBLEU, {SAMPLES:,} samples")

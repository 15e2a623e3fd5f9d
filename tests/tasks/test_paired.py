"""Two models on one test set: which lines are better, and when the difference may be chance."""

import pytest

from one_layer.tasks.classification.scoring import paired_labels, sign_test
from one_layer.tasks.translation.bleu import bleu_sacre, translations

REFERENCES = [f"the {noun} saw {number} old houses near the river" for number, noun in enumerate(40 * ["cat", "dog"])]
WORSE = [line.replace("old houses near", "some old house by") for line in REFERENCES]


def mixed(share: int, first: int = 0) -> list[str]:
    """The references, of which only each `share`-th line is right, from `first` on."""
    return [
        good if place % share == first else bad for place, (good, bad) in enumerate(zip(REFERENCES, WORSE, strict=True))
    ]


def test_totals_are_the_scores_of_the_whole_and_lines_are_counted():
    found = translations(REFERENCES, (mixed(2), WORSE), "13a", False)
    assert found.totals == tuple(bleu_sacre(lines, REFERENCES)[0] for lines in (mixed(2), WORSE))
    assert found.counts == (40, 0, 40) and {one for one, _ in found.lines[::2]} == {100.0}


def test_a_difference_in_half_of_the_lines_is_no_chance_and_that_of_equal_models_may_be():
    clear = translations(REFERENCES, (mixed(2), WORSE), "13a", False)
    equal = translations(REFERENCES, (mixed(2), mixed(2, 1)), "13a", False)
    assert clear.p is not None and clear.p < 0.01 and "paired bootstrap" in clear.test
    assert equal.p is not None and equal.p > 0.2 and equal.counts == (40, 40, 0)


@pytest.mark.parametrize("changed", [0, 1, 9, 10])
def test_few_lines_that_differ_are_not_tested(changed):
    """sacreBLEU's bootstrap gives two equal lists p = 0.001."""
    second = [*WORSE[:changed], *REFERENCES[changed:]]
    found = translations(REFERENCES, (REFERENCES, second), "13a", False)
    assert (found.p is None) == (changed < 10) and found.counts == (changed, 0, 80 - changed)


def test_a_text_that_bleu_cannot_measure_is_not_tested():
    short = [" ".join(line.split()[:3]) for line in REFERENCES]
    found = translations(short, (short, WORSE), "13a", False)
    assert found.p is None and {one for one, _ in found.lines} == {100.0}, "of short lines, shorter n-grams count"


def test_the_tokens_are_those_of_the_tokenizer():
    words = [line.replace(" ", "") for line in REFERENCES]
    found = translations(words, ([word[:-1] for word in words], words), "char", False)
    assert found.p is not None and {0 < one < other == 100.0 for one, other in found.lines} == {True}


def test_case_counts_where_the_score_has_it():
    upper = [line.upper() for line in REFERENCES]
    alike = translations(REFERENCES, (upper, REFERENCES), "13a", True)
    assert alike.counts == (0, 0, 80) and alike.p is None
    assert translations(REFERENCES, (upper, REFERENCES), "13a", False).counts == (0, 80, 0)
    assert (translations(REFERENCES, ([line.upper() for line in mixed(2)], mixed(2, 1)), "13a", True).p or 0) > 0.2


def test_labels_are_right_or_wrong():
    right, wrong = ["yes"] * 30, ["no"] * 30
    found = paired_labels(right, ([*wrong[:12], *right[12:]], right))
    assert found.totals == (0.6, 1.0) and found.counts == (0, 12, 18)
    assert found.p == pytest.approx(2 / 2**12)
    assert paired_labels(right, (wrong[:9] + right[9:], right)).p is None


@pytest.mark.parametrize(("first", "second", "p"), [(5, 5, 1.0), (0, 10, 2 / 1024), (1, 9, 22 / 1024)])
def test_the_sign_test_counts_the_tails_of_a_fair_coin(first, second, p):
    assert sign_test(first, second) == sign_test(second, first) == pytest.approx(p)

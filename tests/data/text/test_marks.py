"""Letters with marks: a model reads what people type as its training text was written."""

import unicodedata

import pytest

from one_layer.data.special_tokens import UNK
from one_layer.data.text.marks import composed

KNOWN, LINE = UNK + 1, "schöne Mädchen"
APART = unicodedata.normalize("NFD", LINE)


@pytest.mark.parametrize("line", [LINE, APART, "plain", "", "שָׁלוֹם"])
def test_a_model_of_characters_reads_composed_letters(line):
    assert composed(line, lambda text: [KNOWN] * len(text)) in (line, unicodedata.normalize("NFC", line))
    assert composed(APART, lambda text: [KNOWN] * len(text)) == LINE


def test_a_model_of_decomposed_text_keeps_it_and_unknown_tokens_count_before_their_number():
    assert composed(APART, lambda text: [KNOWN if text == APART else UNK] * len(text)) == APART
    assert composed(APART, lambda text: [UNK] if text == APART else [KNOWN, KNOWN]) == LINE
    assert composed(APART, lambda text: [KNOWN]) == APART  # nothing is gained

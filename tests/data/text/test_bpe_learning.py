"""BPE learning with arrays gives the same merges as subword-nmt."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from one_layer.data.text.bpe_learning import learn_bpe_from_counts
from one_layer.data.text.lines import read_lines
from one_layer.data.text.preprocess import count_words, learn_bpe
from one_layer.system.errors import UserError

# Few letters, so that runs, overlaps and ties are frequent.
WORDS = st.lists(
    st.text("ab", min_size=1, max_size=9) | st.text("abcß", min_size=1, max_size=6), min_size=1, max_size=25
)


def subword_nmt(lines: list[str], merges: int) -> str:
    from subword_nmt.learn_bpe import learn_bpe as learn

    codes = io.StringIO()
    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(ValueError):
        learn(lines, codes, merges)
    return codes.getvalue()


@settings(deadline=None, max_examples=120)
@given(WORDS, st.integers(1, 40))
def test_merges_equal_those_of_subword_nmt(words: list[str], merges: int) -> None:
    expected = subword_nmt([" ".join(words)], merges)
    try:
        found = learn_bpe_from_counts(count_words([" ".join(words)]), merges)
    except UserError:
        found = "#version: 0.2\n"
    assert found == expected


def test_merges_on_real_text_equal_those_of_subword_nmt(shared: Path) -> None:
    lines = read_lines(shared / "data/iwslt14/train_sample4600.tok.de")[::6]
    assert learn_bpe(lines, 300) == subword_nmt(lines, 300)


def test_a_word_counts_as_often_as_it_occurs() -> None:
    assert learn_bpe_from_counts({"low": 3, "er": 5}, 1) == "#version: 0.2\ne r</w>\n"
    assert learn_bpe_from_counts({"low": 7, "er": 5}, 1) == "#version: 0.2\no w</w>\n"
    with pytest.raises(UserError, match="occurs twice"):
        learn_bpe_from_counts({"low": 1, "er": 1}, 5)

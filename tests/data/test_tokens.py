"""The token store gives the same sentences in memory, selected, padded, and saved and memory-mapped; and how texts are cut."""

from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from one_layer.data import tokens
from one_layer.data.special_tokens import BOS, EOS, PAD
from one_layer.data.text.vocabulary import SPECIALS, Vocabulary
from one_layer.data.tokens import LEAST_OF_PAIRS, TokenStore, cut_texts, fitting_type

SENTENCES = [np.array(ids, np.int32) for ids in ([5, 6, 2], [2], [70_000, 4, 4, 2], [9, 2])]


def listed(store: TokenStore) -> list[list[int]]:
    return [store[i].tolist() for i in range(len(store))]


@given(st.lists(st.lists(st.integers(0, 65_535), max_size=5), min_size=1, max_size=9), st.data())
def test_a_store_holds_its_sentences(sentences: list[list[int]], data: st.DataObject) -> None:
    store = TokenStore.of([np.array(ids, np.int32) for ids in sentences], np.uint16)
    assert listed(store) == sentences and store[0].dtype == np.int32
    assert [token for ids in store.chunks() for token in ids] == [*chain(*sentences)]
    rows = np.array(data.draw(st.lists(st.integers(-1, len(sentences) - 1), min_size=1)))
    chosen = [sentences[row] if row >= 0 else [] for row in rows]
    padded = [ids[:3] + [PAD] * (3 - len(ids)) for ids in chosen]
    assert store.padded(rows, 3).tolist() == [ids[:3] for ids in padded]
    kept = np.array([len(ids) > 2 for ids in sentences])
    assert listed(store.select(kept)) == [ids for ids in sentences if len(ids) > 2]
    others = [*sentences[::2], *([*ids[:-1], 7] for ids in sentences)]
    other = TokenStore.of([np.array(ids, np.int32) for ids in others])
    assert store.within(other).tolist() == [ids in others for ids in sentences]


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_a_saved_store_is_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(tokens, "_CHUNK", chunk)
    kind = fitting_type(70_001)
    store = TokenStore.of(SENTENCES).select(np.array([3, 0, 2]))
    store.save(tmp_path / "source", kind)
    opened = TokenStore.open(tmp_path / "source")
    assert listed(opened) == listed(store) and opened.tokens.dtype == kind
    assert isinstance(opened.tokens.base, np.memmap) and opened.padded(np.array([2]), 3).tolist() == [[70_000, 4, 4]]


def test_the_smaller_type_that_holds_the_vocabulary_is_chosen() -> None:
    assert (fitting_type(65_536), fitting_type(65_537)) == (np.uint16, np.uint32)


@pytest.mark.parametrize(("first", "second"), [(1, 1), (0, 9), (9, 0), (9, 2), (2, 9), (7, 8), (30, 30)])
def test_of_two_texts_the_longer_one_is_cut_first(first, second):
    """As much as fits is kept of both; a shorter one is only cut when both are equally long."""
    vocabulary = Vocabulary((*SPECIALS, "a", "b"))
    a, b = vocabulary.encode("a")[0], vocabulary.encode("b")[0]
    whole = vocabulary.encode_texts(" ".join("a" * first) + "\t" + " ".join("b" * second))
    for longest in range(LEAST_OF_PAIRS, 20):
        found = cut_texts(whole, longest).tolist()
        of_first, of_second = found.count(a), found.count(b)
        assert found == [BOS, *[a] * of_first, EOS, EOS, *[b] * of_second, EOS]
        assert len(found) == min(longest, len(whole))
        if of_first < first:
            assert of_second in (second, of_first - 1, of_first) and of_first >= of_second
        if of_second < second:
            assert of_first in (first, of_second, of_second + 1)

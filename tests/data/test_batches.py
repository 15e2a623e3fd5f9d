"""Batches: every pair once per epoch, in an order set by seed and epoch, within the token budget, in few shapes."""

import math
from itertools import combinations, islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from one_layer.data.batches import Batch, TrainingBatches, bucket_widths, evaluation_batches, training_iterator
from one_layer.data.search_batches import batches_for_search
from one_layer.data.special_tokens import EOS, PAD
from tests import user_error

Sentences = list[np.ndarray]

LENGTH_PAIRS = st.lists(st.tuples(st.integers(1, 14), st.integers(1, 14)), min_size=1, max_size=60)


def sentence(number: int, length: int) -> np.ndarray:
    """Returns `length` ids: `number` + 4 repeated, then eos. So a row shows which sentence it holds."""
    return np.array([number + 4] * (length - 1) + [EOS], np.int32)


def pairs(lengths: list[tuple[int, int]]) -> tuple[Sentences, Sentences]:
    return [sentence(i, s) for i, (s, _) in enumerate(lengths)], [sentence(i, t) for i, (_, t) in enumerate(lengths)]


def some_pairs(count: int = 60) -> tuple[Sentences, Sentences]:
    lengths = np.random.default_rng(0).integers(2, 15, size=(count, 2))
    return pairs([(int(s), int(t)) for s, t in lengths])


def rows(batch: Batch, name: str) -> np.ndarray:
    """Returns the rows of all micro-batches of a batch, in order."""
    return batch[name].reshape(-1, batch[name].shape[-1])


def real(row: np.ndarray) -> tuple[int, ...]:
    return tuple(row[row != PAD].tolist())


def epoch(batches: TrainingBatches, number: int) -> list[Batch]:
    return [batches[number * batches.batches_per_epoch + i] for i in range(batches.batches_per_epoch)]


def same(one: Batch, other: Batch) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def padded_tokens(lengths: list[int], widths: tuple[int, ...]) -> int:
    return sum(min(width for width in widths if width >= length) for length in lengths)


@given(st.lists(st.integers(1, 12), min_size=1, max_size=20), st.integers(1, 6))
def test_bucket_widths_need_the_fewest_tokens(lengths: list[int], buckets: int) -> None:
    widths = bucket_widths(np.array(lengths), buckets)
    assert 1 <= len(widths) <= buckets
    assert list(widths) == sorted(set(widths)) and widths[-1] == max(lengths)
    smaller = sorted(set(lengths) - {max(lengths)})
    best = min(
        padded_tokens(lengths, (*chosen, max(lengths)))
        for count in range(min(buckets, len(smaller) + 1))
        for chosen in combinations(smaller, count)
    )
    assert padded_tokens(lengths, widths) == best


@settings(deadline=None, max_examples=60)
@given(LENGTH_PAIRS, st.integers(1, 80), st.integers(1, 3), st.integers(1, 5), st.integers(0, 3))
def test_every_pair_comes_once_per_epoch_within_budget_and_in_few_shapes(
    lengths: list[tuple[int, int]], max_tokens: int, accumulate: int, buckets: int, number: int
) -> None:
    source, target = pairs(lengths)
    batches = TrainingBatches(source, target, max_tokens=max_tokens, accumulate=accumulate, buckets=buckets, seed=7)
    assert len(batches.widths) <= buckets
    seen: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for batch in epoch(batches, number):
        micro_batches, height, width = batch["source"].shape
        assert micro_batches == accumulate
        assert (micro_batches * height, width) in set(zip(batches.rows, batches.widths, strict=True))
        assert micro_batches * height * width <= max_tokens or height == 1
        assert {name: (ids.shape, ids.dtype) for name, ids in batch.items()} == dict.fromkeys(
            ("source", "target_in", "target"), ((micro_batches, height, width), np.dtype(np.int32))
        )
        found = zip(map(real, rows(batch, "source")), map(real, rows(batch, "target")), strict=True)
        seen += [(one, other) for one, other in found if other]
    expected = [(tuple(s.tolist()), tuple(t.tolist())) for s, t in zip(source, target, strict=True)]
    assert sorted(seen) == sorted(expected)


@settings(deadline=None, max_examples=30)
@given(LENGTH_PAIRS, st.integers(1, 80), st.integers(1, 3))
def test_rows_are_padded_on_the_right_and_the_decoder_reads_the_target_shifted(
    lengths: list[tuple[int, int]], max_tokens: int, accumulate: int
) -> None:
    batches = TrainingBatches(*pairs(lengths), max_tokens=max_tokens, accumulate=accumulate, buckets=3, seed=0)
    for batch in epoch(batches, 0):
        for name in ("source", "target_in", "target"):
            is_pad = rows(batch, name) == PAD
            assert (np.diff(is_pad.astype(int), axis=1) >= 0).all()
        for source, target_in, target in zip(*(rows(batch, n) for n in ("source", "target_in", "target")), strict=True):
            if real(target):
                assert real(source)[-1] == EOS and real(target)[-1] == EOS
                assert real(target_in) == (EOS, *real(target)[:-1])
            else:  # an empty row has no target token in the loss, and one key for the attention
                assert real(source) == (EOS,) and real(target_in) == (EOS,)


def test_empty_rows_are_few() -> None:
    batches = TrainingBatches(*some_pairs(200), max_tokens=100, accumulate=2, buckets=3, seed=0)
    empty = np.array([(batch["target"][..., 0] == PAD).sum(axis=1) for batch in epoch(batches, 0)])
    assert 0 < empty.sum() < 2 * batches.batches_per_epoch  # each bucket has fewer empty rows than micro-batches
    assert empty.max() > 1 and np.ptp(empty, axis=1).max() == 1, "micro-batches share them out"


def test_the_order_depends_only_on_seed_and_epoch() -> None:
    def made(seed: int) -> TrainingBatches:
        return TrainingBatches(*some_pairs(), max_tokens=60, accumulate=1, buckets=3, seed=seed)

    one, again, other = made(1), made(1), made(2)
    for number in (5, 0, 2):
        assert all(map(same, epoch(one, number), epoch(again, number)))
    backwards = [again[i] for i in reversed(range(3 * one.batches_per_epoch))]
    assert all(map(same, backwards[::-1], (one[i] for i in range(len(backwards)))))
    together = [{frozenset(map(real, rows(batch, "source"))) for batch in epoch(one, number)} for number in (0, 1)]
    shapes = [[batch["source"].shape for batch in epoch(one, number)] for number in (0, 1)]
    assert together[0] != together[1] and shapes[0] != shapes[1], "pairs of a bucket are shuffled, and batches are"
    assert not all(map(same, epoch(one, 0), epoch(other, 0)))


@pytest.mark.parametrize("seed", [-1, 0, 2**63, 2**64 - 1])
def test_any_seed_works(seed: int) -> None:
    batches = TrainingBatches(*some_pairs(10), max_tokens=60, buckets=2, seed=seed)
    assert same(batches[10**9], batches[10**9])


@pytest.mark.parametrize("threads", [0, 1, 4])
def test_an_iterator_can_start_at_any_batch(threads: int) -> None:
    """The number of threads that read does not change the batches."""
    batches = TrainingBatches(*some_pairs(), max_tokens=60, accumulate=2, buckets=3, seed=4)
    count = 2 * batches.batches_per_epoch + 3
    for start in (0, 1, batches.batches_per_epoch - 1, 10**6):
        iterator = training_iterator(batches, start, threads=threads)
        expected = (batches[start + i] for i in range(count))
        assert all(map(same, islice(iterator, count), expected))
        iterator.close()


def test_every_shape_has_the_update_that_comes_with_it_first() -> None:
    batches = TrainingBatches(*some_pairs(), max_tokens=60, accumulate=2, buckets=3, seed=4)
    for start in (0, 1, batches.batches_per_epoch - 1, 10**6):
        coming = [batches[start + i]["source"].shape for i in range(2 * batches.batches_per_epoch)]
        firsts = list(dict.fromkeys(coming))
        assert len(firsts) == 3
        assert batches.of_each_shape(start) == [start + coming.index(shape) for shape in firsts]


def test_the_state_restores_the_next_batch() -> None:
    batches = TrainingBatches(*some_pairs(), max_tokens=60, buckets=3, seed=4)
    first = training_iterator(batches, 7)
    list(islice(first, 5))
    state = first.get_state()
    rest = list(islice(first, 20))

    first.set_state(state)  # discards the batches that were read ahead
    assert all(map(same, islice(first, 20), rest))
    second = training_iterator(batches, 0)
    second.set_state(state)
    assert all(map(same, islice(second, 20), rest))
    first.close()
    second.close()


@settings(deadline=None, max_examples=60)
@given(LENGTH_PAIRS, st.integers(1, 80), st.integers(1, 5), st.booleans())
def test_evaluation_covers_every_sentence_once_and_gives_their_order(
    lengths: list[tuple[int, int]], max_tokens: int, buckets: int, with_target: bool
) -> None:
    source, target = pairs(lengths)
    back: dict[int, tuple[int, ...]] = {}
    shapes, longest = set(), [0]
    for batch in evaluation_batches(source, target if with_target else None, max_tokens, buckets):
        assert set(batch) == {"source", "index"} | ({"target", "target_in"} if with_target else set())
        assert len({ids.shape for name, ids in batch.items() if name != "index"}) == 1
        assert batch["source"].size <= max_tokens or len(batch["index"]) == 1
        shapes.add(batch["source"].shape)
        for row, index in enumerate(batch["index"].tolist()):
            if index < 0:
                assert real(batch["source"][row]) == (EOS,)
                assert not with_target or not real(batch["target"][row])
                continue
            assert index not in back
            back[index] = real(batch["source"][row])
            longest.append(max(lengths[index]) if with_target else lengths[index][0])
            if with_target:
                assert real(batch["target"][row]) == tuple(target[index].tolist())
                assert real(batch["target_in"][row]) == (EOS, *target[index][:-1].tolist())
    assert [back[i] for i in range(len(source))] == [tuple(ids.tolist()) for ids in source]
    assert longest == sorted(longest)
    assert len(shapes) <= buckets and len(shapes) == len({width for _, width in shapes})


def test_no_sentences_are_refused() -> None:
    with user_error("no sentences"):
        TrainingBatches([], [], max_tokens=20)
    with user_error("no sentences"):
        next(evaluation_batches([], None, 20, 2))
    assert not list(batches_for_search([], 20)), "a search of none is no mistake"


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 200), min_size=1, max_size=60), st.integers(1, 2000))
def test_a_search_covers_every_sentence_once_in_shapes_of_two_ladders(lengths: list[int], max_tokens: int) -> None:
    source = [sentence(i, length) for i, length in enumerate(lengths)]
    back: dict[int, tuple[int, ...]] = {}
    for batch in batches_for_search(source, max_tokens):
        members, width = batch["source"].shape
        assert math.log2(width / 24) % 1 == 0 and (members == 1 or math.log(members / 8, 4) % 1 == 0)
        assert members * width <= max_tokens or members == 1
        assert (batch["index"] >= 0).any()
        for row, index in enumerate(batch["index"].tolist()):
            assert index >= 0 or real(batch["source"][row]) == (EOS,)
            if index >= 0:
                assert index not in back
                back[index] = real(batch["source"][row])
    assert [back[i] for i in range(len(source))] == [tuple(ids.tolist()) for ids in source]


def test_a_long_sentence_is_searched_apart_from_short_ones() -> None:
    """98 short lines and one of 588 words: none of the short ones is padded to the long one's width."""
    source = [sentence(i, 7 + i % 9) for i in range(98)] + [sentence(98, 589)]
    shapes = {batch["source"].shape for batch in batches_for_search(source, 4096)}
    assert {width for rows, width in shapes if rows > 1} == {24} and (1, 768) in shapes


def test_the_rows_of_a_search_may_be_limited() -> None:
    source = [sentence(i, 5) for i in range(120)]
    limited = list(batches_for_search(source, 4096, most_rows=32))
    assert {len(batch["source"]) for batch in limited} == {32} and len(
        next(batches_for_search(source, 4096))["source"]
    ) == 128
    assert sorted(np.concatenate([batch["index"] for batch in limited])) == [-1] * 8 + list(range(120))

"""A stream of ids: blocks for training and windows for scoring."""

from __future__ import annotations

import numpy as np
import pytest

from one_layer.data.special_tokens import EOS, PAD
from one_layer.data.stream import Stream, StreamBatches, on_disk, windows
from one_layer.system.errors import UserError


def test_an_epoch_has_every_block_once_and_depends_on_seed_and_epoch_alone():
    text = Stream(np.arange(4, 104, dtype=np.uint16), 8)
    batches = StreamBatches(text, max_tokens=24, seed=5)
    assert batches.batches_per_epoch * 3 >= 11
    for epoch in (0, 1, 7):
        numbers = range(epoch * batches.batches_per_epoch, (epoch + 1) * batches.batches_per_epoch)
        rows = np.concatenate([batches[number]["target"].reshape(-1, 8) for number in numbers])
        full = rows[rows[:, 0] != PAD]
        found = np.sort(full.reshape(-1))
        assert np.array_equal(found, np.arange(found[0], found[0] + len(found))) and len(found) >= 100 - 2 * 8
        assert np.array_equal(np.diff(full, axis=1), np.ones((len(full), 7)))
    again = StreamBatches(text, max_tokens=24, seed=5)
    assert all(np.array_equal(again[n][name], batches[n][name]) for n in (0, 9) for name in ("source", "target"))
    assert not np.array_equal(StreamBatches(text, max_tokens=24, seed=6)[0]["target"], batches[0]["target"])


def test_a_source_is_the_token_before_its_target():
    text = Stream(np.arange(4, 104, dtype=np.uint16), 8)
    batch, _ = text.read(np.array([0, 7, 95, -1]), 8)
    assert batch["source"][0].tolist() == [EOS, *range(4, 11)] and batch["target"][0].tolist() == [*range(4, 12)]
    assert batch["source"][1, 0] == 10 and batch["target"][2].tolist() == [*range(99, 104), PAD, PAD, PAD]
    assert (batch["source"][3] == PAD).all() and (batch["target"][3] == PAD).all()


@pytest.mark.parametrize("size", [8, 9, 20])
def test_micro_batches_have_equally_many_rows(size):
    batches = StreamBatches(Stream(np.full(size, 9, np.uint16), 8), max_tokens=32, accumulate=2)
    assert batches[0]["source"].shape[0] == 2 and (batches[0]["target"] == 9).any()


@pytest.mark.parametrize("stride", [1, 3, 8])
@pytest.mark.parametrize(("tokens", "limit"), [(3, 0), (8, 0), (29, 0), (29, 12)])
def test_windows_score_every_token_once_after_enough_context(tokens, limit, stride):
    text, scored = Stream(np.arange(4, 4 + tokens, dtype=np.uint16), 8), []
    for number, batch in enumerate(windows(text, stride, 2, limit)):
        assert batch["source"].shape == batch["target"].shape == (2, 8)
        for row, (source, target) in enumerate(zip(batch["source"], batch["target"], strict=True)):
            places = np.flatnonzero(target != PAD)
            scored += target[places].tolist()
            assert all(source[place] == (target[place] - 1 if target[place] > 4 else EOS) for place in places)
            assert not len(places) or number + row == 0 or places[0] >= 8 - stride
    assert scored == list(range(4, 4 + (limit or tokens)))


def test_windows_that_would_leave_tokens_out_are_refused():
    text = Stream(np.arange(4, 104, dtype=np.uint16), 8)
    with pytest.raises(UserError, match=r"the stride is 9, but a window has 8 tokens.*; give at most 8"):
        list(windows(text, 9, 2))


def test_a_text_shorter_than_one_block_is_refused():
    with pytest.raises(UserError, match=r"has 7 tokens, fewer than the 8 of one block; .* a smaller data\.block"):
        StreamBatches(Stream(np.full(7, 9, np.uint16), 8), max_tokens=32)


def test_ids_on_disk_are_the_ids():
    ids = [np.arange(5, dtype=np.int32), np.arange(300, dtype=np.int32)]
    assert np.array_equal(on_disk(iter(ids), np.uint16), np.concatenate(ids)) and not len(on_disk(iter([]), np.uint16))

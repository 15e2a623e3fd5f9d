"""A stream of ids: blocks for training, windows for scoring, and masked blocks that depend on seed, epoch and example alone."""

import numpy as np
import pytest

from one_layer.data import stream_corpus
from one_layer.data.config import DataConfig
from one_layer.data.masking import MaskedBatches, Masking, validation_batches
from one_layer.data.special_tokens import BOS, EOS, PAD, UNK
from one_layer.data.stream import Stream, StreamBatches, on_disk, windows
from one_layer.data.text.units import MASK
from tests import user_error


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
    assert len({batches.begins(epoch * batches.batches_per_epoch)[1][0] % 8 for epoch in range(9)}) > 1
    again = StreamBatches(text, max_tokens=24, seed=5)
    assert all(np.array_equal(again[n][name], batches[n][name]) for n in (0, 9) for name in ("source", "target"))
    assert not np.array_equal(StreamBatches(text, max_tokens=24, seed=6)[0]["target"], batches[0]["target"])


def test_a_source_is_the_token_before_its_target():
    text = Stream(np.arange(4, 104, dtype=np.uint16), 8)
    batch, _ = text.read(np.array([0, 7, 95, -1]), 8)
    assert batch["source"][0].tolist() == [EOS, *range(4, 11)] and batch["target"][0].tolist() == [*range(4, 12)]
    assert batch["source"][1, 0] == 10 and batch["target"][2].tolist() == [*range(99, 104), PAD, PAD, PAD]
    assert (batch["source"][3] == PAD).all() and (batch["target"][3] == PAD).all()


@pytest.mark.parametrize("size", [8, 9, 20, 100])
def test_micro_batches_have_equally_many_rows_and_blocks(size):
    """Each block is whole; empty rows fill the last batch."""
    batches = StreamBatches(Stream(np.full(size, 9, np.uint16), 8), max_tokens=72, accumulate=2)
    for target in (batches[number]["target"] for number in range(9)):
        assert {*map(tuple, target.reshape(-1, 8).tolist())} <= {(9,) * 8, (PAD,) * 8} and len(target) == 2
        assert 0 <= np.diff((target[:, :, 0] == PAD).sum(axis=1)) <= 1 and (target == 9).any()


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


def test_a_text_shorter_than_one_block_is_refused():
    with user_error(r"has 7 tokens, fewer than the 8 of one block; .* a smaller data\.block"):
        StreamBatches(Stream(np.full(7, 9, np.uint16), 8), max_tokens=32)


def test_ids_on_disk_are_the_ids():
    ids = [np.arange(5, dtype=np.int32), np.arange(300, dtype=np.int32)]
    assert np.array_equal(on_disk(iter(ids), np.uint16), np.concatenate(ids)) and not len(on_disk(iter([]), np.uint16))


TYPES, MASK_ID = 50, 20
MASKING = Masking(0.15, MASK_ID, TYPES)


def text(tokens: int = 4000, block: int = 33) -> Stream:
    dice = np.random.default_rng(1)
    ids = dice.integers(4, TYPES, tokens)
    ids[::17], ids[::23] = EOS, UNK
    return Stream(ids.astype(np.uint16), block)


def undone(batch):
    """The text of a batch, with the predicted tokens put back."""
    source = batch["source"].copy()
    for row, places, target in zip(source, batch["places"], batch["target"], strict=True):
        row[places[target != PAD]] = target[target != PAD]
    return source


def test_what_is_predicted_put_back_gives_the_text():
    stream = text()
    rows = np.concatenate([undone(batch) for batch in validation_batches(stream, MASKING, 4)])
    assert (rows[rows[:, 1] != PAD][:, 0] == BOS).all()
    body = rows[:, 1:].reshape(-1)
    assert np.array_equal(body[body != PAD], stream.tokens)


def test_shares_are_those_of_bert_and_specials_are_left_alone():
    batches = MaskedBatches(text(40_000), MASKING, max_tokens=33 * 32, seed=3)
    predicted, real = 0, 0
    fates, where, others = {"mask": 0, "same": 0, "other": 0}, set(), set()
    for number in range(batches.batches_per_epoch):
        batch = {name: array[0] for name, array in batches[number].items()}
        found = np.take_along_axis(batch["source"], batch["places"], axis=1)[batch["target"] != PAD]
        target = batch["target"][batch["target"] != PAD]
        assert (target > UNK).all() and (target != MASK_ID).all() and (found > UNK).all()
        fates["mask"] += int((found == MASK_ID).sum())
        fates["same"] += int((found == target).sum())
        predicted += len(target)
        real += np.sum((undone(batch) > UNK) & (undone(batch) != MASK_ID))
        where, others = where.union(batch["places"][batch["target"] != PAD]), others.union(found[found != target])
        ordered = np.diff(batch["places"])[batch["target"][:, 1:] != PAD] > 0
        assert ordered.all() and batch["source"].size <= 33 * 32
    assert where == set(range(1, 33)) and others == set(range(UNK + 1, TYPES)), "anywhere, and any"
    fates["other"] = predicted - fates["mask"] - fates["same"]
    # The random tokens are one time in 45 the token itself.
    wanted = {"mask": 0.8, "same": 0.1 + 0.1 / 45, "other": 0.1 - 0.1 / 45}
    for name, share in wanted.items():
        assert abs(fates[name] / predicted - share) < 4 * np.sqrt(share / predicted), name
    assert abs(predicted / real - 0.15) < 0.005


def test_masks_depend_on_seed_epoch_and_example_and_on_nothing_else():
    """The same block in batches of other sizes has the same masks; in another epoch, or by another seed, it has others."""

    def of_epoch(epoch, **changes):
        batches = MaskedBatches(text(33 * 20), MASKING, **{"max_tokens": 33 * 4, "seed": 5, **changes})
        found = {}
        for number in range(batches.batches_per_epoch * epoch, batches.batches_per_epoch * (epoch + 1)):
            batch = batches[number]
            flat = {name: array.reshape(-1, array.shape[-1]) for name, array in batch.items()}
            for row, clean in enumerate(undone(flat)):
                found[clean.tobytes()] = tuple(array[row].tobytes() for array in flat.values())
        return found

    assert of_epoch(0) == of_epoch(0, max_tokens=33 * 6, accumulate=2)
    keys, one = ((5, 0), (5, 1), (6, 0)), text(32)  # of a text of one block, that is the block of each epoch
    of_one = [MaskedBatches(one, MASKING, max_tokens=33, seed=seed)[epoch] for seed, epoch in keys]
    assert len({batch["places"].tobytes() for batch in of_one}) == 3


def test_validation_always_has_the_same_masks():
    def batches(rows, limit=0):
        found = list(validation_batches(text(500), MASKING, rows, limit))
        return {name: np.concatenate([batch[name] for batch in found]) for name in found[0]}

    one, other, some = batches(3), batches(5), batches(4, 64)
    for name in one:
        assert np.array_equal(one[name][:16], other[name][:16]) and np.array_equal(one[name][:2], some[name][:2])
    assert (some["target"][2:] == PAD).all()
    alike = next(validation_batches(Stream(np.full(96, 9, np.uint16), 33), MASKING, 3))["places"]
    assert len({places.tobytes() for places in alike}) == 3, "blocks have masks of their own"


@pytest.mark.parametrize("unit", ["bytes", "bpe"])
def test_lines_become_sentences_packed_into_blocks(tmp_path, unit):
    (tmp_path / "a.txt").write_text("la casa\r\n\n  \nla <mask> è\n" * 20, "utf-8")
    changes = {"bpe_kind": "byte-level", "bpe_merges": 10} if unit == "bpe" else {}
    config = DataConfig(
        source="plain", directory=str(tmp_path), train="a.txt", held_out=0.1, unit=unit, block=8, **changes
    )
    corpus = stream_corpus.load(config, masked=True)
    mask = corpus.target_vocabulary.tokens.index(MASK)
    ids = np.asarray(corpus.train.source.tokens, np.int32)
    assert mask == len(corpus.target_vocabulary) - 1 and mask not in ids and UNK not in ids
    of_unit = stream_corpus.unit_of(config, corpus)
    lines = [of_unit.text(each) for each in np.split(ids, np.flatnonzero(ids == EOS) + 1)]
    assert lines[:4] == ["la casa", "la <mask> è"] * 2


def test_a_vocabulary_without_a_mask_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("la casa\n" * 20, "utf-8")
    (tmp_path / "merges.txt").write_text("#version: 0.2\nl a\n", "utf-8")
    (tmp_path / "vocab.json").write_text('{"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "la": 4}', "utf-8")
    given = {"bpe_codes": str(tmp_path / "merges.txt"), "vocabulary": str(tmp_path / "vocab.json")}
    plain = {"source": "plain", "directory": str(tmp_path), "train": "a.txt", "held_out": 0.1, "unit": "bpe"}
    config = DataConfig(**plain, **given, bpe_kind="byte-level", block=8)
    with user_error(r"vocab\.json has no token <mask>, which masked language models need"):
        stream_corpus.load(config, masked=True)

"""The log survives what stops a run, and flips of mask bits are counted exactly."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from one_layer.errors import UserError
from one_layer.supermask import Supermask
from one_layer.training.metrics import MetricsLog, flipped_share, packed_masks, read_metrics
from tests import tiny

packed = jax.jit(packed_masks, static_argnums=1)
quick = settings(max_examples=20, deadline=None, derandomize=True)


def numpy_mask(scores, keep):
    """The k entries of largest |score|, the lower index winning a tie."""
    order = np.argsort(-np.abs(scores).reshape(-1), kind="stable")
    mask = np.zeros(scores.size, np.uint8)
    mask[order[: scores.size - int((1 - keep) * scores.size)]] = 1
    return mask


def params(seed):
    random = np.random.default_rng(seed)
    shapes = {"embedding": (6, 4), "stack": (3, 4, 8)}
    tree = {name: {"scores": jnp.asarray(random.integers(-3, 4, shape), jnp.float32)} for name, shape in shapes.items()}
    return {**tree, "norm": {"scale": jnp.ones((3, 4))}}


def numpy_masks(tree, keep):
    """Mask bits by name, layer after layer."""
    stack = [numpy_mask(np.asarray(layer), keep) for layer in tree["stack"]["scores"]]
    return {"embedding": numpy_mask(np.asarray(tree["embedding"]["scores"]), keep), "stack": np.concatenate(stack)}


@quick
@given(st.integers(0, 10**6), st.sampled_from([0.1, 0.5, 0.9]))
def test_masks_are_packed_bit_for_bit(seed, keep):
    tree = params(seed)
    masks = packed(tree, Supermask(keep))
    assert set(masks) == {"['embedding']['scores']", "['stack']['scores']"}
    for name, bits in numpy_masks(tree, keep).items():
        np.testing.assert_array_equal(np.asarray(masks[f"['{name}']['scores']"]).reshape(-1), np.packbits(bits))


@quick
@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_share_of_flips_is_exact(first, second):
    before, after = (np.concatenate([*numpy_masks(params(seed), 0.5).values()]) for seed in (first, second))
    share = flipped_share(packed(params(first), Supermask()), packed(params(second), Supermask()))
    assert float(share) == np.float32(np.mean(before != after))


def test_filling_bits_count_as_equal():
    """5 weights make a byte of which 3 bits mean nothing."""
    trees = [{"scores": jnp.asarray([scores], jnp.float32)} for scores in ([5, 4, 3, 2, 1], [1, 2, 3, 4, 5])]
    before, after = (packed_masks(tree, Supermask(0.4)) for tree in trees)
    assert float(flipped_share(before, after)) == 4 / 8


def test_no_flips_and_all():
    masks = {"a": jnp.asarray([0, 255], jnp.uint8)}
    assert float(flipped_share(masks, masks)) == 0
    assert float(flipped_share(masks, {"a": ~masks["a"]})) == 1


def written(workdir, steps, start=0):
    log = MetricsLog(workdir, start)
    for step in steps:
        log.write(step, step / 3, {"train/loss": 1 / 3 + step, "valid/bleu": 0.1 * step})
    log.close()


def test_a_line_holds_what_was_written(tmp_path):
    written(tmp_path, [1, 2])
    assert read_metrics(tmp_path)[1] == {"step": 2, "seconds": 0.667, "train/loss": 1 / 3 + 2, "valid/bleu": 0.2}
    assert list((tmp_path / "tensorboard").glob("events.*"))
    assert read_metrics(tmp_path / "nowhere") == []


@pytest.mark.parametrize("restored", [0, 1, 3, 5, 9])
def test_lines_after_the_restored_step_are_dropped(tmp_path, restored):
    written(tmp_path / "whole", [1, 3, 3, 5])
    written(tmp_path / "cut", [1, 3, 3, 5])
    written(tmp_path / "cut", [step for step in (1, 3, 3, 5) if step > restored], restored)
    assert read_metrics(tmp_path / "cut") == read_metrics(tmp_path / "whole")


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_a_last_line_cut_short_is_left_out(tmp_path, cut):
    written(tmp_path, [1, 2, 3])
    path = tmp_path / "metrics.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert [line["step"] for line in read_metrics(tmp_path)] == [1, 2]
    written(tmp_path, [3], 2)
    assert path.read_bytes() == whole


def test_a_damaged_line_is_said_and_left(tmp_path):
    written(tmp_path, [1])
    path = tmp_path / "metrics.jsonl"
    path.write_text("{nonsense\n" + json.dumps({"step": 1, "seconds": 0}) + "\n")
    before = tiny.contents(tmp_path)
    with pytest.raises(UserError, match=r"metrics\.jsonl is damaged"):
        MetricsLog(tmp_path, 1)
    assert tiny.contents(tmp_path) == before

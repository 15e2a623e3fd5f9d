"""The log survives what stops a run, and flips of mask bits are counted exactly."""

from __future__ import annotations

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from one_layer.errors import UserError
from one_layer.runs.folder import RunFolder
from one_layer.supermask import Supermask
from one_layer.training.metrics import MetricsLog, PackedMask, flipped_share, packed_masks, read_metrics
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
    shapes = {"embedding": (6, 4), "stack": (3, 4, 8), "odd": (2, 3, 3)}
    tree = {name: {"scores": jnp.asarray(random.integers(-3, 4, shape), jnp.float32)} for name, shape in shapes.items()}
    return {**tree, "norm": {"scale": jnp.ones((3, 4))}}


def numpy_masks(tree, keep):
    """Mask bits by name, a row for every layer."""
    return {
        name: np.stack([numpy_mask(layer, keep) for layer in np.asarray(tree[name]["scores"]).reshape(layers, -1)])
        for name, layers in (("embedding", 1), ("stack", 3), ("odd", 2))
    }


@quick
@given(st.integers(0, 10**6), st.sampled_from([0.1, 0.5, 0.9]))
def test_masks_are_packed_bit_for_bit(seed, keep):
    tree = params(seed)
    masks = packed(tree, Supermask(keep))
    found = numpy_masks(tree, keep)
    assert set(masks) == {f"{name}/scores" for name in found}
    for name, bits in found.items():
        mask = masks[f"{name}/scores"]
        matrices = bits.reshape(len(bits), *tree[name]["scores"].shape[-2:])
        packed_bits = np.packbits(matrices, axis=1)
        np.testing.assert_array_equal(np.asarray(mask.bits).reshape(packed_bits.shape), packed_bits)
        assert mask.count == bits.size


@quick
@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_share_of_flips_is_exact(first, second):
    masks = [numpy_masks(params(seed), 0.5).values() for seed in (first, second)]
    before, after = (np.concatenate([bits.reshape(-1) for bits in each]) for each in masks)
    share = flipped_share(packed(params(first), Supermask()), packed(params(second), Supermask()))
    assert share == np.mean(before != after)


def test_flips_of_masks_with_a_sign_are_all_counted():
    """From -1, 0, 1, 1, -1 to 0, -1, -1, 1, -1: three of five entries change."""
    before, after = (
        packed_masks(
            {"scores": jnp.asarray([scores], jnp.float32).T}, Supermask(selection="signed_threshold", threshold=1.0)
        )
        for scores in ([-2, 0, 2, 2, -2], [0, -2, -2, 2, -2])
    )
    assert flipped_share(before, after) == 3 / 5
    assert flipped_share(before, before) == 0


def test_filling_bits_do_not_count():
    """A column of 5 weights makes a byte of which 3 bits mean nothing."""
    trees = [{"scores": jnp.asarray([scores], jnp.float32).T} for scores in ([5, 4, 3, 2, 1], [1, 2, 3, 4, 5])]
    before, after = (packed_masks(tree, Supermask(0.4)) for tree in trees)
    assert flipped_share(before, after) == 4 / 5


def test_no_flips_and_all():
    masks, others = ({"a": PackedMask(jnp.asarray([bits], jnp.uint8), None, 16)} for bits in ([0, 255], [255, 0]))
    assert flipped_share(masks, masks) == 0
    assert flipped_share(masks, others) == 1


def written(workdir, steps, start=0):
    workdir.mkdir(exist_ok=True)
    log = MetricsLog(RunFolder(workdir), start)
    for step in steps:
        log.write(step, step / 3, {"train/loss": 1 / 3 + step, "valid/bleu": 0.1 * step})
    log.close()


def test_a_line_holds_what_was_written(tmp_path):
    written(tmp_path, [1, 2])
    assert read_metrics(tmp_path / "metrics.jsonl")[1] == {
        "step": 2,
        "seconds": 0.667,
        "train/loss": 1 / 3 + 2,
        "valid/bleu": 0.2,
    }
    assert list((tmp_path / "tensorboard").glob("events.*"))
    assert read_metrics(tmp_path / "nowhere" / "metrics.jsonl") == []


def test_a_kill_takes_nothing_that_was_written(tmp_path):
    """Not closed: what a SIGKILL finds on the disk."""
    log = MetricsLog(RunFolder(tmp_path), 0)
    sizes = [events(tmp_path)]
    for step in (1, 2, 3):
        log.write(step, 1.0, {"train/loss": 1.0})
        sizes.append(events(tmp_path))
        assert [line["step"] for line in read_metrics(tmp_path / "metrics.jsonl")] == list(range(1, step + 1))
    assert sizes == sorted(set(sizes)), "each line is in TensorBoard's file at once"
    log.close()
    assert events(tmp_path) == sizes[-1]


def events(workdir):
    """The bytes in TensorBoard's files."""
    return sum(path.stat().st_size for path in (workdir / "tensorboard").glob("events.*"))


def test_lines_are_json_even_where_values_are_not_finite(tmp_path):
    """JSON has no nan; float() reads what stands there."""
    log = MetricsLog(RunFolder(tmp_path), 0)
    log.write(1, 0.5, {"a": math.nan, "b": -math.inf, "c": 2.0})
    log.close()

    def refused(name):
        raise AssertionError(name)

    line = json.loads((tmp_path / "metrics.jsonl").read_text(), parse_constant=refused)
    assert math.isnan(float(line["a"])) and float(line["b"]) == -math.inf and line["c"] == 2.0


@pytest.mark.parametrize("restored", [0, 1, 3, 5, 9])
def test_lines_after_the_restored_step_are_dropped(tmp_path, restored):
    written(tmp_path / "whole", [1, 3, 3, 5])
    written(tmp_path / "cut", [1, 3, 3, 5])
    written(tmp_path / "cut", [step for step in (1, 3, 3, 5) if step > restored], restored)
    assert read_metrics(tmp_path / "cut" / "metrics.jsonl") == read_metrics(tmp_path / "whole" / "metrics.jsonl")


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_a_last_line_cut_short_is_left_out(tmp_path, cut):
    written(tmp_path, [1, 2, 3])
    path = tmp_path / "metrics.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert [line["step"] for line in read_metrics(tmp_path / "metrics.jsonl")] == [1, 2]
    written(tmp_path, [3], 2)
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "line", [b"{nonsense", b"\xff\x00", b"", b"[]", b"3", b'{"loss": 1}', b'{"step": "1"}', b"[" * 100_000]
)
def test_a_damaged_line_is_said_and_left(tmp_path, line):
    written(tmp_path, [1])
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(path.read_bytes() + line + b"\n" + json.dumps({"step": 1, "seconds": 0}).encode() + b"\n")
    before = tiny.contents(tmp_path)
    with pytest.raises(UserError, match=r"metrics\.jsonl, line 2 is damaged"):
        MetricsLog(RunFolder(tmp_path), 1)
    assert tiny.contents(tmp_path) == before

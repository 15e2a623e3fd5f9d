"""Scores that begin near a dense model: their mask is the nearest one, and the scores are those that a run draws."""

from __future__ import annotations

import dataclasses
from itertools import product

import numpy as np
import pytest
from flax.traverse_util import flatten_dict

from one_layer.models import initialize
from one_layer.models.sharding import fetch
from one_layer.supermask import Supermask
from one_layer.system.errors import UserError
from one_layer.training.fine_tuning import source_of, start
from one_layer.training.nearest import nearest_scores
from tests import tiny

DEPTHS, ROWS, COLUMNS = 3, 3, 4


@pytest.fixture(scope="module")
def matrices():
    """Trained, random and drawn scores of three depths; the depths share the random weights."""
    random = np.random.default_rng(0)
    shapes = (DEPTHS, ROWS, COLUMNS), (ROWS, COLUMNS), (DEPTHS, ROWS, COLUMNS)
    return [random.normal(size=shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize(
    ("selection", "keep"), [("magnitude", 0.5), ("magnitude", 0.25), ("score", 0.75), ("sign", 1.0)]
)
def test_no_other_mask_is_nearer(matrices, selection, keep):
    weights, random, drawn = matrices
    mask = Supermask(keep, selection)
    scores = nearest_scores(weights, random, drawn, selection)
    values = (-1, 1) if selection == "sign" else (0, 1)
    masks = np.array(list(product(values, repeat=ROWS * COLUMNS)), np.float32).reshape(-1, ROWS, COLUMNS)
    for depth in range(DEPTHS):
        own = np.asarray(mask(scores[depth]))
        alike = masks if selection == "sign" else masks[masks.sum((1, 2)) == own.sum()]
        distances = np.square(random * alike - weights[depth]).sum((1, 2))
        assert np.square(random * own - weights[depth]).sum() == pytest.approx(distances.min(), rel=1e-5)


@pytest.mark.parametrize("selection", ["magnitude", "score", "sign"])
def test_the_scores_of_each_depth_are_those_that_were_drawn(matrices, selection):
    drawn, found = matrices[2], nearest_scores(*matrices, selection)
    for before, after in zip(drawn, found, strict=True):
        size = np.asarray if selection == "score" else np.abs
        np.testing.assert_array_equal(np.sort(size(after).ravel()), np.sort(size(before).ravel()))


def test_a_threshold_is_refused(matrices):
    with pytest.raises(UserError, match=r"model.selection=signed_threshold.*give magnitude, score, sign"):
        nearest_scores(*matrices, "signed_threshold")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"train.init_scores": "close"}, "train.init_scores is 'close'; give one of drawn, nearest"),
        ({"train.init_scores": "nearest"}, "train.init_from names no run"),
    ],
)
def test_a_wrong_value_is_a_sentence(changes, sentence):
    with pytest.raises(UserError, match=sentence):
        source_of(tiny.run(changes))


@pytest.mark.slow
def test_a_run_begins_near_a_dense_one(tmp_path_factory):
    run = tiny.run({"train.init_from": str(tiny.trained(tmp_path_factory)), "train.init_scores": "nearest"})
    masked = source_of(run)
    config = dataclasses.replace(masked.config, weights="dense", sharing="none", embedding="trained")
    dense = dataclasses.replace(masked, config=config, variables=fetch(initialize(config, run.seed)))
    corpus = run.task.corpus_in_vocabularies_of(dense, run.data)
    own = initialize(masked.config, run.seed)
    found, report = (
        flatten_dict(start(run, masked.config, corpus, dense).params),
        start(run, masked.config, corpus, dense).report,
    )
    theirs, random, drawn = (
        flatten_dict(dense.variables["params"]),
        flatten_dict(own["random"]),
        flatten_dict(own["params"]),
    )
    layers = [path for path in drawn if path[-1] == "scores" and "layers" in path]
    assert layers and any(line.startswith("scores near its weights: decoder/layers") for line in report)
    mask = Supermask(masked.config.keep)
    for path in layers:
        kernel = (*path[:-1], "kernel")
        before, after = (
            np.square(random[kernel] * np.stack([mask(depth) for depth in scores]) - theirs[kernel]).sum()
            for scores in (drawn[path], found[path])
        )
        assert after < before
    for key, value in (("coats", 2), ("dynamic_scale", True), ("score_init", "constant")):
        with pytest.raises(UserError, match=rf"model.{key} is {value}, for which the nearest masks cannot be found"):
            start(run, dataclasses.replace(masked.config, **{key: value}), corpus, dense)
    with pytest.raises(UserError, match=r"no trained matrix of .* has the place and the shape of scores"):
        start(run, masked.config, corpus, masked)

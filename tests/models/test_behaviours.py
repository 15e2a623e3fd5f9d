"""Every behaviour that a model's config can ask for, in whole models: their numbers, their gradients, what a preset resolves to."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.traverse_util import flatten_dict, unflatten_dict

from one_layer.data.special_tokens import PAD
from one_layer.layers.materializing import materialize
from one_layer.models import ModelConfig, build, initialize, recipes
from one_layer.tasks.losses import label_smoothed_nll
from tests import mostly_slow, numpy_transformer
from tests.compiling import jit

TINY = ModelConfig(11, 13, d_model=8, ffn=12, heads=2, encoder_layers=2, decoder_layers=3)
SOURCE = np.array([[4, 5, 6, 7, 8, 2], [1, 1, 9, 10, 3, 2]])
TARGET = np.array([[2, 5, 6, 7, 8], [2, 9, 10, 1, 1]])
TARGET_OUT = np.array([[5, 6, 7, 8, 2], [9, 10, 2, 1, 1]])
CLOSE = {"rtol": 2e-5, "atol": 2e-5}

# Each model has several behaviours, so that few programs are compiled.
MODELS = {
    "one mask for several layers, ranked by the score": {
        "weights": "multi_layer",
        "sharing": "masks",
        "selection": "score",
        "keep": 0.3,
        "norm": "affine",
        "share_norm_scale": True,
    },
    "thresholds, scaled to what they keep, and frozen norms": {
        "selection": "threshold",
        "threshold": 0.05,
        "dynamic_scale": True,
        "norm": "frozen",
        "bias": True,
    },
    "signed masks between frozen tables": {
        "selection": "signed_threshold",
        "threshold": 0.1,
        "embedding": "frozen",
        "init_scheme": "unsigned_constant",
        "norm": "affine",
        "bias": True,
    },
    "sigmoids, and masks over tables from elsewhere": {
        "selection": "sigmoid_threshold",
        "threshold": 0.52,
        "embedding_path": "somewhere",
        "init_preset": "reference",
        "norm": "affine",
    },
}


def make(changes: dict[str, Any]) -> tuple[ModelConfig, dict[str, Any]]:
    """A config and its variables, with noise where 0 or 1 would hide that an array is not used, and where there was nothing yet."""
    config, noise = TINY.replace(**changes), np.random.default_rng(1)
    flat = flatten_dict(initialize(config, 7))
    for path, leaf in flat.items():
        if path[-1] in ("bias", "scale"):
            flat[path] = leaf + noise.normal(0, 0.3, leaf.shape).astype(np.float32)
        if path[0] == "frozen" and path[-1] == "kernel":
            flat[path] = jnp.asarray(noise.normal(0, 0.4, leaf.shape), jnp.float32)
    return config, unflatten_dict(flat)


def loss_of(config: ModelConfig):
    model = build(config)

    def loss(params, fixed):
        logits = model.apply({"params": params, **fixed}, SOURCE, TARGET)
        return label_smoothed_nll(logits, TARGET_OUT, 0.1)[0], logits

    return jax.jit(jax.value_and_grad(loss, has_aux=True))


@pytest.fixture(scope="module", params=mostly_slow(MODELS, list(MODELS)[:1]))
def case(request):
    config, variables = make(MODELS[request.param])
    fixed = {name: tree for name, tree in variables.items() if name != "params"}
    (_, logits), gradient = loss_of(config)(variables["params"], fixed)
    return config, variables, logits, gradient


def test_logits_equal_the_plain_numpy_model(case):
    config, variables, logits, _ = case
    assert np.isfinite(logits).all()
    np.testing.assert_allclose(logits, numpy_transformer.logits(config, variables, SOURCE, TARGET), **CLOSE)


def test_masks_made_beforehand_give_the_same_logits(case):
    config, variables, logits, _ = case
    made = jit(lambda given: materialize(given, config.supermask))(variables)
    np.testing.assert_allclose(jit(build(config).apply)(made, SOURCE, TARGET), logits, **CLOSE)
    assert not [path for path in flatten_dict(made) if path[-1] == "scores"]


def test_packed_masks_give_the_same_logits(case):
    config, variables, logits, _ = case
    found = jit(build(config).apply)(packed(config, variables), SOURCE, TARGET)
    np.testing.assert_allclose(found, logits, **CLOSE)


def packed(config: ModelConfig, variables: dict[str, Any]) -> dict[str, Any]:
    """One bit a weight instead of scores, and one more for the sign where masks have signs; a row of bytes a layer."""
    flat = flatten_dict(variables)
    for path in [path for path in flat if path[-1] == "scores"]:
        scores = np.asarray(flat.pop(path))
        layers = {"encoder": config.encoder_layers, "decoder": config.decoder_layers}.get(path[1])
        matrices = [scores] * (layers or 1) if scores.ndim == 2 else scores
        masks = np.stack([numpy_transformer.mask_of(config, np.asarray(m, np.float64)).ravel() for m in matrices])
        for name, bits in (("mask", masks != 0), ("sign", masks < 0)):
            if name == "mask" or config.selection == "signed_threshold":
                rows = np.packbits(bits, axis=-1, bitorder="little")
                flat["packed", *path[1:-1], name] = rows if layers else rows[0]
    return unflatten_dict(flat)


def test_every_gradient_is_that_of_the_loss_in_numpy(case):
    """Of biases, scales and shifts by central differences of the float64 model, in two entries each; scores get a gradient at all."""
    config, variables, _, gradient = case
    rng = np.random.default_rng(0)
    for path, found in flatten_dict(gradient).items():
        assert np.asarray(found).any(), path
        if path[-1] == "scores":
            continue
        for place in rng.integers(0, found.shape, (2, found.ndim)):
            slope = difference(config, variables, ("params", *path), tuple(place))
            np.testing.assert_allclose(found[tuple(place)], slope, rtol=1e-3, atol=1e-4, err_msg="/".join(path))


def difference(config: ModelConfig, variables: dict[str, Any], path: tuple[str, ...], place: tuple[int, ...]) -> float:
    totals = []
    for step in (1e-4, -1e-4):
        moved = flatten_dict(variables)
        moved[path] = np.asarray(moved[path], np.float64)
        moved[path][place] += step
        logits = numpy_transformer.logits(config, unflatten_dict(moved), SOURCE, TARGET)
        log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        nll = -np.take_along_axis(log_p, TARGET_OUT[..., None], axis=-1)[..., 0]
        totals.append(((0.9 * nll - 0.1 * log_p.mean(axis=-1)) * (TARGET_OUT != PAD)).sum())
    return (totals[0] - totals[1]) / 2e-4


@pytest.mark.slow
def test_one_mask_for_all_layers_gets_the_sum_of_the_gradients_that_layers_of_their_own_would():
    config, variables = make(MODELS["one mask for several layers, ranked by the score"])
    own = config.replace(sharing="none", share_norm_scale=False)
    fixed = {"random": variables["random"]}
    shared, layers = flatten_dict(variables["params"]), flatten_dict(initialize(own, 7)["params"])
    repeated = unflatten_dict({path: jnp.broadcast_to(shared[path], leaf.shape) for path, leaf in layers.items()})
    ours = flatten_dict(loss_of(config)(variables["params"], fixed)[1])
    theirs = flatten_dict(loss_of(own)(repeated, fixed)[1])
    assert {path for path in ours if ours[path].ndim < theirs[path].ndim} >= {
        ("encoder", "layers", "ffn_in", "scores"),
        ("decoder", "layers", "ffn_norm", "layer_norm", "scale"),
    }
    for path, gradient in ours.items():
        expected = theirs[path].sum(axis=0) if gradient.ndim < theirs[path].ndim else theirs[path]
        np.testing.assert_allclose(gradient, expected, **CLOSE, err_msg="/".join(path))


def test_what_layers_share_has_no_layer_axis():
    shapes = {path[1:]: leaf.shape for path, leaf in flatten_dict(make(MODELS[next(iter(MODELS))])[1]).items()}
    assert shapes["decoder", "layers", "ffn_in", "scores"] == (8, 12)
    assert shapes["decoder", "layers", "ffn_in", "kernel"] == (3, 8, 12)
    assert shapes["decoder", "layers", "ffn_norm", "layer_norm", "scale"] == (8,)
    assert shapes["decoder", "layers", "ffn_norm", "layer_norm", "bias"] == (3, 8)


def test_tables_from_elsewhere_are_nobody_s_to_train_and_are_missed_where_they_are_not_given():
    variables = initialize(TINY.replace(embedding_path="somewhere", embedding="frozen"), 0)
    paths = set(flatten_dict(variables))
    assert ("frozen", "source_embedding", "kernel") in paths
    assert not [path for path in paths if path[0] != "frozen" and path[1].endswith("embedding")]
    assert np.isnan(jit(build(TINY.replace(embedding="frozen")).apply)(variables, SOURCE, TARGET)).all()


def test_the_reference_shares_the_scales_of_affine_norms_but_not_their_shifts():
    shapes = {}
    for preset in ("paper", "reference"):
        params = initialize(TINY.replace(init_preset=preset, norm="affine"), 0)["params"]
        norm = params["encoder"]["layers"]["ffn_norm"]["layer_norm"]
        shapes[preset] = norm["scale"].shape, norm["bias"].shape
    assert shapes == {"paper": ((2, 8), (2, 8)), "reference": ((8,), (2, 8))}


@pytest.mark.parametrize("shared", [False, True])
def test_tables_with_a_scheme_of_their_own_change_nothing_else(shared):
    same = TINY.replace(shared_embedding=shared, **({"target_vocab": TINY.source_vocab} if shared else {}))
    plain, own = recipes(same), recipes(same.replace(init_embedding="signed_constant"))
    changed = {path for path in plain if plain[path] != own[path]}
    assert changed == {path for path in plain if path[-1].endswith("embedding")} != set()
    assert {own[path] for path in changed} == {
        dataclasses.replace(plain[path], scheme="signed_constant") for path in changed
    }


@pytest.mark.parametrize("preset", ["paper", "reference"])
def test_attention_of_one_size_is_as_large_as_xavier_s(preset):
    """So a model of signs can have weights of one size, and differ in nothing else: the control of trained ±1 weights."""
    drawn, constant = (
        recipes(TINY.replace(init_preset=preset, init_attention=kind)) for kind in ("xavier", "xavier_constant")
    )
    changed = {path for path in drawn if drawn[path] != constant[path]}
    assert changed == {path for path in drawn if drawn[path].scheme == "xavier_uniform"} != set()
    assert all(constant[path] == dataclasses.replace(drawn[path], scheme="xavier_constant") for path in changed)


@pytest.mark.parametrize("preset", ["paper", "reference"])
def test_a_key_that_is_given_is_stronger_than_the_preset(preset):
    config = TINY.replace(init_preset=preset, init_attention="xavier", scale_by_keep=False)
    scales = {recipe.scale for recipe in recipes(config).values()}
    assert scales == {1.0, math.sqrt(0.5)}

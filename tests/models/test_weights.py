"""Every variable is trained, masked or random by its collection, comes from the seed alone, and nothing else exists."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.traverse_util import flatten_dict

from one_layer.initializers import SCHEMES
from one_layer.models import ModelConfig, build, initialize, recipes
from tests.trees import same_bits

TINY = ModelConfig(11, 13, d_model=8, ffn=12, heads=2, encoder_layers=2, decoder_layers=3)
WIDE = TINY.replace(source_vocab=90, target_vocab=110, d_model=64, ffn=160, heads=4, encoder_layers=1, decoder_layers=1)
ROLES = {
    *(
        f"{side}/self_attention/{name}"
        for side in ("encoder", "decoder")
        for name in ("query", "key", "value", "output")
    ),
    *(f"decoder/cross_attention/{name}" for name in ("query", "key", "value", "output")),
    *(f"{side}/{name}" for side in ("encoder", "decoder") for name in ("ffn/in", "ffn/out", "embedding")),
}
# Every value of every option, in few enough models.
OPTIONS = [
    {"weights": "one_layer"},
    {"weights": "one_layer", "keep": 1.0},
    {"weights": "one_layer", "keep": 1.0, "embedding": "trained", "norm": "affine", "bias": True},
    {"weights": "one_layer", "embedding": "frozen", "norm": "affine"},
    {"weights": "one_layer", "embedding": "trained", "bias": True},
    {"weights": "one_layer", "shared_embedding": True, "source_vocab": 13},
    {"weights": "multi_layer"},
    {"weights": "multi_layer", "keep": 1.0, "embedding": "frozen"},
    {"weights": "multi_layer", "embedding": "trained", "norm": "affine", "bias": True, "remat": True},
    {"weights": "dense"},
    {"weights": "dense", "embedding": "frozen", "norm": "plain", "bias": False},
    {"weights": "dense", "shared_embedding": True, "source_vocab": 13, "keep": 1.0, "dtype": "bfloat16"},
]


def describe(tree) -> dict:
    return {path: (leaf.shape, leaf.dtype) for path, leaf in flatten_dict(tree).items()}


@pytest.mark.parametrize("changes", OPTIONS, ids=str)
def test_the_tree_is_the_one_that_the_modules_declare_and_has_no_other_collection(changes):
    config = TINY.replace(**{"embedding": None, "norm": None, "bias": None, **changes})
    source, target = jnp.ones((2, 4), jnp.int32), jnp.ones((2, 5), jnp.int32)
    variables = initialize(config, 0)
    assert set(variables) == {"params", "random"}
    assert describe(variables) == describe(jax.eval_shape(build(config).init, jax.random.key(0), source, target))
    assert {leaf.dtype for leaf in jax.tree.leaves(variables)} == {jnp.dtype("float32")}
    for path, leaf in flatten_dict(variables).items():
        trained = path[-1] in ("scores", "bias", "scale") or (path[0] == "params" and path[-1] == "kernel")
        assert trained == (path[0] == "params"), path
        assert np.isfinite(leaf).all()


def test_the_random_collection_is_a_function_of_the_seed_and_its_own_recipe_alone():
    before = initialize(TINY, 3)
    same_bits(initialize(TINY, 3), before)
    for path, leaf in flatten_dict(initialize(TINY, 4)).items():
        assert not np.array_equal(leaf, flatten_dict(before)[path])
    # Neither more layers nor what concerns training alone moves a shared weight.
    other = TINY.replace(encoder_layers=5, decoder_layers=1, heads=4, dropout=0.5, norm="affine", bias=True, remat=True)
    same_bits(initialize(other, 3)["random"], before["random"])
    for stack in ("encoder", "decoder"):
        deep, shallow = (
            initialize(TINY.replace(weights="multi_layer", encoder_layers=n, decoder_layers=n), 3) for n in (5, 2)
        )
        same_bits(
            jax.tree.map(lambda leaf: leaf[:2], (deep["random"][stack], deep["params"][stack])),
            (shallow["random"][stack], shallow["params"][stack]),
        )


def test_no_two_matrices_are_alike():
    """Signs betray two matrices drawn from one stream whatever their scales."""
    for weights in ("one_layer", "multi_layer", "dense"):
        seen = set()
        variables = initialize(TINY.replace(weights=weights, embedding=None, norm=None, bias=None), 0)
        for path, leaf in flatten_dict(variables).items():
            if path[-1] in ("kernel", "scores"):
                for matrix in np.asarray(leaf).reshape(-1, *leaf.shape[-2:]):
                    signs = np.sign(matrix[2:]).ravel()[:40].tobytes()
                    assert signs not in seen, path
                    seen.add(signs)


def test_the_roles_are_these():
    assert {recipe.role for recipe in recipes(TINY).values()} == ROLES


def bounds(config: ModelConfig) -> dict[str, float]:
    """The largest magnitude of every random or dense matrix, by the last part of its path."""
    variables = initialize(config, 0)
    found: dict[str, float] = {}
    for path, leaf in flatten_dict(variables).items():
        if path[-1] == "kernel":
            found[path[-2]] = max(found.get(path[-2], 0.0), float(np.abs(leaf).max()))
    return found


def close_below(found: dict[str, float], expected: dict[str, float]) -> None:
    """Thousands of uniform draws come within 2 % of their bound and never pass it."""
    assert found.keys() == expected.keys()
    for name, bound in expected.items():
        assert 0.98 * bound < found[name] <= bound * (1 + 1e-6), name


@pytest.mark.parametrize(("keep", "scaled"), [(0.5, True), (0.2, True), (0.2, False), (1.0, True)])
def test_the_paper_s_preset_is_kaiming_uniform_with_the_keep_scaling(keep, scaled):
    root = math.sqrt(1 / keep) if scaled else 1.0
    d = root * math.sqrt(6 / 64)
    names = ("query", "key", "value", "output", "ffn_in", "source_embedding", "target_embedding")
    config = WIDE.replace(keep=keep, scale_by_keep=scaled)
    close_below(bounds(config), {**dict.fromkeys(names, d), "ffn_out": root * math.sqrt(6 / 160)})


@pytest.mark.parametrize("preset", ["paper", "reference"])
def test_what_masks_leave_out_is_made_up_for_once(preset):
    """By the scale of the weights, by that of the masks, or in preset `reference` not at all unless the masks do it."""
    config = WIDE.replace(keep=0.2, dynamic_scale=True, init_preset=preset)
    assert not config.scale_by_keep and config.replace(scale_by_keep=True).scale_by_keep
    assert config.replace(dynamic_scale=False).scale_by_keep == (preset == "paper")


def test_the_reference_preset_is_what_the_code_does():
    attention = dict.fromkeys(("query", "key", "value"), math.sqrt(1.5 / 64)) | {"output": math.sqrt(3 / 64)}
    kaiming = dict.fromkeys(("ffn_in", "source_embedding", "target_embedding"), math.sqrt(6 / 64))
    config = WIDE.replace(keep=0.2, init_preset="reference")
    close_below(bounds(config), attention | kaiming | {"ffn_out": math.sqrt(6 / 160)})
    # "whatever `init` says"
    constant = bounds(config.replace(init_scheme="signed_constant"))
    close_below({name: constant[name] for name in attention}, attention)
    assert constant["ffn_in"] == pytest.approx(math.sqrt(2 / 64))


def test_embeddings_have_a_zero_row_at_pad_in_the_reference_and_in_dense_models():
    for config, zero in [
        (WIDE.replace(init_preset="reference"), True),
        (WIDE.replace(weights="dense", embedding=None, norm=None, bias=None), True),
        (WIDE, False),
    ]:
        variables = flatten_dict(initialize(config, 0))
        for path, leaf in variables.items():
            if path[-2].endswith("embedding") and path[-1] == "kernel":
                assert (not np.asarray(leaf[1]).any()) == zero
                assert np.asarray(leaf[0]).any() and np.asarray(leaf[2]).any()
            if path[-1] == "scores":
                assert np.asarray(leaf).all(), "the scores of that row are ranked with the rest"


def test_a_frozen_embedding_is_not_widened_for_a_mask_that_it_has_not():
    found = bounds(WIDE.replace(keep=0.2, embedding="frozen"))
    assert found["source_embedding"] == pytest.approx(math.sqrt(6 / 64), rel=0.02)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_reaches_every_matrix(scheme):
    variables = initialize(WIDE.replace(init_scheme=scheme, keep=0.25), 0)
    fans = {"ffn_in": (64, 160), "ffn_out": (160, 64), "source_embedding": (64, 90), "target_embedding": (64, 110)}
    for path, leaf in flatten_dict(variables["random"]).items():
        fan_in, fan_out = fans.get(path[-2], (64, 64))
        variance = {"kaiming": 2 / fan_in, "xavier": 2 / (fan_in + fan_out), "normal": 1 / leaf.shape[-1]}.get(
            scheme.split("_")[0], 2 / fan_in
        )
        expected = 2 * math.sqrt(variance)  # √(1/keep) is 2
        assert np.sqrt(np.mean(np.asarray(leaf) ** 2)) == pytest.approx(expected, rel=0.05), path


def test_scores_are_uniform_within_one_over_the_root_of_their_fan_in_and_each_layer_s_own():
    for weights in ("one_layer", "multi_layer"):
        for preset in ("paper", "reference"):
            config = WIDE.replace(weights=weights, init_preset=preset, encoder_layers=2, keep=0.2)
            for path, leaf in flatten_dict(initialize(config, 0)["params"]).items():
                fan_in = 160 if path[-2] == "ffn_out" else 64
                assert 0.98 / math.sqrt(fan_in) < np.abs(leaf).max() <= (1 + 1e-6) / math.sqrt(fan_in)
                assert np.std(leaf) == pytest.approx(1 / math.sqrt(3 * fan_in), rel=0.05)
                if path[0] == "encoder":
                    assert not np.array_equal(leaf[0], leaf[1])


def test_a_dense_model_starts_as_fairseq_s_does():
    config = WIDE.replace(weights="dense", embedding=None, norm=None, bias=None)
    found = bounds(config)
    expected = dict.fromkeys(("query", "key", "value"), math.sqrt(1.5 / 64)) | {"output": math.sqrt(3 / 64)}
    expected |= dict.fromkeys(("ffn_in", "ffn_out"), math.sqrt(6 / (64 + 160)))
    close_below({name: found[name] for name in expected}, expected)
    params = initialize(config, 0)["params"]
    assert np.std(np.asarray(params["source_embedding"]["kernel"][2:])) == pytest.approx(64**-0.5, rel=0.03)
    for path, leaf in flatten_dict(params).items():
        if path[-1] in ("bias", "scale"):
            np.testing.assert_array_equal(leaf, np.full(leaf.shape, float(path[-1] == "scale")))

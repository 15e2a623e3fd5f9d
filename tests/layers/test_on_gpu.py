"""What a program for a GPU does otherwise than one for a CPU, computed here in float32: the same numbers, up to the order of sums."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer.layers.dropout import Drop, streams
from one_layer.layers.matrix import Projection, project_together
from one_layer.layers.products import product, shared_out
from one_layer.models import ModelConfig, build, initialize
from one_layer.platform import compiling_for, on_gpu
from one_layer.supermask import Supermask
from one_layer.tasks.losses import label_smoothed_nll
from one_layer.training.row_keys import of_rows
from tests import mostly_slow

PLACES = ("cpu", "cuda")


@pytest.mark.parametrize("platform", ["gpu", "cuda", "rocm"])
def test_every_maker_of_gpus_counts(platform):
    with compiling_for(platform):
        assert on_gpu()


@pytest.mark.parametrize(
    "key", [jax.random.key(2), of_rows(jax.random.key(2), jnp.int32(1))], ids=["all rows", "own rows"]
)
def test_dropout_has_the_same_bits_and_its_gradient_drops_the_same_numbers(key):
    x, upstream = (jax.random.normal(jax.random.key(seed), (6, 40)) for seed in range(2))
    found = {}
    for platform in PLACES:
        with compiling_for(platform):
            y, pull_back = jax.vjp(lambda x: Drop(0.3).apply({}, x, rngs={"dropout": key}), x)
            found[platform] = y, *pull_back(upstream)
    for expected, there in zip(found["cpu"], found["cuda"], strict=True):
        np.testing.assert_array_equal(there == 0, expected == 0)
        np.testing.assert_allclose(there, expected, rtol=1e-6)
    y, gradient = found["cuda"]
    np.testing.assert_array_equal(gradient == 0, y == 0)
    assert 0 < np.sum(y == 0) < y.size


class Three(nn.Module):
    """Three projections of one input."""

    bias: bool

    @nn.compact
    def __call__(self, x):
        made = [Projection(4, "trained", Supermask(0.5), self.bias, "float32", name=name) for name in "abc"]
        return project_together(made, x)


@pytest.mark.parametrize("bias", [False, True])
def test_projections_that_are_computed_together_are_those_of_each(bias):
    x = jax.random.normal(jax.random.key(0), (2, 3, 5))
    variables = Three(bias).init(jax.random.key(1), x)
    leaves = jax.tree.leaves(variables)
    drawn = [jax.random.normal(jax.random.key(number), leaf.shape) for number, leaf in enumerate(leaves)]
    variables = jax.tree.unflatten(jax.tree.structure(variables), drawn)
    found = {}
    for platform in PLACES:
        with compiling_for(platform):
            y, pull_back = jax.vjp(Three(bias).apply, variables, x)
            found[platform] = y, pull_back([(1.0 + number) * jnp.cos(each) for number, each in enumerate(y)])
    jax.tree.map(lambda here, there: np.testing.assert_allclose(there, here, rtol=1e-5, atol=1e-5), *found.values())


def test_projections_whose_columns_devices_share_out_stay_apart():
    x = jnp.ones((2, 3, 5))
    with compiling_for("cuda"), shared_out(lambda array: array):
        program = str(jax.make_jaxpr(lambda x: Three(False).init_with_output(jax.random.key(1), x)[0])(x))
    assert program.count("dot_general") == 3


def test_a_result_in_bfloat16_is_the_rounded_sum():
    x, y = (jax.random.normal(jax.random.key(seed), shape) for seed, shape in enumerate([(3, 300), (300, 5)]))
    whole = product("...i,io->...o", x, y, "bfloat16")
    found, pull_back = jax.vjp(lambda *given: product("...i,io->...o", *given, "bfloat16", "bfloat16"), x, y)
    np.testing.assert_array_equal(found, whole.astype(jnp.bfloat16))
    assert [each.dtype for each in pull_back(jnp.ones_like(found))] == [jnp.float32, jnp.float32]


MODELS = [
    {"weights": "dense"},
    {},
    {"block": "modern", "norm_position": "pre"},
    {"remat": True},
    {"encoder_layers": "LR", "layerdrop": 0.01},
]


@pytest.mark.parametrize("options", mostly_slow(MODELS, MODELS[:1]), ids=str)
def test_loss_and_gradient_of_a_whole_model_are_the_same(options):
    """With dropout, over layers in a scan there and here: one is unrolled. There, the backward pass has a stream of its own."""
    shape = {"d_model": 8, "ffn": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 1}
    config = ModelConfig(11, 13, **{**shape, **options}, dropout=0.3)
    source, target = np.array([[5, 6, 7, 2], [8, 2, 1, 1]]), np.array([[4, 9, 2], [12, 2, 1]])
    target_in = np.array([[2, 4, 9], [2, 12, 1]])
    variables = initialize(config, seed=1)

    def loss(params):
        given = {**variables, "params": params}
        logits = build(config).apply(given, source, target_in, rngs=streams(jax.random.key(0)))
        return label_smoothed_nll(logits, target, 0.1)[0]

    found = {}
    for platform in PLACES:
        with compiling_for(platform):
            found[platform] = jax.jit(jax.value_and_grad(loss))(variables["params"])
    jax.tree.map(lambda here, there: np.testing.assert_allclose(there, here, rtol=1e-4, atol=1e-4), *found.values())

"""The scan over one shared layer is the plain loop over its layers, one set of masks each."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer.layers.blocks import DecoderLayer, EncoderLayer, Layer
from one_layer.layers.dropout import Drop
from one_layer.layers.groups import with_loops
from one_layer.layers.stack import Stack
from one_layer.models import ModelConfig, initialize
from tests import mostly_slow
from tests.compiling import jit
from tests.tiny_tickets import shaken

LAYERS = 3
BASE = ModelConfig(11, 13, d_model=8, ffn=12, heads=2, encoder_layers=LAYERS, decoder_layers=LAYERS)
RNG = np.random.default_rng(0)
X, ENCODED = (jnp.asarray(RNG.standard_normal(shape), jnp.float32) for shape in ((2, 5, 8), (2, 4, 8)))
SEEN = jnp.asarray([[1, 1, 1, 1, 0], [0, 0, 1, 1, 1]], bool)[:, None, None]
WORDS = jnp.asarray([[1, 1, 1, 1], [0, 1, 1, 1]], bool)[:, None, None]
PAST = jnp.tril(jnp.ones((5, 5), bool))[None, None]
CASES = {"encoder": (EncoderLayer, (SEEN,)), "decoder": (DecoderLayer, (ENCODED, PAST, WORDS, None))}


def stack_of(config: ModelConfig, side: str) -> Stack:
    return Stack(CASES[side][0], config.stack(side))


def variables_of(config: ModelConfig, side: str) -> dict:
    """The variables of one side of the whole model, with no zeros or ones among them that could hide a mistake."""
    return shaken({name: tree[side] for name, tree in initialize(config, 0).items() if side in tree})


def of_layer(config: ModelConfig, variables: dict, layer: int) -> dict:
    """What layer number `layer` sees: its own row of `params`, and of `random` unless that is shared."""
    own = {"params"} if config.weights == "one_layer" else {"params", "random"}
    return {
        name: jax.tree.map(lambda array: array[layer], tree)["layers"] if name in own else tree["layers"]
        for name, tree in variables.items()
    }


def layer_of(config):
    return config.stack("encoder").groups[0].layer


@pytest.mark.parametrize("side", CASES)
@pytest.mark.parametrize("weights", mostly_slow(["one_layer", "multi_layer", "dense"], ["one_layer", "dense"]))
def test_the_scan_equals_the_loop(weights, side):
    config = BASE.replace(weights=weights, embedding=None, norm=None, bias=None)
    kind, rest = CASES[side]
    variables = variables_of(config, side)
    stack = stack_of(config, side)

    @jit
    def scanned(variables):
        y, state = stack.apply(variables, X, *rest, mutable=["intermediates"])
        return y, state["intermediates"]["layers"]["output"][0]

    one = jit(lambda variables, x: kind(layer_of(config)).apply(variables, x, *rest))
    y, outputs = scanned(variables)
    x = X
    for layer in range(LAYERS):
        x = one(of_layer(config, variables, layer), x)
        np.testing.assert_allclose(outputs[layer], x, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(y, x, rtol=1e-5, atol=1e-5)
    if config.norm == "plain":  # post-LN: whatever leaves a layer is normalised
        np.testing.assert_allclose(outputs.mean(axis=-1), 0.0, atol=1e-5)
        np.testing.assert_allclose(outputs.std(axis=-1), 1.0, atol=1e-3)


@pytest.mark.slow
def test_rematerialisation_changes_no_number_even_under_dropout():
    config = BASE.replace(dropout=0.2)
    variables, found = variables_of(config, "encoder"), []
    for remat in (False, True):
        stack = stack_of(config.replace(remat=remat), "encoder")

        def loss(params, x, stack=stack):
            y = stack.apply({**variables, "params": params}, x, SEEN, rngs={"dropout": jax.random.key(3)})
            return jnp.sum(y[..., 0] ** 2)

        found.append(jit(jax.value_and_grad(loss, (0, 1)))(variables["params"], X))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5), *found)


@pytest.mark.slow
def test_rematerialisation_saves_memory():
    """What the backward pass keeps, as XLA counts it, falls by more than half in a stack of many layers."""
    config = ModelConfig(11, 13, d_model=32, ffn=64, heads=4, encoder_layers=8, decoder_layers=1, weights="dense")
    variables = jax.eval_shape(lambda: {"params": initialize(config, 0)["params"]["encoder"]})
    x, seen = jnp.ones((16, 24, 32)), jnp.ones((16, 1, 1, 24), bool)
    sizes = []
    for remat in (False, True):
        stack = Stack(EncoderLayer, config.replace(remat=remat).stack("encoder"))
        gradient = jit(jax.grad(lambda v, stack=stack: stack.apply(v, x, seen).sum()))
        sizes.append(gradient.lower(variables).compile().memory_analysis().temp_size_in_bytes)
    assert sizes[1] < sizes[0] / 2


@pytest.mark.parametrize("pattern", mostly_slow([4, "RLRL"], [4]))
@pytest.mark.parametrize(
    ("changes", "platform", "loop"),
    [
        ({"dtype": "bfloat16"}, "cpu", False),
        ({"dtype": "bfloat16", "remat": True}, "cpu", True),
        ({"dtype": "float32"}, "cpu", True),
        ({"dtype": "bfloat16"}, "gpu", False),
        ({"dtype": "float32"}, "gpu", False),
        ({"dtype": "bfloat16", "remat": True}, "gpu", True),
        ({"dtype": "bfloat16"}, "tpu", True),
    ],
)
@pytest.mark.parametrize("kept", [False, True])
def test_where_a_program_has_a_loop_over_layers(monkeypatch, pattern, changes, platform, loop, kept):
    """See `StackSettings.unrolled` for the reasons. Short runs keep all loops on GPUs alone."""
    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    config = BASE.replace(weights="dense", encoder_layers=pattern, **changes)
    variables = jax.eval_shape(lambda: variables_of(config, "encoder"))
    stack, x = stack_of(config, "encoder"), X.astype(config.dtype)
    with with_loops(kept):
        program = jax.make_jaxpr(jax.grad(lambda v: stack.apply(v, x, SEEN).astype(float).sum()))(variables)
    scans = [each.params for each in program.eqns if each.primitive.name == "scan"]
    assert scans, "the layers are no scan"
    assert {each["unroll"] < each["length"] for each in scans} == {loop or (kept and platform == "gpu")}


class Dropping(Layer):
    """Nothing but dropout."""

    @nn.compact
    def __call__(self, x):
        return Drop(0.5)(x)


def test_every_layer_drops_entries_of_its_own():
    x = jnp.ones((100, 100, 8))
    y = Stack(Dropping, BASE.replace(encoder_layers=2).stack("encoder")).apply(
        {}, x, rngs={"dropout": jax.random.key(0)}
    )
    assert np.mean(np.asarray(y) == 0) == pytest.approx(0.75, abs=0.01)


@pytest.mark.parametrize("name", mostly_slow(["dropout", "attention_dropout", "activation_dropout"], ["dropout"]))
def test_each_kind_of_dropout_acts_in_training_alone(name):
    config = BASE.replace(**{name: 0.5})
    variables = of_layer(config, variables_of(config, "encoder"), 0)
    training = jit(lambda v, key: EncoderLayer(layer_of(config)).apply(v, X, SEEN, rngs={"dropout": key}))
    first, again, other = (np.asarray(training(variables, jax.random.key(seed))) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.01
    evaluation = [jit(lambda v, c=c: EncoderLayer(layer_of(c)).apply(v, X, SEEN))(variables) for c in (config, BASE)]
    np.testing.assert_array_equal(*evaluation)
    assert np.abs(first - evaluation[0]).max() > 0.01

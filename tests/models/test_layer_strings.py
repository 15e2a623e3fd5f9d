"""Models of unlike layers: updatable layers, reservoirs of every kind, and masked layers."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.traverse_util import flatten_dict
from jax.interpreters import partial_eval as pe

from one_layer.layers.blocks import DecoderLayer, EncoderLayer
from one_layer.layers.groups import layers_apart
from one_layer.layers.matrix import Norm
from one_layer.layers.mixed import run_mixed
from one_layer.layers.stack import Stack
from one_layer.models import ModelConfig, build, initialize
from one_layer.models.flops import update_flops
from tests import mostly_slow, user_error
from tests.compiling import equations, jit
from tests.layers.test_stack import variables_of
from tests.models.test_translation import CLOSE, SOURCE, TARGET, token_by_token

SIZES = {"d_model": 8, "ffn": 12, "heads": 2}
KINDS = [
    {"reservoir": "transformer"},
    {"reservoir": "ffn", "norm_position": "pre"},
    {"reservoir": "gru"},
    {"reservoir": "conv"},
    {"reservoir": "conv", "norm_position": "pre"},
]
X = jnp.asarray(np.random.default_rng(0).standard_normal((2, 6, 8)), jnp.float32)
REAL = np.array([[1, 1, 1, 1, 0, 0], [0, 1, 1, 1, 1, 1]], bool)
SEEN = jnp.asarray(REAL)[:, None, None]
PAST = jnp.tril(jnp.ones((6, 6), bool))[None, None] & SEEN
ENCODER, DECODER = (EncoderLayer, (SEEN,)), (DecoderLayer, (X[:, :4], PAST, SEEN[..., :4], None))


def model(**changes: Any) -> ModelConfig:
    return ModelConfig(11, 13, **{**SIZES, "weights": "dense", "decoder_layers": 1, "encoder_layers": 1, **changes})


STRINGS = [
    {"encoder_layers": "LRLRL", "norm_position": "pre"},
    {"encoder_layers": "SLSSR", "weights": "one_layer", "reservoir": "ffn"},
    {"encoder_layers": "RSRSSL", "weights": "multi_layer", "sharing": "masks", "reservoir": "conv"},
    {"encoder_layers": "LLRL", "share_norm_scale": True, "remat": True},
]


@pytest.mark.parametrize("changes", mostly_slow(STRINGS, STRINGS[1:2]), ids=str)
def test_segments_compute_the_layers_one_by_one(changes):
    config = model(**changes)
    settings, variables = config.stack("encoder"), variables_of(config, "encoder")
    found = jit(Stack(EncoderLayer, settings).apply)(variables, X, SEEN)
    x = X
    for layer, own in layers_apart(variables, settings):
        x = EncoderLayer(layer).apply(own, x, SEEN)
    if settings.final_norm:
        ends = {name: tree["final_norm"] for name, tree in variables.items() if "final_norm" in tree}
        x = Norm(settings.final_norm, "float32").apply(ends, x)
    np.testing.assert_allclose(found, x, **CLOSE)


def test_layers_that_are_alike_are_one_scan_or_segments_with_the_same_numbers():
    config = model(encoder_layers=3, weights="one_layer")
    variables = variables_of(config, "encoder")
    scanned = jit(Stack(EncoderLayer, config.stack("encoder")).apply)(variables, X, SEEN)
    cut, _ = jit(lambda v: run_mixed(EncoderLayer, config.stack("encoder"), v, X, (SEEN,), {}, []))(variables)
    np.testing.assert_allclose(cut, scanned, **CLOSE)


def test_a_string_of_the_usual_letter_is_the_number():
    for weights, letter in (("dense", "L"), ("one_layer", "S")):
        by_number, by_string = (model(weights=weights, encoder_layers=value) for value in (3, 3 * letter))
        jax.tree.map(np.testing.assert_array_equal, initialize(by_number, 1), initialize(by_string, 1))
        assert by_number.stack("encoder") == by_string.stack("encoder")


def test_added_reservoirs_change_no_other_weight():
    alone, more = (flatten_dict(initialize(model(encoder_layers=value), 1)) for value in ("LLL", "LRLRL"))
    assert {path for path in more.keys() - alone.keys() if "reservoir" not in path} == set()
    for path, array in alone.items():
        np.testing.assert_array_equal(more[path], array)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
@pytest.mark.parametrize("kind", mostly_slow(KINDS, [KINDS[0], *KINDS[2:4]]), ids=str)
def test_no_output_depends_on_pads_or_on_later_tokens(kind, side):
    """The gradient of each real position's output is zero at pads and, in a decoder, at later positions; it is not zero elsewhere
    where the kind connects the positions."""
    config = model(**{f"{side}_layers": "R", **kind})
    layer, rest = ENCODER if side == "encoder" else DECODER
    stack, variables = Stack(layer, config.stack(side)), variables_of(config, side)
    weights = jnp.asarray(np.random.default_rng(2).standard_normal(8), jnp.float32)  # of a sum that a norm leaves alone
    jacobian = jit(jax.jacrev(lambda x: stack.apply(variables, x, *rest) @ weights))(X)  # [batch, out, batch, in, d]
    reach = np.abs(np.asarray(jacobian)).max(axis=-1)
    for row in range(2):
        for out in np.flatnonzero(REAL[row]):
            seen = reach[row, out, row] > 1e-9
            allowed = REAL[row] & ((np.arange(6) <= out) if side == "decoder" else True)
            assert not np.any(seen & ~allowed)
            assert seen[out]
            if kind["reservoir"] in ("transformer", "gru"):
                assert np.all(seen[allowed])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_decoding_token_by_token_equals_the_whole(kind):
    """States of layers follow the beams, whatever the beams do."""
    config = model(decoder_layers="RLR", **kind)
    variables = initialize(config, 7)
    found, tokens = token_by_token(config, variables, 5, beams=2)
    whole = jit(build(config).apply)
    for beam in range(2):
        np.testing.assert_allclose(found[beam::2], whole(variables, SOURCE, tokens[beam::2]), **CLOSE)


def gradient_of(config: ModelConfig, variables: dict[str, Any]) -> Any:
    """The jitted gradient of a sum of the encoder's output, by its parameters and by its input."""
    stack = Stack(EncoderLayer, config.stack("encoder"))

    def loss(params: Any, x: jax.Array) -> jax.Array:
        y = stack.apply({**variables, "params": params}, x, SEEN, rngs={"dropout": jax.random.key(0)})
        return jnp.sum(y[..., ::2] ** 2)

    return jit(jax.grad(loss, (0, 1)))


@pytest.mark.slow
def test_backskipping_passes_the_gradient_on_and_computes_nothing():
    """With an identity in place of its backward pass, a reservoir between two layers is as if it were not there, backwards."""
    config = model(encoder_layers="LRL")
    variables = variables_of(config, "encoder")
    (first, own), (reservoir, fixed), (last, others) = layers_apart(variables, config.stack("encoder"))
    down = EncoderLayer(first).apply(own, X, SEEN)
    through, pull = jax.vjp(
        lambda x: EncoderLayer(last).apply(others, x, SEEN), EncoderLayer(reservoir).apply(fixed, down, SEEN)
    )
    _, pull_first = jax.vjp(lambda x: EncoderLayer(first).apply(own, x, SEEN), X)
    expected = pull_first(pull(jax.grad(lambda y: jnp.sum(y[..., ::2] ** 2))(through))[0])[0]

    skipped = gradient_of(config.replace(backskip="identity"), variables)
    np.testing.assert_allclose(skipped(variables["params"], X)[1], expected, rtol=1e-4, atol=1e-5)

    products = [
        gradient_of(config.replace(backskip=backskip), variables)
        .lower(variables["params"], X)
        .compile()
        .as_text()
        .count(" dot(")
        for backskip in ("off", "identity")
    ]
    assert products[1] < products[0]


SKIPPING = ["R", "RLR", "LRRL"]


@pytest.mark.parametrize("pattern", mostly_slow(SKIPPING, SKIPPING[:1]))
@pytest.mark.parametrize("reservoir", mostly_slow(["transformer", "ffn"], ["transformer"]))
def test_backskipping_gives_an_encoder_its_true_gradient(pattern, reservoir):
    """By `identity`, a reservoir is x + R(stop(x), encoded) - stop(x): of its two inputs, only `x` has an approximate gradient."""
    config = model(decoder_layers=pattern, reservoir=reservoir, backskip="identity")
    settings, variables = config.stack("decoder"), variables_of(config, "decoder")

    def loss(output: Any) -> Any:
        return lambda params, x, encoded: jnp.sum(output({**variables, "params": params}, x, encoded)[..., ::2] ** 2)

    def program(variables: Any, x: jax.Array, encoded: jax.Array) -> jax.Array:
        return Stack(DecoderLayer, settings).apply(
            variables, x, encoded, *DECODER[1][1:], rngs={"dropout": jax.random.key(0)}
        )

    def formula(variables: Any, x: jax.Array, encoded: jax.Array) -> jax.Array:
        for layer, own in layers_apart(variables, settings):
            skips, stopped = layer.kind == "fixed", jax.lax.stop_gradient(x)
            y = DecoderLayer(layer).apply(own, stopped if skips else x, encoded, *DECODER[1][1:])
            x = x + y - stopped if skips else y
        return x

    given = variables.get("params", {}), X, X[:, :4] / 2
    found, expected = (jit(jax.grad(loss(each), (0, 1, 2)))(*given) for each in (program, formula))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), found, expected)
    assert np.any(found[2]) == (reservoir == "transformer" or "L" in pattern)


def test_layerdrop_leaves_out_whole_layers_in_training_alone():
    config = model(encoder_layers="LRL", layerdrop=0.4)
    variables = variables_of(config, "encoder")
    layers = [
        partial(EncoderLayer(settings).apply, own) for settings, own in layers_apart(variables, config.stack("encoder"))
    ]
    subsets = {}
    for kept in range(8):
        x = X
        for number, layer in enumerate(layers):
            x = layer(x, SEEN) if kept >> number & 1 else x
        subsets[kept] = np.asarray(x)
    apply = jit(
        lambda key: Stack(EncoderLayer, config.stack("encoder")).apply(variables, X, SEEN, rngs={"dropout": key})
    )
    seen = []
    for seed in range(60):
        y = np.asarray(apply(jax.random.key(seed)))
        seen.append([kept for kept, x in subsets.items() if np.allclose(x, y, **CLOSE)])
    assert all(len(each) == 1 for each in seen)
    kept = np.mean([bin(each[0]).count("1") / 3 for each in seen])
    assert kept == pytest.approx(0.6, abs=0.15)
    whole = Stack(EncoderLayer, config.stack("encoder")).apply(variables, X, SEEN)
    np.testing.assert_allclose(whole, subsets[7], **CLOSE)


def test_the_program_does_not_grow_with_depth():
    sizes = []
    for depth in (2, 6):
        config = model(encoder_layers="LR" * depth)
        variables = variables_of(config, "encoder")
        program = gradient_of(config, variables).lower(variables["params"], X).as_text()
        sizes.append(program.count("\n"))
    assert sizes[1] == sizes[0]


def products(jaxpr: Any) -> int:
    """The operations of all products in a program, with the bodies of scans as often as they run."""
    total = 0
    for equation, inside in equations(jaxpr):
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            inner = math.prod(equation.invars[0].aval.shape[axis] for axis in contracted)
            times = math.prod(each.params["length"] for each in inside if each.primitive.name == "scan")
            total += times * 2 * inner * math.prod(equation.outvars[0].aval.shape)
    return total


COUNTED = [
    {"encoder_layers": 2, "decoder_layers": 2},
    {"encoder_layers": "LRL", "decoder_layers": "RL"},
    {"encoder_layers": "LRL", "reservoir": "ffn"},
    {"encoder_layers": "LRL", "reservoir": "conv"},
    {"encoder_layers": "LRL", "reservoir": "gru"},
    {"encoder_layers": "LRRL", "reservoir": "transformer", "backskip": "identity"},
    {"encoder_layers": 2, "decoder_layers": "R", "backskip": "identity"},
    {"encoder_layers": "LR", "decoder_layers": "LRL", "backskip": "identity", "remat": True},
    {"encoder_layers": "LRL", "decoder_layers": "RL", "reservoir": "gru", "backskip": "identity", "remat": True},
    {"encoder_layers": "SLS", "weights": "multi_layer"},
    {"encoder_layers": 2, "weights": "one_layer", "embedding": "trained", "keep": 1.0},
    {"encoder_layers": "LSL", "weights": "multi_layer", "embedding": "trained", "keep": 1.0},
    {"encoder_layers": "LSL", "weights": "one_layer", "embedding": "masked", "keep": 1.0, "freeze": "encoder.3.ffn"},
    {"weights": "one_layer", "embedding": "frozen", "freeze": "encoder.1.ffn"},
    {"weights": "one_layer", "embedding": "frozen", "freeze": "encoder.2.masks,decoder.1", "gains": "columns"},
    {
        "encoder_layers": 2,
        "weights": "multi_layer",
        "sharing": "masks",
        "embedding": "frozen",
        "norm": "affine",
        "freeze": "encoder.1",
    },
]


@pytest.mark.parametrize("beside", [{"gains": "columns"}, {"adapter_rank": 2}], ids=str)
@pytest.mark.parametrize("frozen", [{"keep": 1.0}, {"freeze": "masks"}], ids=str)
def test_what_is_trained_beside_a_mask_needs_the_gradient_of_the_matrix(beside, frozen):
    whole = {"weights": "one_layer", "embedding": "frozen", **beside}
    shape = (*SOURCE.shape, TARGET.shape[1])
    assert update_flops(model(**whole, **frozen), *shape) == update_flops(model(**whole), *shape)


@pytest.mark.parametrize("changes", mostly_slow(COUNTED, COUNTED[1::4]), ids=str)
def test_operations_are_those_of_the_program(changes):
    """Counted from shapes, and in the program that JAX traces, without what XLA removes because nobody reads it."""
    config = model(**changes)
    variables = initialize(config, 1)

    def loss(params: Any, tables: Any) -> jax.Array:
        logits = build(config).apply(
            {**variables, "params": {**params, **tables}}, SOURCE, TARGET, rngs={"dropout": jax.random.key(0)}
        )
        return jnp.sum(logits**2)

    tables = {name: variables["params"].pop(name) for name in list(variables["params"]) if name.endswith("embedding")}
    traced = jax.make_jaxpr(jax.grad(loss, (0, 1)))(variables["params"], tables)
    needed, _ = pe.dce_jaxpr(traced.jaxpr, [True] * len(traced.jaxpr.outvars))
    assert update_flops(config, *SOURCE.shape, TARGET.shape[1]) == products(needed)


@pytest.mark.parametrize(("layers", "left_out"), [(1, 0.0), ("LL", 0.4)])
def test_layerdrop_never_leaves_out_the_only_layer_of_a_stack(layers, left_out):
    """A decoder without its only layer would translate without its source."""
    config = model(encoder_layers=3, decoder_layers=layers, layerdrop=0.4)
    assert (config.stack("encoder").layerdrop, config.stack("decoder").layerdrop) == (0.4, left_out)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder_layers": "LSL"}, r"model\.encoder_layers is 'LSL', but model\.weights is 'dense'"),
        ({"backskip": "identity"}, r"train\.backskip is 'identity'"),
        ({"encoder_layers": "LR", "backskip": "some"}, r"train\.backskip is 'some'"),
        ({"reservoir": "lstm"}, r"model\.reservoir is 'lstm'"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_key(changes, message):
    with user_error(message):
        model(**changes)

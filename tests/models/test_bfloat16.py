"""Which types a bfloat16 model computes in: read from its programs, without running them."""

from functools import cache
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer.models import ModelConfig, build, initialize
from one_layer.models.decoding import CausalDecoder
from one_layer.tasks import TASKS
from one_layer.tasks.model import prepared
from one_layer.tasks.translation.generate import search
from one_layer.training.optimizer import OptimConfig, optimizer, pace
from one_layer.training.step import train_step
from tests import mostly_slow
from tests.compiling import equations
from tests.models.test_layer_strings import KINDS

# No two dimensions are alike, so a shape tells what an array is.
ROWS, LENGTH, VOCAB, D, FFN, BEAM = 5, 7, 29, 16, 24, 3
KERNELS = {(D, D), (D, FFN), (FFN, D), (VOCAB, D)}
BASE = {"d_model": D, "ffn": FFN, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "dtype": "bfloat16"}
MIXED = {"weights": "dense", "encoder_layers": "LRL", "decoder_layers": "LRL"}
MODELS: dict[str, dict[str, Any]] = {
    "one_layer": {"dropout": 0.1, "attention_dropout": 0.1},
    "dense": {"weights": "dense"},
    "modern": {"block": "modern", "norm_position": "pre"},
    "gru": {**MIXED, "reservoir": "gru"},
    "conv": {**MIXED, "reservoir": "conv"},
}
FLOAT32, BFLOAT16 = jnp.dtype("float32"), jnp.dtype("bfloat16")


def config(**changes: Any) -> ModelConfig:
    return ModelConfig(VOCAB, VOCAB, **{**BASE, **changes})


def tokens() -> np.ndarray:
    return np.random.default_rng(0).integers(4, VOCAB, (ROWS, LENGTH)).astype(np.int32)


def products_in_other_types(program: Any) -> list[str]:
    """The products whose factors are not bfloat16, or whose results are neither that nor float32. There is at least one product."""
    found = [each for each, _ in equations(program.jaxpr) if each.primitive.name == "dot_general"]
    assert found
    return [
        f"{[factor.aval.str_short() for factor in each.invars]} -> {each.params['preferred_element_type']}"
        for each in found
        if {factor.aval.dtype for factor in each.invars} != {jnp.dtype("bfloat16")}
        or each.params["preferred_element_type"] not in (FLOAT32, BFLOAT16)
    ]


@cache
def training(chosen: ModelConfig, micro_batches: int = 11, platform: str = "gpu") -> tuple[Any, Any]:
    """The program of an update on a platform, and what it returns."""
    adam, variables = optimizer(OptimConfig()), jax.eval_shape(lambda: initialize(chosen, 0))
    params = variables.pop("params")
    batch = dict.fromkeys(("source", "target_in", "target"), np.stack([tokens()] * micro_batches))
    step = train_step(TASKS["translation"], chosen, adam, 0.1, 0)
    state = params, jax.eval_shape(adam.init, params), variables
    with mock.patch.object(jax, "default_backend", return_value=platform):
        return jax.make_jaxpr(step, return_shape=True)(*state, batch, 3, pace(OptimConfig(), 1))


@pytest.fixture(autouse=True)
def _as_for_an_accelerator(monkeypatch):
    """The programs are only read. On a CPU, stacks of products are in float32, because its backend cannot compute them all."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")


@pytest.fixture(params=mostly_slow(MODELS, ["one_layer", "dense"]))
def chosen(request):
    return config(**MODELS[request.param])


def test_training_multiplies_in_bfloat16(chosen):
    assert not products_in_other_types(training(chosen)[0])


def test_what_a_softmax_reads_is_float32(chosen):
    """Logits, and scores of attention: rounded to bfloat16, large ones have wrong gradients.

    The gradient of weights of attention has the shape of scores, and follows them in the backward pass.
    """
    found = [each for each, _ in equations(training(chosen)[0].jaxpr) if each.primitive.name == "dot_general"]
    logits = {each.outvars[0].aval.dtype for each in found if each.outvars[0].aval.shape == (ROWS, LENGTH, VOCAB)}
    scores = [each.outvars[0].aval.dtype for each in found if each.outvars[0].aval.shape[-2:] == (LENGTH, LENGTH)]
    assert logits == {FLOAT32}
    assert scores and set(scores[: len(scores) // 2]) == {FLOAT32}


def test_gradients_and_optimiser_state_are_float32(chosen):
    """The state has integer counters. The sum over micro-batches is what the scan over them carries."""
    program, (params, moments, sums) = training(chosen)
    leaves = jax.tree.leaves((params, moments, sums))
    assert {leaf.dtype for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)} == {FLOAT32}
    scans = [each for each, _ in equations(program.jaxpr) if each.primitive.name == "scan"]
    (adding,) = [each for each in scans if each.params["length"] == 11]
    # What a scan stacks has its length in front; no sum has 11 rows.
    carried = [each.aval for each in adding.outvars if each.aval.shape[:1] != (11,)]
    assert sum(each.shape[-2:] in KERNELS for each in carried) >= 8
    assert {each.dtype for each in carried} == {FLOAT32}


@pytest.mark.parametrize(("platform", "rounds"), [("cpu", False), ("gpu", True)])
def test_on_a_cpu_no_gradient_of_a_matrix_is_rounded_to_bfloat16(platform, rounds):
    found = [each for each, _ in equations(training(config(weights="dense"), 1, platform)[0].jaxpr)]
    of_matrices = {
        each.outvars[0]
        for each in found
        if each.primitive.name == "dot_general" and each.outvars[0].aval.shape in KERNELS
    }
    assert of_matrices
    assert any(each.aval.dtype == BFLOAT16 for each in of_matrices) == rounds
    casts = [each for each in found if each.primitive.name == "convert_element_type"]
    assert not any(each.invars[0] in of_matrices for each in casts if each.params["new_dtype"] == BFLOAT16)


def searching(chosen: ModelConfig, variables: Any) -> Any:
    options = {"beam": BEAM, "max_length": 9, "length_penalty": 1.0}
    return jax.make_jaxpr(lambda *inputs: search(chosen, *inputs, **options))(variables, tokens())


def test_search_multiplies_in_bfloat16_and_casts_no_matrix_in_its_loop(chosen):
    program = searching(chosen, jax.eval_shape(lambda: initialize(chosen, 0)))
    assert not products_in_other_types(program)
    assert_no_matrix_is_cast_in_a_loop(program)


def assert_no_matrix_is_cast_in_a_loop(program: Any) -> None:
    casts = [
        (each.invars[0].aval, [outer.primitive.name for outer in inside])
        for each, inside in equations(program.jaxpr)
        if each.primitive.name == "convert_element_type" and each.params["new_dtype"] == jnp.bfloat16
    ]
    of_matrices = [(aval, inside) for aval, inside in casts if aval.shape[-2:] in KERNELS and aval.dtype == FLOAT32]
    assert of_matrices, "no matrix is cast at all"
    assert not [aval.str_short() for aval, inside in of_matrices if "while" in inside]


@pytest.mark.parametrize("kind", mostly_slow(KINDS, KINDS[2:4]), ids=str)
def test_every_reservoir_multiplies_in_bfloat16(kind):
    """In the gradient and, for the states of decoding, in a search."""
    chosen = config(weights="dense", encoder_layers="RL", decoder_layers="RL", **kind)
    variables = jax.eval_shape(lambda: initialize(chosen, 0))
    gradient = jax.grad(lambda variables: jnp.sum(build(chosen).apply(variables, tokens(), tokens())))
    assert not products_in_other_types(jax.make_jaxpr(gradient)(variables))
    assert not products_in_other_types(searching(chosen, variables))


def test_prepared_matrices_of_layers_are_in_the_computing_type():
    """Those of tables are float32: their rows are looked up."""
    chosen = config()
    made = jax.eval_shape(lambda: prepared(chosen, initialize(chosen, 0)))["materialized"]
    assert {leaf.dtype for leaf in jax.tree.leaves((made["encoder"], made["decoder"]))} == {jnp.dtype("bfloat16")}
    assert made["source_embedding"]["kernel"].dtype == made["target_embedding"]["kernel"].dtype == FLOAT32


def test_a_decoder_alone_multiplies_in_bfloat16_and_casts_before_its_loop():
    chosen = config(family="decoder", encoder_layers=0)
    variables = jax.eval_shape(lambda: initialize(chosen, 0))

    def loss(params, variables):
        return jnp.sum(build(chosen).apply({**variables, "params": params}, tokens()))

    def steps(variables):
        decoder = CausalDecoder(chosen, variables)

        def step(state):
            number, cache = state
            first, positions = jnp.zeros(ROWS, jnp.int32), jnp.full(ROWS, number)
            return number + 1, decoder.step(first, positions, cache, LENGTH)[1]

        return jax.lax.while_loop(lambda state: state[0] < 3, step, (0, decoder.start(ROWS, LENGTH)))

    assert not products_in_other_types(jax.make_jaxpr(jax.grad(loss))(variables["params"], variables))
    program = jax.make_jaxpr(lambda: steps(prepared(chosen, initialize(chosen, 0))))()
    assert not products_in_other_types(program)
    assert_no_matrix_is_cast_in_a_loop(program)


def test_only_the_last_layer_of_a_classifier_is_float32():
    """Logits rounded to bfloat16 would often be equal. A masked language model has no such layer."""
    classifier = config(decoder_layers=0).replace(target_vocab=6)
    masked = config(decoder_layers=0, family="masked_lm")
    for chosen, inputs, expected in ((classifier, (tokens(),), 3), (masked, (tokens(), tokens()[:, :2] % LENGTH), 0)):
        variables = jax.eval_shape(lambda chosen=chosen: initialize(chosen, 0))
        network = build(chosen)
        gradient = jax.grad(lambda variables, network=network, inputs=inputs: network.apply(variables, *inputs).sum())
        others = products_in_other_types(jax.make_jaxpr(gradient)(variables))
        assert len(others) == expected, others
        assert not any("bfloat16" in each for each in others)

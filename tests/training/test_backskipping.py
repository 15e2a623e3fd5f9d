"""Backskipping with a policy: what passes through a reservoir backwards, what the policy learns from, and whole runs."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax.traverse_util import flatten_dict

from one_layer import tickets
from one_layer.layers.backskipping import mean_action, networks, no_reports, observed, proposed, value
from one_layer.models import ModelConfig, build, initialize
from one_layer.runs.folder import RunFolder
from one_layer.runs.restore import restore_run
from one_layer.training import backskipping
from one_layer.training.backskipping import probes, takes_true_gradient, with_policy
from one_layer.training.train import train
from tests import tiny
from tests.models.test_layer_strings import products
from tests.models.test_translation import SOURCE, TARGET

pytestmark = pytest.mark.slow

D = 8
# Pads have no gradient.
G = jnp.asarray(np.random.default_rng(0).standard_normal((2, 5, D)), jnp.float32).at[1, 3:].set(0)
POLICY = networks(1, D)["policy"] | {"out": jnp.asarray(np.random.default_rng(1).normal(0, 0.1, (32, D)), jnp.float32)}


def model(**changes: Any) -> ModelConfig:
    sizes = {"d_model": D, "ffn": 12, "heads": 2, "weights": "dense", "encoder_layers": "LRL", "decoder_layers": 1}
    return ModelConfig(11, 13, **{**sizes, "backskip": "policy", **changes})


def backward(seed):
    """The proposed gradient of x, the eligibility and the reports, for the gradient G of y."""
    key = jax.random.key_data(jax.random.key(seed))
    _, pull_back = jax.vjp(
        lambda x, policy, reports: proposed(x, 2 * G, policy, reports, key), G, POLICY, no_reports(D)
    )
    return pull_back(G)


def test_true_gradients_come_first_and_become_rare():
    taken = [takes_true_gradient(3, 20, number) for number in range(1020)]
    assert all(taken[:20]) and taken == [takes_true_gradient(3, 20, number) for number in range(1020)]
    assert 60 < sum(taken[20:]) < 140 and not any(taken[720:])  # 99 are expected
    assert taken != [takes_true_gradient(4, 20, number) for number in range(1020)]


def test_an_action_is_normal_around_the_mean_in_units_of_the_gradient_and_pads_get_none():
    size = np.sqrt(np.sum(np.square(G)) / (8 * D))  # of the 8 tokens that are no pads
    mean = np.array(mean_action(POLICY, G / size))
    actions = np.stack([backward(seed)[0] for seed in range(300)]) / size
    assert not actions[:, 1, 3:].any()
    real = np.any(np.array(G) != 0, axis=-1)
    noise = (actions - mean)[:, real]
    assert abs(noise.mean()) < 0.02 and noise.std() == pytest.approx(1, abs=0.02)
    np.testing.assert_allclose(noise.mean(axis=0), 0, atol=5 / np.sqrt(300))


def test_the_cotangent_of_the_policy_is_the_score_function():
    proposal, eligibility, _ = backward(7)
    size = jnp.sqrt(jnp.sum(G * G) / (8 * D))

    def log_probability(policy):
        difference = (proposal / size - mean_action(policy, G / size)) * jnp.any(G != 0, axis=-1, keepdims=True)
        return -0.5 * jnp.sum(difference**2)

    expected = jax.grad(log_probability)(POLICY)
    for name, array in expected.items():
        np.testing.assert_allclose(eligibility[name], array, rtol=1e-3, atol=1e-4)


def test_both_ways_report_the_mean_gradient():
    _, pull_back = jax.vjp(lambda x, reports: observed(x, reports), G, no_reports(D))
    passed, reports = pull_back(G)
    np.testing.assert_array_equal(passed, G)
    np.testing.assert_allclose(reports["gradient"], np.abs(G).sum() / (8 * D), rtol=1e-5)
    jax.tree.map(np.testing.assert_array_equal, backward(1)[2], reports)


def cotangents(config, skips):
    """The function of the parameters, and of what reservoirs report to, whose gradient an update computes."""
    variables = initialize(config, 3)
    given = probes(config, {"backskip": {"networks": networks(1, D)}}, skips)

    def loss(params, given):
        all_variables = {**variables, "params": params, **given}
        logits = build(config).apply(all_variables, SOURCE, TARGET, rngs={"dropout": jax.random.key(0)})
        return jnp.sum(logits**2)

    return jax.grad(loss, (0, 1)), variables["params"], given


def test_true_gradients_are_those_without_backskipping():
    function, params, given = cotangents(model(), skips=False)
    found, told = jax.jit(function)(params, given)
    without, _, _ = cotangents(model(backskip="off"), skips=False)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-4), found, without(params, {})[0])
    encoder, decoder = (told["backskip"][stack]["reports"] for stack in ("encoder", "decoder"))
    assert encoder["count"] == 1 and encoder["gradient"] > 0 and decoder["count"] == 0


def test_a_skipped_backward_pass_is_not_in_the_program():
    """What the policy adds to `identity` does not depend on the size of the reservoir."""
    added = []
    for ffn in (12, 48):
        counts = []
        for backskip in ("policy", "identity"):
            function, *arguments = cotangents(model(backskip=backskip, ffn=ffn), skips=True)
            counts.append(products(jax.make_jaxpr(function)(*arguments).jaxpr))
        added.append(counts[0] - counts[1])
    assert added[0] == added[1] > 0


def test_a_policy_leaves_the_gradient_of_an_encoded_source_as_identity_does():
    """Only the input of a decoder's reservoir is the policy's: where nothing but the encoder is below, both give one gradient."""
    found = []
    for backskip in ("policy", "identity"):
        function, params, given = cotangents(model(encoder_layers=2, decoder_layers="R", backskip=backskip), skips=True)
        found.append(jax.jit(function)(params, given)[0])
    layers, others = (each["encoder"] for each in found)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4), layers, others)
    assert all(np.any(leaf) for leaf in jax.tree.leaves(layers["layers"]))


@pytest.mark.parametrize("gradient", [0.1, 10.0])
def test_the_policy_moves_towards_actions_that_made_the_gradient_smaller_than_expected(gradient):
    optimizer = with_policy(optax.sgd(1.0), model(), 1)
    params = {"w": jnp.ones(2)}
    state = optimizer.init(params)
    state["backskip"]["networks"]["value"]["bias"] = jnp.float32(-1.0)  # expects a mean gradient of 1
    before = state["backskip"]["networks"]

    def told(gradient, eligibility):
        reports = {"gradient": jnp.float32(gradient), "state": jnp.ones(D), "count": jnp.float32(1)}
        return {"encoder": {"reports": reports, "policy": jax.tree.map(lambda a: a + eligibility, zeros)}}

    zeros = jax.tree.map(jnp.zeros_like, before["policy"])
    _, state = optimizer.update(params, state, params, backskip=told(1.0, 1.0))
    jax.tree.map(np.testing.assert_array_equal, state["backskip"]["networks"]["policy"], before["policy"])
    expected_before = value(state["backskip"]["networks"]["value"], jnp.ones(D))
    changes, state = optimizer.update(params, state, params, backskip=told(gradient, 0.0))
    moved = state["backskip"]["networks"]["policy"]["out"] - before["policy"]["out"]
    assert np.all(moved > 0) if gradient < 1 else np.all(moved < 0)
    nearer = value(state["backskip"]["networks"]["value"], jnp.ones(D))
    assert (nearer > expected_before) == (gradient < 1)
    np.testing.assert_array_equal(changes["w"], -params["w"])


def test_an_update_without_any_reservoir_teaches_nothing():
    optimizer = with_policy(optax.sgd(1.0), model(), 1)
    params = {"w": jnp.ones(2)}
    state = optimizer.init(params)
    state["backskip"]["last"] = jax.tree.map(lambda leaf: leaf + 1.0, state["backskip"]["last"])
    nothing = {"reports": jax.tree.map(jnp.zeros_like, no_reports(D))}
    _, after = optimizer.update(params, state, params, backskip={"encoder": nothing})
    jax.tree.map(np.testing.assert_array_equal, after["backskip"], state["backskip"])


def test_a_run_goes_on_with_its_policy_and_its_ticket_has_none(tmp_path, monkeypatch):
    monkeypatch.setattr(backskipping, "DECAY", 0.5)
    changes = {
        "model.weights": "dense",
        "model.embedding": "trained",
        "model.encoder_layers": "LRL",
        "model.reservoir": "ffn",
        "train.backskip": "policy",
        "optim.warmup": 2,
        "train.updates": 8,
        "data.tests": (),
    }
    train(tiny.run(changes), tmp_path / "whole", [])
    train(tiny.run({**changes, "train.updates": 4}), tmp_path / "stopped", [])
    train(tiny.run(changes), tmp_path / "stopped", [])
    assert not takes_true_gradient(1, 2, 3) and not takes_true_gradient(1, 2, 4)  # on both sides of the interruption
    whole, stopped = (restore_run(tmp_path / name, "last").variables["params"] for name in ("whole", "stopped"))
    jax.tree.map(np.testing.assert_array_equal, whole, stopped)
    ticket = tickets.load(RunFolder(tmp_path / "whole").ticket_file)
    assert not [path for path in flatten_dict(tickets.variables(ticket)) if "backskip" in path or "policy" in path]

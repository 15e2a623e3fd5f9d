"""Frozen parts: which they are, and that nothing of them is differentiated, changed or known to the optimiser."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax.traverse_util import flatten_dict
from jax.interpreters import partial_eval as pe

from one_layer.layers.materializing import materialize
from one_layer.models import ModelConfig, build, initialize
from one_layer.models.accounting import account
from one_layer.models.flops import update_flops
from one_layer.models.trained import TrainedParts
from one_layer.tasks import TASKS
from one_layer.training.optimizer import OptimConfig, optimizer, pace
from one_layer.training.step import train_step
from tests import user_error
from tests.models.test_layer_strings import products
from tests.models.test_translation import SOURCE, TARGET
from tests.training.test_step import batch

pytestmark = pytest.mark.slow

SIZES = {"d_model": 8, "ffn": 12, "heads": 2, "encoder_layers": 3, "decoder_layers": 1, "weights": "dense"}


def model(**changes: Any) -> ModelConfig:
    return ModelConfig(15, 15, **{**SIZES, **changes})


def trained(**changes: Any) -> dict[str, list[int] | None]:
    return {"/".join(path): rows for path, rows in TrainedParts.of(model(**changes)).rows.items()}


def test_names_select_parts():
    everything = trained()
    assert trained(train_only="all") == everything and set(everything.values()) == {None}
    assert all(name.startswith("decoder/") for name in trained(train_only="decoder"))
    assert not [name for name in trained(freeze="attention") if "attention/" in name]
    assert [name for name in trained(freeze="attention") if "attention_norm/" in name]
    only_first = trained(train_only="encoder.1.ffn")
    assert only_first.keys() == {
        f"encoder/layers/ffn_{end}/{leaf}" for end in ("in", "out") for leaf in ("kernel", "bias")
    }
    assert set(map(tuple, only_first.values())) == {(0,)}
    assert trained(freeze="encoder.2")["encoder/layers/ffn_in/kernel"] == [0, 2]
    assert "source_embedding/kernel" not in trained(freeze="embeddings, norms")
    masked = {"weights": "one_layer", "encoder_layers": "SLS", "norm": "affine"}
    assert all(name.endswith("scores") for name in trained(train_only="masks", **masked))
    assert trained(freeze="encoder.3", **masked)["encoder/layers/ffn_in/scores"] == [0]  # of two masked layers
    assert "encoder/trained/ffn_in/kernel" not in trained(freeze="encoder.2", **masked)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"freeze": "encodr"},
            r"optim\.freeze is 'encodr'.*known are encoder, decoder, attention, ffn, norms, embeddings, all",
        ),
        ({"train_only": "decoder.2"}, r"no trained part of this model is 'decoder\.2'"),
        ({"train_only": "masks"}, "no trained part of this model is 'masks'"),
        ({"freeze": "encoder.1,embeddings.ffn"}, r"is 'embeddings\.ffn'"),
        ({"train_only": "encoder", "freeze": "encoder"}, "leave nothing to train"),
        (
            {"freeze": "x"},
            r"embeddings, all, a layer such as encoder\.3, words joined by dots such as encoder\.3\.ffn$",
        ),
        (
            {"freeze": "encoder.2", "weights": "multi_layer", "sharing": "masks"},  # no array is of one layer
            r"masks, embeddings, all$",
        ),
        (
            {
                "freeze": "decoder.1.ffn",
                "weights": "multi_layer",
                "sharing": "masks",
                "encoder_layers": "SRS",
                "decoder_layers": "SL",
            },
            r"a layer such as decoder\.2, words joined by dots such as decoder\.2\.ffn$",  # of the encoder, no array is of one layer
        ),
        (
            {"freeze": "encoder.2", "family": "decoder", "encoder_layers": 0},
            r"a layer such as decoder\.1, words joined by dots such as decoder\.1\.ffn$",
        ),
    ],
)
def test_a_name_without_a_part_is_refused(changes, message):
    with user_error(message):
        trained(**changes)


CASES = {
    "layers": {"freeze": "encoder.1,embeddings,encoder.2.attention"},
    "masks beside layers": {"freeze": "encoder.3,ffn", "weights": "one_layer", "encoder_layers": "SLS"},
    "a norm of all layers": {"freeze": "encoder.1", "weights": "one_layer", "norm": "affine", "share_norm_scale": True},
    "a norm of all frozen layers": {
        **{"freeze": "encoder.1,encoder.2,encoder.3", "weights": "one_layer", "norm": "affine"},
        "share_norm_scale": True,
    },
    "a mask of all layers": {"freeze": "encoder.1", "weights": "multi_layer", "sharing": "masks", "norm": "affine"},
    "gains beside a frozen mask": {
        "freeze": "encoder.1.masks,decoder.masks",
        "weights": "one_layer",
        "gains": "columns",
    },
    "gains beside a frozen mask of all layers": {
        **{"freeze": "masks,encoder.1", "weights": "multi_layer", "sharing": "masks"},
        **{"gains": "columns", "adapter_rank": 2},
    },
    "gains beside a trained matrix of all layers": {
        **{"freeze": "encoder.1,encoder.2,encoder.3", "sharing": "weights"},
        **{"gains": "columns", "adapter_rank": 2},
    },
    "whole arrays": {"train_only": "attention,decoder", "norm_position": "pre"},
}


@pytest.fixture(scope="module", params=CASES)
def updated(request):
    """The model, its parameters before and after one step of descent, and after it with nothing frozen."""
    config = model(**CASES[request.param])
    after = []
    for each in (config, config.replace(freeze="", train_only="")):
        variables = initialize(config, 3)
        descent = optax.sgd(1.0)
        moments = descent.init(TrainedParts.of(each).pick(variables["params"]))
        step = train_step(TASKS["translation"], each, descent, 0.1, 1)
        after.append(step(variables.pop("params"), moments, variables, batch(), 0)[0])
    return config, initialize(config, 3)["params"], *after


def test_frozen_parts_keep_their_bits_and_the_others_move_as_if_nothing_were_frozen(updated):
    config, before, after, free = (each if isinstance(each, ModelConfig) else flatten_dict(each) for each in updated)
    rows = TrainedParts.of(config).rows
    for path, array in before.items():
        moved = np.zeros(len(array), bool)
        moved[rows[path] if path in rows and rows[path] is not None else slice(None if path in rows else 0)] = True
        np.testing.assert_array_equal(after[path][~moved], array[~moved], err_msg=str(path))
        np.testing.assert_allclose(after[path][moved], free[path][moved], rtol=1e-4, atol=1e-5, err_msg=str(path))
    changed = [path for path in rows if not np.array_equal(after[path], before[path])]
    assert len(changed) > len(rows) / 2


@pytest.mark.parametrize("changes", [{}, {"weights": "one_layer", "freeze": "masks", "bias": True}, *CASES.values()])
def test_what_is_counted_as_trained_is_what_the_optimiser_changes(changes):
    config = model(**changes)
    picked = TrainedParts.of(config).pick(initialize(config, 1)["params"])
    optim = OptimConfig(lr=0.1, warmup=0)
    descent = optimizer(optim)
    ones = jax.tree.map(jnp.ones_like, picked)
    updates, _ = descent.update(ones, descent.init(picked), picked, pace=pace(optim, 10))
    changed = sum(int(jnp.count_nonzero(leaf)) for leaf in jax.tree.leaves(updates))
    counted = account(config)
    assert counted["parameters"]["trained"] == changed
    everything = account(config.replace(freeze="", train_only=""))
    for part in ("parameters", "bytes"):
        for name, number in counted[part].items():
            assert name == "trained" or number == everything[part][name], "the rest is as large as ever"


@pytest.mark.parametrize("changes", [{}, *CASES.values()])
@pytest.mark.parametrize("random", [True, False])
def test_what_was_taken_apart_is_put_together_as_it_was(changes, random):
    """Also where all masks were multiplied out before, which leaves a collection without an array."""
    config = model(**changes)
    variables = initialize(config, 1)
    variables |= {} if random else {"random": {}}
    parts = TrainedParts.of(config)
    whole = parts.together(*parts.apart(variables, ["random"]))
    assert jax.tree.structure(whole) == jax.tree.structure(variables)
    jax.tree.map(np.testing.assert_array_equal, whole, variables)


@pytest.mark.parametrize(
    "changes",
    [
        {"freeze": "encoder.2.ffn,embeddings,norms,decoder.attention"},
        {"freeze": "encoder.1,encoder.3,embeddings", "encoder_layers": "LRLL", "reservoir": "ffn"},
        {"train_only": "embeddings,decoder.ffn,encoder.3"},
        {
            "freeze": "embeddings,encoder.1.attention,norms",
            "block": "modern",
            "norm_position": "pre",
            "encoder_layers": 1,
        },
    ],
    ids=str,
)
def test_no_gradient_of_a_frozen_matrix_is_computed(changes):
    """The operations in the traced program are those that are counted from shapes."""
    config = model(**changes)
    parts = TrainedParts.of(config)
    depending, others = parts.apart(materialize(initialize(config, 1), config.supermask), ("random",))

    def loss(depending: Any) -> jax.Array:
        variables = parts.together(depending, others)
        logits = build(config).apply(variables, SOURCE, TARGET, rngs={"dropout": jax.random.key(0)})
        return jnp.sum(logits**2)

    traced = jax.make_jaxpr(jax.grad(loss))(depending)
    needed, _ = pe.dce_jaxpr(traced.jaxpr, [True] * len(traced.jaxpr.outvars))
    counted = update_flops(config, *SOURCE.shape, TARGET.shape[1])
    assert counted == products(needed)
    assert counted < 0.9 * update_flops(config.replace(freeze="", train_only=""), *SOURCE.shape, TARGET.shape[1])


def test_an_adapter_counts_what_its_rank_adds():
    config, sizes = model(weights="one_layer"), (*SOURCE.shape, TARGET.shape[1])

    def traced(rank: int) -> int:
        adapted = config.replace(adapter_rank=rank)
        variables = initialize(adapted, 1)
        params = variables.pop("params")

        def total(params: Any) -> jax.Array:
            made = materialize({"params": params, **variables}, adapted.supermask)["materialized"]
            return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(made))

        return products(jax.make_jaxpr(jax.grad(total))(params).jaxpr)

    for rank in (2, 5):
        more = update_flops(config.replace(adapter_rank=rank), *sizes) - update_flops(config, *sizes)
        assert more == traced(rank) - traced(0)

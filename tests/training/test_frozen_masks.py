"""Masks that training does not change are selected once: no update reads their scores, and its numbers are the same."""

import random

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from one_layer import tickets
from one_layer.layers.materializing import materialize
from one_layer.layers.trees import flatten_dict, unflatten_dict
from one_layer.models import initialize
from one_layer.models.sharding import Devices
from one_layer.models.trained import TrainedParts
from one_layer.platform import compiling_for
from one_layer.tasks import TASKS
from one_layer.tasks.model import prepared
from one_layer.training.frozen_masks import with_frozen_masks
from one_layer.training.step import train_step
from tests import mostly_slow
from tests.models.test_trained import model
from tests.tiny_tickets import SEED, TINY, ticket_of, trained
from tests.training.test_step import batch

CASES = {
    "the masks of a stack, beside trained gains and adapters": {
        **{"weights": "one_layer", "freeze": "encoder.masks", "gains": "columns", "adapter_rank": 2}
    },
    "all masks, with signs": {
        **{"weights": "one_layer", "train_only": "embeddings", "embedding": "trained"},
        **{"selection": "signed_threshold", "init_scheme": "signed_constant"},
    },
    "a masked table, and one layer of three": {
        **{"weights": "multi_layer", "embedding": "masked", "freeze": "embeddings,encoder.2", "dtype": "bfloat16"}
    },
}


# What is for an accelerator runs on a CPU too, but for stacks of bfloat16 products.
PLATFORMS = {
    f"{name}, {platform}": (case, platform)
    for name, case in CASES.items()
    for platform in (["cpu"] if case.get("dtype") == "bfloat16" else ["cpu", "cuda"])
}


@pytest.mark.parametrize("case", mostly_slow(PLATFORMS, [each for each in PLATFORMS if each.startswith("all masks")]))
def test_an_update_reads_no_frozen_scores_and_computes_the_same(case):
    changes, platform = PLATFORMS[case]
    with compiling_for(platform):
        reads_no_frozen_scores(model(**changes))


def reads_no_frozen_scores(config):
    """Checks that an update neither reads frozen scores nor changes its numbers where they are not read."""
    variables = initialize(config, 3)
    params = variables.pop("params")
    trained = TrainedParts.of(config).rows
    frozen = {path for path in flatten_dict(params) if path[-1] == "scores" and path not in trained}
    assert frozen
    held = with_frozen_masks(config, params, variables, Devices.holding(()))
    assert {path[:-1] for path in flatten_dict(held["materialized"])} == {path[:-1] for path in frozen}

    descent = optax.sgd(1.0)
    step = train_step(TASKS["translation"], config, descent, 0.1, 1)

    def updated(params, fixed):
        moments = descent.init(TrainedParts.of(config).pick(params))
        after, _, sums = step(jax.tree.map(jnp.copy, params), moments, fixed, batch(), 0)
        return {path: leaf for path, leaf in flatten_dict(after).items() if path not in frozen}, sums

    other = unflatten_dict({path: -leaf if path in frozen else leaf for path, leaf in flatten_dict(params).items()})
    (after, sums), (of_others, sums_of_others) = updated(params, held), updated(other, held)
    jax.tree.map(np.testing.assert_array_equal, (after, sums), (of_others, sums_of_others))
    selected_again = updated(params, variables)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), (after, sums), selected_again)


ROUNDED = {
    "gains": ["none", "columns"],
    "adapter_rank": [0, 2],
    "trained_precision": ["float32", "int4"],
    "vector_precision": ["float32", "bfloat16"],
    "weights": ["one_layer", "multi_layer"],
    "dynamic_scale": [False, True],
    "freeze": ["masks", "encoder.masks", "encoder.2.masks"],
}


@pytest.mark.parametrize("seed", range(4))
def test_the_model_that_validates_is_the_one_that_is_scored_and_exported(seed):
    dice = random.Random(seed)
    drawn = {key: dice.choice(values) for key, values in ROUNDED.items()} | ({"gains": "columns"} if seed == 0 else {})
    config = TINY.replace(**drawn, dtype="bfloat16")
    variables = trained(config)
    ticket = tickets.variables(ticket_of(config, SEED, variables), packed=True)
    params = variables.pop("params")
    held = with_frozen_masks(config, params, variables, Devices.holding(()))
    validated, scored, exported = (
        flatten_dict(prepared(config, each)["materialized"])
        for each in ({"params": params, **held}, {"params": params, **variables}, ticket)
    )
    for path, matrix in scored.items():
        np.testing.assert_array_equal(validated[path], matrix, err_msg=f"{drawn} {path}")
        np.testing.assert_array_equal(exported[path], matrix, err_msg=f"{drawn} {path}")


def test_a_product_that_exists_is_kept():
    config = model(weights="one_layer")
    variables = initialize(config, 3)
    made = materialize(variables, config.supermask)
    again = materialize({**variables, "materialized": made["materialized"]}, config.supermask)
    jax.tree.map(np.testing.assert_array_equal, made, again)


def test_without_frozen_masks_nothing_is_added():
    config = model(weights="one_layer", norm="affine", freeze="norms")
    variables = initialize(config, 3)
    fixed = {"random": variables["random"]}
    assert with_frozen_masks(config, variables["params"], fixed, Devices.holding(())) is fixed

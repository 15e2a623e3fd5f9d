"""Random values for random keys of every config: where a config is accepted, its update can be traced, so nothing fails inside JAX."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from one_layer.models.weights import abstract
from one_layer.runs.settings import RunConfig, resolve
from one_layer.system.errors import UserError
from one_layer.training.backskipping import with_policy
from one_layer.training.memory import check_memory
from one_layer.training.optimizer import optimizer, pace
from one_layer.training.plan import planned
from one_layer.training.step import train_step
from tests.configs.test_random_overrides import assert_names_a_key, examples

ROWS, LENGTH, VOCABULARY = 2, 6, 40


def trace(run: RunConfig) -> Any:
    """The shapes of what an update of the run returns. Nothing is compiled or computed."""
    config = run.model_config(VOCABULARY, VOCABULARY)
    adam = with_policy(optimizer(run.optim), config, run.seed)
    fixed = abstract(config)
    params = fixed.pop("params")
    moments = jax.eval_shape(adam.init, params)
    batch = {
        name: jax.ShapeDtypeStruct((run.optim.accumulate, ROWS, length), jnp.int32)
        for name, length in run.task.arrays(run.data, LENGTH).items()
    }
    step = train_step(run.task, config, adam, run.optim.label_smoothing, run.seed)
    return jax.eval_shape(
        partial(step, number=10_000, pace=pace(planned(run, 100)[0].optim, 100)), params, moments, fixed, batch
    )


def program(run: RunConfig) -> tuple[object, ...]:
    """All that the trace of its update depends on: many values change none of it."""
    config = run.model_config(VOCABULARY, VOCABULARY)
    return run.task, config, run.optim, run.seed, *run.task.arrays(run.data, LENGTH).items()


@pytest.fixture(scope="module")
def known() -> set[tuple[object, ...]]:
    """The programs that were traced, which need not be traced again."""
    return set()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_update_of_an_accepted_config_can_be_traced(seed, known):
    """A hundred for each seed. What would not fit into memory is refused, with the name of a key."""
    accepted = 0
    for config, changes in examples(seed, 100):
        try:
            run, _ = planned(resolve(config), 100)
            check_memory(run, run.model_config(VOCABULARY, VOCABULARY))
        except UserError as error:
            assert_names_a_key(error, changes)
            continue
        accepted += 1
        if program(run) in known:
            continue
        known.add(program(run))
        try:
            _, _, sums = trace(run)
        except Exception as error:
            raise AssertionError(f"{changes}: {type(error).__name__}") from error
        assert sums["loss"].shape == sums["norm"].shape == ()
    assert accepted >= 10

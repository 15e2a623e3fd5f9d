"""Steps, compiled without arrays, for a device that is here."""

from dataclasses import replace

import pytest

from one_layer.ahead.contents import contents
from one_layer.ahead.prediction import predict
from one_layer.ahead.programs import compiled
from one_layer.models.flops import update_flops
from tests import tiny
from tests.ahead.targets import HERE


@pytest.fixture(scope="module")
def run():
    return tiny.run({"data.max_tokens": 64, "optim.accumulate": 2})


@pytest.fixture(scope="module")
def step(run):
    """Of a config that leaves numbers open, which do not matter."""
    run = replace(run, optim=replace(run.optim, lr=None, warmup=None))
    return compiled(run, run.model_config(20, 20), HERE, 8, (1, 1))


def test_a_step_is_compiled_for_the_rows_of_a_micro_batch(step):
    assert step.rows == 64 // 2 // 8
    assert 0 < step.arguments < step.peak and contents(step.text).products.total() > 0


def test_a_prediction_is_the_sum_of_what_does_not_overlap(run, step):
    operations = update_flops(run.model_config(20, 20), 8, 8, 8)
    found, more = (predict(contents(step.text), count, HERE) for count in (operations, 10**15))
    assert found.update == max(found.products, found.memory) + found.wire + found.launches
    assert more.products > found.products and more.memory == found.memory and more.update > found.update

"""Programs compiled for accelerators that are not here. They need requirements-ahead.txt: `make ahead`."""

from __future__ import annotations

import importlib.util
import math

import pytest

from configs import iwslt14
from one_layer.ahead.chips import Target
from one_layer.ahead.contents import Contents, contents
from one_layer.ahead.programs import Compiled, compiled
from one_layer.models import shapes
from one_layer.runs.settings import RunConfig, resolve
from one_layer.system.cuda_graphs import keep_loops_on_gpu

VOCABULARIES = 8848, 6632

keep_loops_on_gpu()  # before anything is compiled, as a run does

pytestmark = [
    pytest.mark.slow,
    pytest.mark.ahead,
    pytest.mark.skipif(importlib.util.find_spec("jax_cuda12_plugin") is None, reason="needs requirements-ahead.txt"),
]


def run(**model: int) -> RunConfig:
    config = iwslt14.get_config("one_layer_small")
    config.data.directory, config.model.dtype = ".", "bfloat16"
    config.model.update(model)
    return resolve(config.to_dict())


def program(target: str, name: str = "step") -> tuple[Compiled, Contents]:
    there = Target.of(target)
    made = compiled(name, run(), run().model_config(*VOCABULARIES), there, 32, (there.number, 1))
    return made, contents(made.text)


@pytest.fixture(scope="module")
def one_gpu():
    return program("h100")


@pytest.fixture(scope="module")
def eight_gpus():
    return program("h100x8")


def test_every_product_of_a_bfloat16_step_has_bfloat16_factors(one_gpu):
    """What a softmax reads is float32: the scores of 18 attentions, and the logits. What is cast at once is written in bfloat16."""
    products = one_gpu[1].products
    assert set(products) == {"bf16 x bf16 -> f32", "bf16 x bf16 -> bf16"}
    assert 18 + 1 <= products["bf16 x bf16 -> f32"] < products.total() / 10


def test_the_host_waits_for_no_loop(one_gpu):
    """The loops of the selection end when its counts do: outside a CUDA graph, the host would wait for each of their turns."""
    made, found = one_gpu
    assert found.open_loops and not made.loops_outside & found.open_loops.keys()


def test_no_condition_copies_the_state(one_gpu):
    assert " conditional(" not in one_gpu[0].text


def test_devices_gather_the_bits_of_masks_alone(eight_gpus):
    bits = sum(
        math.prod(shape) for path, shape in shapes(run().model_config(*VOCABULARIES)).items() if path[-1] == "scores"
    )
    gathered = sum(each.bytes for each in eight_gpus[1].transfers if each.operation == "all-gather")
    assert bits / 8 <= gathered < 1.06 * bits / 8  # rows are filled up to whole bytes; numbers of the batch come along


def test_gradients_are_summed_where_they_are_stored(eight_gpus):
    """Whole gradients would be summed by all-reduces of megabytes; norms and counts are small."""
    assert max(each.bytes for each in eight_gpus[1].transfers if each.operation == "all-reduce") < 10_000
    assert any(each.operation == "reduce-scatter" for each in eight_gpus[1].transfers)


def test_what_devices_share_out_over_a_layer_is_reduced_once_where_several_products_read_it():
    """A block is reduced behind its last product, and its gradient behind its first: that of query, key and value is one.

    Two more are the gradient of the encoded source, once for all layers, and that of what logits are made of. No logits are reduced.
    """
    layers = 2
    settings = run(encoder_layers=layers, decoder_layers=layers)
    config, there = settings.model_config(*VOCABULARIES), Target.of("h100x2")
    made = compiled("step", settings, config, there, 32, (1, 2))
    blocks = 2 + 3  # of an encoder's layer and of a decoder's
    arrays = layers * 2 * blocks + 2
    numbers = settings.optim.accumulate * made.rows * made.length * config.d_model * arrays
    reduced = sum(each.bytes for each in contents(made.text).transfers if each.operation == "all-reduce")
    assert 0.95 * 4 * numbers < reduced < 1.05 * 4 * numbers


def test_an_update_fits_into_an_eighth_of_a_gpu(one_gpu, eight_gpus):
    assert one_gpu[0].peak < 10e9 and eight_gpus[0].peak < one_gpu[0].peak / 2


def test_a_search_has_bfloat16_products_alone():
    assert set(program("h100", "search")[1].products) <= {"bf16 x bf16 -> f32", "bf16 x bf16 -> bf16"}

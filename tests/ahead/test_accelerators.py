"""Programs compiled for accelerators that are not here: what they hold, and what they may send and take at most.

They need requirements-ahead.txt: `make ahead`.
"""

import importlib.util
import math
from typing import Any

import pytest

from configs import iwslt14, lm, mlm, multi30k_best, qqp, wmt14
from one_layer.ahead.chips import Target
from one_layer.ahead.contents import Contents, contents
from one_layer.ahead.programs import Compiled, compiled
from one_layer.models import ModelConfig, shapes
from one_layer.runs.settings import RunConfig, resolve
from one_layer.system.cuda_graphs import keep_loops_on_gpu

keep_loops_on_gpu()  # before anything is compiled, as a run does

PACKAGES = ("jax_cuda12_plugin", "libtpu")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.ahead,
    pytest.mark.skipif(not all(map(importlib.util.find_spec, PACKAGES)), reason="needs requirements-ahead.txt"),
]

FIRST = 4  # the id of the first label
BFLOAT16 = {"model.dtype": "bfloat16"}
MODERN_1B3 = {
    "model.block": "modern",
    **BFLOAT16,
    "model.decoder_layers": 24,
    "model.d_model": 2048,
    "model.ffn": 5632,
    "model.heads": 16,
    "data.block": 1024,
    "data.max_tokens": 64 * 1024 * 8,
    "optim.accumulate": 8,
}
PROGRAMS = {
    "translation": (iwslt14, "one_layer_small", {}, "h100x8", 32),
    "translation on TPUs": (iwslt14, "one_layer_small", {}, "v5e-8", 32),
    "classification": (qqp, "one_layer_cpu", {}, "h100x8", 32),
    "masked language model": (mlm, "one_layer_mini", {}, "h100x8", 64),
    "causal language model": (lm, "one_layer_mini", {}, "h100x8", 256),
}


def run(module: Any, name: str, changes: dict[str, Any]) -> tuple[RunConfig, ModelConfig]:
    config = module.get_config(name)
    config.update_from_flattened_dict({"data.directory": ".", **changes})
    made = resolve(config.to_dict())
    labels = 2
    target = FIRST + labels if config.task == "classification" else 8848 if config.data.joined_vocabulary else 6632
    return made, made.model_config(8848, target)


def masked_weights(config: ModelConfig) -> int:
    return sum(math.prod(shape) for path, shape in shapes(config).items() if path[-1] == "scores")


def program(target: str) -> tuple[Compiled, Contents]:
    settings, config = run(iwslt14, "one_layer_small", BFLOAT16)
    there = Target.of(target)
    made = compiled(settings, config, there, 32, (there.number, 1))
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


def test_no_condition_copies_the_state(one_gpu):
    assert " conditional(" not in one_gpu[0].text


def test_devices_gather_the_bits_of_masks_alone(eight_gpus):
    bits = masked_weights(run(iwslt14, "one_layer_small", BFLOAT16)[1])
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
    few = {**BFLOAT16, "model.encoder_layers": layers, "model.decoder_layers": layers}
    settings, config = run(iwslt14, "one_layer_small", few)
    length = 32
    made = compiled(settings, config, Target.of("h100x2"), length, (1, 2))
    blocks = 2 + 3  # of an encoder's layer and of a decoder's
    arrays = layers * 2 * blocks + 2
    numbers = settings.optim.accumulate * made.rows * length * config.d_model * arrays
    reduced = sum(each.bytes for each in contents(made.text).transfers if each.operation == "all-reduce")
    assert 0.95 * 4 * numbers < reduced < 1.05 * 4 * numbers


def test_an_update_fits_into_an_eighth_of_a_gpu(one_gpu, eight_gpus):
    assert one_gpu[0].peak < 10e9 and eight_gpus[0].peak < one_gpu[0].peak / 2


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_update_sends_the_gradient_and_the_bits_of_masks_once(name):
    """With four micro-batches. Each device sends all but its own part of both; counts, norms and sums are small."""
    module, argument, changes, target, length = PROGRAMS[name]
    there = Target.of(target)
    few = {"optim.accumulate": 4, **BFLOAT16, "data.max_tokens": 4 * 8 * length, **changes}
    settings, config = run(module, argument, few)
    found = contents(compiled(settings, config, there, length, (there.number, 1)).text)
    trained = sum(math.prod(shape) for path, shape in shapes(config).items() if path[0] == "params")
    least = (4 * trained + masked_weights(config) / 8) * (there.number - 1) / there.number
    assert least <= 1.001 * sum(each.sent for each in found.transfers) <= 1.05 * least + 100_000


def test_wider_fits_into_a_fifteenth_of_eight_gpus():
    settings, config = run(wmt14, "one_layer_wider", {})
    assert compiled(settings, config, Target.of("h100x8"), 32, (8, 1)).peak < 80e9 / 15


def test_1_3_billion_masked_weights_fit_on_256_small_tpus():
    """The chips of `mesh.model` have parts of the vocabulary: they sum no logits."""
    settings, _ = run(lm, "one_layer_mini", MODERN_1B3)
    config = settings.model_config(32768, 32768)
    made = compiled(settings, config, Target.of("v5e-256"), 1024, (64, 4))
    assert masked_weights(config) > 1.29e9 and made.peak < 16e9 / 2
    logits = 4 * 1024 * 32768  # bytes of a row
    assert sum(each.bytes for each in contents(made.text).transfers if each.operation == "all-reduce") < logits


@pytest.mark.parametrize(
    ("module", "name", "changes", "gigabytes", "kernels"),
    [
        (iwslt14, "one_layer_small", {"data.max_tokens": 32768}, 65, 800),
        (iwslt14, "dense_small", {"data.max_tokens": 32768}, 73, 1040),
        (wmt14, "one_layer_wider", {"data.max_tokens": 32768, "optim.accumulate": 1}, 160, 800),
        (multi30k_best, "best", {}, 6.1, 605),
    ],
    ids=["small", "dense small", "wider", "best"],
)
def test_what_an_update_on_one_gpu_reads_and_writes(module, name, changes, gigabytes, kernels):
    """Bounds just above what was reached: with loops over layers, it was more than twice as much (docs/devices.md)."""
    settings, config = run(module, name, {**BFLOAT16, **changes})
    found = contents(compiled(settings, config, Target.of("h100"), 32, (1, 1)).text)
    assert found.bytes < gigabytes * 1e9 and found.kernels < kernels

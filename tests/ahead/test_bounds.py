"""What an update may send and take at most, compiled for machines that are not here. They need requirements-ahead.txt: `make ahead`."""

from __future__ import annotations

import importlib.util
import math
from typing import Any

import pytest

from configs import iwslt14, lm, mlm, multi30k_best, qqp, wmt14
from one_layer.ahead.chips import Target
from one_layer.ahead.contents import contents
from one_layer.ahead.programs import compiled
from one_layer.models import ModelConfig, shapes
from one_layer.runs.settings import RunConfig, resolve
from one_layer.system.cuda_graphs import keep_loops_on_gpu

keep_loops_on_gpu()  # before anything is compiled, as a run does

pytestmark = [
    pytest.mark.slow,
    pytest.mark.ahead,
    pytest.mark.skipif(importlib.util.find_spec("jax_cuda12_plugin") is None, reason="needs requirements-ahead.txt"),
    pytest.mark.skipif(importlib.util.find_spec("libtpu") is None, reason="needs requirements-ahead.txt"),
]

FIRST = 4  # the id of the first label
MODERN_1B3 = {
    "model.block": "modern",
    "model.dtype": "bfloat16",
    "model.decoder_layers": 24,
    "model.d_model": 2048,
    "model.ffn": 5632,
    "model.heads": 16,
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
    return made, made.model_config(8848, FIRST + labels if config.task == "classification" else 6632)


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_update_sends_the_gradient_and_the_bits_of_masks_once(name):
    """With four micro-batches. Each device sends all but its own part of both; counts, norms and sums are small."""
    module, argument, changes, target, length = PROGRAMS[name]
    there = Target.of(target)
    few = {"optim.accumulate": 4, "model.dtype": "bfloat16", "data.max_tokens": 4 * 8 * length, **changes}
    settings, config = run(module, argument, few)
    found = contents(compiled("step", settings, config, there, length, (there.number, 1)).text)
    sizes = {path: math.prod(shape) for path, shape in shapes(config).items() if path[0] == "params"}
    bits = sum(size for path, size in sizes.items() if path[-1] == "scores")
    least = (4 * sum(sizes.values()) + bits / 8) * (there.number - 1) / there.number
    assert least <= 1.001 * sum(each.sent for each in found.transfers) <= 1.05 * least + 100_000


@pytest.mark.parametrize(
    ("module", "name", "changes", "gigabytes", "kernels"),
    [
        (iwslt14, "one_layer_small", {"data.max_tokens": 32768}, 66, 930),
        (iwslt14, "dense_small", {"data.max_tokens": 32768}, 74, 1100),
        (wmt14, "one_layer_wider", {"data.max_tokens": 32768, "optim.accumulate": 1}, 161, 920),
        (multi30k_best, "best", {}, 6.5, 630),
    ],
    ids=["small", "dense small", "wider", "best"],
)
def test_what_an_update_on_one_gpu_reads_and_writes(module, name, changes, gigabytes, kernels):
    """Bounds just above what was reached: with loops over layers, it was more than twice as much (docs/devices.md)."""
    settings, config = run(module, name, {"model.dtype": "bfloat16", **changes})
    found = contents(compiled("step", settings, config, Target.of("h100"), 32, (1, 1)).text)
    assert found.bytes < gigabytes * 1e9 and found.kernels < kernels


def test_wider_fits_into_a_fifteenth_of_eight_gpus():
    settings, config = run(wmt14, "one_layer_wider", {})
    assert compiled("step", settings, config, Target.of("h100x8"), 32, (8, 1)).peak < 80e9 / 15


def test_1_3_billion_masked_weights_fit_on_256_small_tpus():
    """The chips of `mesh.model` have parts of the vocabulary: they sum no logits."""
    settings, _ = run(lm, "one_layer_artifact", MODERN_1B3)
    config = settings.model_config(32768, 32768)
    scores = sum(math.prod(shape) for path, shape in shapes(config).items() if path[-1] == "scores")
    made = compiled("step", settings, config, Target.of("v5e-256"), 1024, (64, 4))
    assert scores > 1.29e9 and made.peak < 16e9 / 2
    logits = 4 * 1024 * 32768  # bytes of a row
    assert sum(each.bytes for each in contents(made.text).transfers if each.operation == "all-reduce") < logits

"""Programs compiled for accelerators that are not here. They need requirements-ahead.txt: `make ahead`."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from configs import iwslt14
from one_layer.ahead.chips import Target
from one_layer.ahead.contents import Contents, contents
from one_layer.ahead.programs import Compiled, compiled
from one_layer.runs.settings import resolve

pytestmark = [
    pytest.mark.slow,
    pytest.mark.ahead,
    pytest.mark.skipif(importlib.util.find_spec("jax_cuda12_plugin") is None, reason="needs requirements-ahead.txt"),
]


def program(target: str, name: str = "step", **changes: Any) -> tuple[Compiled, Contents]:
    config = iwslt14.get_config("one_layer_small")
    config.data.directory = "."
    with config.unlocked():
        config.update_from_flattened_dict({"model.dtype": "bfloat16", **changes})
    run, there = resolve(config.to_dict()), Target.of(target)
    made = compiled(name, run, run.model_config(8848, 6632), there, 32, (there.number, 1))
    return made, contents(made.text)


@pytest.fixture(scope="module")
def one_gpu():
    return program("h100")


@pytest.fixture(scope="module")
def eight_gpus():
    return program("h100x8")


def test_every_product_of_a_bfloat16_step_has_bfloat16_factors_and_float32_sums(one_gpu):
    assert set(one_gpu[1].products) == {"bf16 x bf16 -> f32"}


def test_devices_gather_the_bits_of_masks_alone(eight_gpus):
    """The trained tables besides, which have no masks in this config."""
    masked = 6 * (4 * 512 * 512 + 2 * 512 * 1024) + 6 * (8 * 512 * 512 + 2 * 512 * 1024)
    gathered = [
        each
        for each in eight_gpus[1].transfers
        if each.operation == "all-gather" and "sharding_constraint" in each.made_by
    ]
    assert sum(each.bytes for each in gathered) == pytest.approx(masked / 8, rel=0.01)


def test_an_update_fits_into_an_eighth_of_a_gpu(one_gpu, eight_gpus):
    assert one_gpu[0].peak < 10e9 and eight_gpus[0].peak < one_gpu[0].peak / 2


def test_a_search_has_bfloat16_products_alone():
    assert set(program("h100", "search")[1].products) == {"bf16 x bf16 -> f32"}

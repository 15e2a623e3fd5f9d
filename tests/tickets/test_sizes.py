"""The paper's models as tickets: a bit a masked weight, and little more."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from configs.common import SIZES
from one_layer import tickets
from one_layer.data.config import DataConfig
from one_layer.models import ModelConfig, recipes, shapes
from one_layer.tasks import TASKS
from one_layer.tasks.translation.settings import SearchSettings
from one_layer.tickets import content as ticket_content
from tests.fuzz_tickets import assets

IWSLT14, WMT14 = (8848, 6632), (41_000, 41_000)
PAPER = [("small", 4.9), ("wide", 17.7), ("deep", 8.9), ("base", 10.8), ("wider", 32.5), ("deeper", 16.3)]


@pytest.mark.parametrize(("size", "megabytes"), PAPER)
def test_the_paper_s_models_take_a_bit_a_weight(size, megabytes):
    """Half of random bits set, and a vocabulary and codes of about as many bytes as real ones."""
    d_model, ffn, heads, layers = SIZES[size]
    sizes = {"d_model": d_model, "ffn": ffn, "heads": heads, "encoder_layers": layers, "decoder_layers": layers}
    config = ModelConfig(*(WMT14 if size.startswith(("base", "wider", "deeper")) else IWSLT14), **sizes)
    masks, dice, bits = {}, np.random.default_rng(0), 0
    for path, shape in shapes(config).items():
        if path[-1] == "scores":
            halves = dice.integers(0, 256, (*shape[:-2], shape[-2] * shape[-1] // 16), np.uint8)
            masks[*path[1:-1], "mask"] = np.concatenate([halves, ~halves], axis=-1)
            bits += math.prod(shape)
    # Whoever has drawn a matrix need not draw it again: none is, here.
    drawn = {
        module: ticket_content.Drawn(recipe, "", np.zeros((1, 1), np.float32))
        for module, recipe in recipes(config).items()
    }
    texts = assets(config)
    if config.source_vocab == config.target_vocab:  # a joined dictionary, with a table a side
        texts = dataclasses.replace(texts, target_vocabulary=texts.source_vocabulary)
    settings = (TASKS["translation"], config, 1, 0, DataConfig(), SearchSettings())
    made = tickets.Ticket(*settings, assets=texts, masks=masks, drawn=drawn, arrays={})
    content, found = ticket_content.to_bytes(made)
    text = sum(size for name, size in found.items() if name.startswith("text/"))
    assert bits / 8e6 == pytest.approx(megabytes, abs=0.06)
    assert len(content) - text < bits / 8 + 12_000
    assert len(content) <= 1.02 * (bits / 8 + 300_000)

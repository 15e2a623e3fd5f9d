"""Tickets of random masks and numbers, made with NumPy alone: nothing is drawn, selected or compiled."""

from __future__ import annotations

import numpy as np

from one_layer.data.config import DataConfig
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.preprocess import Preprocessing
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.models import ModelConfig, recipes, shapes
from one_layer.supermask import kept_count
from one_layer.tasks import TASKS
from one_layer.tickets.content import Drawn, Ticket

DICE = np.random.default_rng(0)
VOCABULARIES = (Vocabulary.build([" ".join(f"w{number}" for number in range(size))]) for size in (8, 2))
ASSETS = TextAssets(*VOCABULARIES, Preprocessing("de"), Preprocessing("en"))
# The shapes of the matrices are few: 12 × 6, and 6 × 6, whose 36 bits do not fill their bytes.
CONFIG = ModelConfig(12, 6, d_model=6, ffn=6, heads=2, encoder_layers=2, decoder_layers=3, keep=0.3, norm="affine")


def packed(mask: np.ndarray) -> np.ndarray:
    return np.packbits(mask.reshape(*mask.shape[:-2], -1), axis=-1, bitorder="little")


def masks_of(shape: tuple[int, ...], count: int) -> np.ndarray:
    """Random masks of rows and columns that keep so many weights each."""
    size = shape[-2] * shape[-1]
    return DICE.permuted(np.broadcast_to(np.arange(size) < count, (*shape[:-2], size)), axis=-1).reshape(shape)


def ticket_of(config: ModelConfig = CONFIG, stored: str = "encoder/ffn/in") -> Ticket:
    """The seed gives all random matrices but the one of the role `stored`."""
    masks, arrays, drawn, made = {}, {}, {}, recipes(config)
    for path, shape in shapes(config).items():
        module = path[1:-1]
        if path[-1] == "scores":
            mask = masks_of(shape, kept_count(shape[-2] * shape[-1], config.keep))
            masks[*module, "mask"] = packed(mask)
            if config.selection == "signed_threshold":
                masks[*module, "sign"] = packed(mask & (DICE.random(shape) < 0.5))
        elif path[0] == "random" and made[module].role != stored:
            weights = DICE.normal(size=shape).astype(np.float32)
            drawn[module] = Drawn(made[module], "5", weights)
        else:
            arrays[path] = DICE.normal(size=shape).astype(np.float32)
    settings = (TASKS["translation"], config, 1, 9, DataConfig(), TASKS["translation"].settings())
    made_of = {"checkpoint": "average:3", "training": {"optim": {"lr": 0.1}, "train": {"updates": 9}}}
    return Ticket(*settings, **made_of, assets=ASSETS, masks=masks, drawn=drawn, arrays=arrays)

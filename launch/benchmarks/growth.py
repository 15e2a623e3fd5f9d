"""How the time of decoding grows with beam, batch, length and depth, and that of training with width and depth.

One quantity varies at a time; the others stay at those of the size. Beside each time stands the count of operations.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from configs.common import SIZES
from launch.benchmarks.decode import BEAM, longest, searcher
from launch.benchmarks.workloads import IWSLT14_VOCABULARIES, LENGTH, PAIRS, Training, in_turn, model_of, random_batch
from one_layer.layers.materializing import materialize
from one_layer.models import ModelConfig, initialize
from one_layer.models.flops import update_flops
from one_layer.models.parts import matrices
from one_layer.system.files import write_atomically

DECODING: dict[str, tuple[int, ...]] = {
    "beam": (1, 2, 5, 10, 20),
    "sentences": (1, 8, 32, 128),
    "tokens": (12, 24, 48, 96),
    "layers": (1, 3, 6, 12),
}
TRAINING: dict[str, tuple[int, ...]] = {"width": (128, 256, 512, 1024), "layers": (1, 3, 6, 12)}


def measure(size: str, quick: bool) -> dict[str, Any]:
    """Measures searches with beam 5 for 32 sentences of 24 tokens, and updates on 32 pairs of 24+24 tokens, around the given size.

    A search runs to the maximal length, because random models seldom end a sentence. Masks are applied before it. `width` is d_model, and
    feed-forward networks are twice as wide. Each update is measured with masks at keep 0.5, and dense, in turn.
    """
    width, _, _, layers = SIZES[size]
    values = slice(2 if quick else None)
    start = {"beam": BEAM, "sentences": PAIRS, "tokens": LENGTH, "layers": layers}
    decoding = [
        _decoded(size, name, {**start, name: value}, 1 if quick else 3)
        for name, several in DECODING.items()
        for value in several[values]
    ]
    training = [
        _trained(name, {"width": width, "layers": layers, name: value}, 1 if quick else 5)
        for name, several in TRAINING.items()
        for value in several[values]
    ]
    return {"decoding": decoding, "training": training}


def decoding_flops(config: ModelConfig, sentences: int, beam: int, length: int, steps: int) -> int:
    """The operations of a beam search of `steps` steps for `sentences` of `length` tokens, counted as in one_layer/models/flops.py.

    The encoder, and the keys and values of cross-attention, are computed once for each sentence; all else once for each beam and step.
    """
    read, written = sentences * length, sentences * beam * steps
    total = 2 * written * config.d_model * config.target_vocab
    for part in matrices(config):
        once = part.stack == "encoder" or ("cross_attention" in part.path and part.path[-1] in ("key", "value"))
        total += part.per_layer(config) * 2 * (read if once else written) * part.shape[0] * part.shape[1]
    encoders, decoders = (len(config.stack(stack).numbers) for stack in ("encoder", "decoder"))
    pairs = encoders * read * length + decoders * written * (length + (steps + 1) / 2)  # of a query and a key
    return round(total + 4 * config.d_model * pairs)  # two products, of each query with keys and of weights with values


def draw(result: dict[str, Any], path: Path) -> None:
    """Draws the seconds against the operations as an SVG file: a line for each quantity that varies."""
    from one_layer.report.drawing import COLOURS, MARKERS, legend, new_axes, standalone, svg

    figure, axes = new_axes("billions of operations", "seconds")
    axes.set_xscale("log")
    axes.set_yscale("log")
    kinds = {"decoding": "seconds", "training": "masked_seconds"}
    lines = [(kind, varied) for kind, known in (("decoding", DECODING), ("training", TRAINING)) for varied in known]
    for place, (kind, varied) in enumerate(lines):
        rows = [row for row in result[kind] if row["varied"] == varied]
        axes.plot(
            [row["gigaflops"] for row in rows],
            [row[kinds[kind]] for row in rows],
            "-" if kind == "decoding" else "--",
            color=COLOURS[place % len(COLOURS)],
            marker=MARKERS[place % len(MARKERS)],
            markersize=4,
            linewidth=1.2,
            label=f"{kind}: {varied} {', '.join(str(row[varied]) for row in rows)}",
        )
    legend(figure)
    write_atomically(path, standalone(svg(figure, path.stem)))


def _decoded(size: str, varied: str, at: dict[str, int], rounds: int) -> dict[str, Any]:
    config = model_of("one_layer", size, layers=at["layers"])
    variables = jax.jit(materialize, static_argnums=1)(initialize(config, 0), config.supermask)
    source = (
        np.random.default_rng(0)
        .integers(4, min(IWSLT14_VOCABULARIES), (at["sentences"], at["tokens"]))
        .astype(np.int32)
    )
    search = searcher(config, variables, source, at["beam"])
    seconds = in_turn({"search": partial(search, variables, source)}, rounds)["search"]
    steps = longest(at["tokens"]) + 1
    flops = decoding_flops(config, at["sentences"], at["beam"], at["tokens"], steps)
    return {"varied": varied, **at, "steps": steps, "seconds": seconds, "gigaflops": flops / 1e9}


def _trained(varied: str, at: dict[str, int], rounds: int) -> dict[str, Any]:
    models = {
        f"{name}_seconds": ModelConfig(
            *IWSLT14_VOCABULARIES, at["width"], 2 * at["width"], 4, at["layers"], at["layers"], weights=weights
        )
        for name, weights in {"masked": "one_layer", "dense": "dense"}.items()
    }
    seconds = in_turn({name: Training(config, random_batch()) for name, config in models.items()}, rounds)
    flops = update_flops(models["masked_seconds"], PAIRS, LENGTH, LENGTH)
    ratio = seconds["masked_seconds"] / seconds["dense_seconds"]
    return {"varied": varied, **at, **seconds, "ratio": ratio, "gigaflops": flops / 1e9}

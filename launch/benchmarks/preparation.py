"""Measures lines of made-up text per second: each step on one core, and the preparation in shards on one core and on all cores."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from launch.benchmarks.workloads import made_up_words
from one_layer.data import loading
from one_layer.data.config import DataConfig
from one_layer.data.preparation.shards import ShardedPreparation
from one_layer.data.text.cleaning import LengthFilter
from one_layer.data.text.preprocess import Preprocessing, learn_bpe

MERGES = 2_000
LANGUAGES = ("de", "en")


def prepare(pairs: int) -> list[dict[str, Any]]:
    """Returns one row per step with `lines_per_second`: lines of both sides, of about 20 words each, processed once.

    The steps: `tokenize` is Moses' normalisation and tokenisation, with lower-casing. `learn` learns 2,000 merges, and `split`
    applies them. `load` is the whole of `one_layer.data.loading.load`, from files to ids. `shards` is all that
    launch/prepare_wmt14.py does with its text.
    """
    raw = [_lines(pairs, seed) for seed in range(2)]
    steps = [Preprocessing(language, tokenize=True, lowercase=True) for language in LANGUAGES]
    rows: list[dict[str, Any]] = []

    def timed(step: str, run: Callable[[], Any], processes: int = 1) -> Any:
        start = time.perf_counter()
        made = run()
        rate = 2 * pairs / (time.perf_counter() - start)
        rows.append({"step": step, "processes": processes, "lines_per_second": rate})
        return made

    words = timed("tokenize", lambda: [step.words(side) for step, side in zip(steps, raw, strict=True)])
    codes = timed("learn", lambda: learn_bpe([line for side in words for line in side], MERGES))
    timed("split", lambda: [Preprocessing("en", codes=codes).subwords(side) for side in words])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for language, side in zip(LANGUAGES, raw, strict=True):
            for part, lines in (("train", side), ("valid", side[:10]), ("test", side[:10])):
                (folder / f"{part}.{language}").write_text("".join(line + "\n" for line in lines), "utf-8")
        config = DataConfig("text", directory=name, tokenize=True, lowercase=True, bpe_merges=MERGES)
        timed("load", lambda: loading.load(config))
        for processes in sorted({1, os.cpu_count() or 1}):
            work = folder / f"work{processes}"
            sharded = ShardedPreparation(
                work, (steps[0], steps[1]), LengthFilter(), MERGES, 100, -(-pairs // 8), processes
            )
            timed("shards", partial(sharded.run, list(zip(*raw, strict=True)), work), processes)
    return rows


def _lines(count: int, seed: int) -> list[str]:
    """Returns sentences with word frequencies that follow Zipf's law, and with capitals, commas and full stops."""
    random, words = np.random.default_rng(seed), np.array(made_up_words(50_000))
    ranks = np.minimum(random.zipf(1.2, (count, 20)) - 1, len(words) - 1)
    return [
        f"{' '.join(first).capitalize()}, {' '.join(rest)}."
        for first, rest in zip(words[ranks[:, :8]], words[ranks[:, 8:]], strict=True)
    ]

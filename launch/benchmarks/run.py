"""Compares a whole training with its updates alone."""

import logging
import statistics
import time
from contextlib import closing
from tempfile import TemporaryDirectory
from typing import Any

import jax
import jax.numpy as jnp

from configs import toy
from configs.common import set_size
from one_layer.runs.settings import RunConfig, resolve
from one_layer.training.beginning import opened
from one_layer.training.course import course
from one_layer.training.interruption import Interruption
from one_layer.training.trainer import Trainer

TOKENS = 4096


def measure(size: str, quick: bool) -> dict[str, Any]:
    """Measures rows of updates of a training on the built-in language, and the same updates without anything between them, in turn.

    `update_seconds` and `course_seconds` are those of one update, alone and in the training, which reads text, places batches, fetches
    metrics and writes them; `of_update` is the first divided by the second. `with_evaluations` divides the time of all updates alone by
    that of the whole training with its evaluations and checkpoints, of which there is one in four rows.
    """
    row, rows = (5, 4) if quick else (25, 12)
    logging.disable(logging.INFO)
    try:
        with TemporaryDirectory() as folder, opened(_config(size, row, rows), folder) as ready:
            trainer = Trainer(ready)
            with closing(trainer.checkpoints), Interruption() as interruption:
                trainer.restore()
                alone, together = _rows(trainer, interruption, row, rows)
    finally:
        logging.disable(logging.NOTSET)
    update, in_course = (statistics.median(seconds) / row for seconds in (alone, together))
    return {
        "tokens": TOKENS,
        "updates": row * rows,
        "update_seconds": update,
        "course_seconds": in_course,
        "of_update": update / in_course,
        "with_evaluations": update * row * rows / sum(together),
    }


def _rows(trainer: Trainer, interruption: Interruption, row: int, rows: int) -> tuple[list[float], list[float]]:
    """The seconds of each row of updates: alone, and in the course of the training. A row that compiles is not counted."""
    alone, together = [], []
    requests = course(trainer, interruption)
    params, moments = jax.tree.map(jnp.copy, (trainer.params, trainer.moments))
    for number in range(rows + 1):
        batches = []
        began = time.perf_counter()
        for _ in range(row):
            batch, place = next(requests)
            batches.append((batch, place))
            trainer.update(batch, place)
        jax.block_until_ready(trainer.sums)
        between = time.perf_counter()
        for batch, place in batches:
            params, moments, sums = trainer.step(params, moments, trainer.fixed, *trainer.given(batch, place))
        jax.block_until_ready(sums)
        if number:
            together.append(between - began)
            alone.append(time.perf_counter() - between)
    return alone, together


def _config(size: str, row: int, rows: int) -> RunConfig:
    config = toy.get_config()
    set_size(config, size)
    config.model.dtype = "float32" if jax.default_backend() == "cpu" else "bfloat16"
    config.data.max_tokens, config.data.buckets, config.data.tests = TOKENS, 1, ()
    config.train.update(updates=row * (rows + 2), epochs=0, patience=0, evaluate_every=4 * row, select="nll")
    config.optim.warmup, config.evaluation.valid_beam = 1, 0
    return resolve(config.to_dict())

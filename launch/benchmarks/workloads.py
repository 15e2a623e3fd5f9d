"""What the benchmarks measure: models, tickets, batches and training updates; and the timing of alternatives that run in turn."""

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from configs.common import SIZES
from one_layer import tickets
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.preprocess import Preprocessing
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.models import ModelConfig, initialize
from one_layer.tasks import TASKS
from one_layer.training.optimizer import OptimConfig, optimizer, pace
from one_layer.training.step import train_step

IWSLT14_VOCABULARIES = (8848, 6632)
WMT14_VOCABULARIES = (41_000, 41_000)
WMT14_SIZES = ("base", "wider", "deeper")  # tickets of these sizes have WMT14's vocabularies
PAIRS, LENGTH = 32, 24


class Training:
    """A model in training. Each call makes so many updates, one after the other, and returns the sums of the last one."""

    def __init__(self, config: ModelConfig, batch: dict[str, np.ndarray]) -> None:
        adam = optimizer(OptimConfig())
        variables = initialize(config, 0)
        params = variables.pop("params")
        self._state = params, adam.init(params)
        self._fixed, self._batch, self._number, self._pace = variables, batch, 0, pace(OptimConfig(), 1)
        self._step = train_step(TASKS["translation"], config, adam, 0.1, 0)

    def __call__(self, updates: int = 1) -> Any:
        for _ in range(updates):
            params, moments, sums = self._step(*self._state, self._fixed, self._batch, self._number, self._pace)
            self._state, self._number = (params, moments), self._number + 1
        return sums


def model_of(weights: str, size: str, vocabularies: tuple[int, int] = IWSLT14_VOCABULARIES) -> ModelConfig:
    """Returns the config of a model of size `size`; `weights` has the values of `ModelConfig.weights`."""
    d, ffn, heads, layers = SIZES[size]
    return ModelConfig(*vocabularies, d, ffn, heads, encoder_layers=layers, decoder_layers=layers, weights=weights)


def random_ticket(size: str) -> tickets.Ticket:
    """Returns the ticket of a one-layer model with random scores at keep 0.5.

    Its vocabularies are made up, have the sizes of the paper's task, and come without BPE codes.
    """
    config = model_of("one_layer", size, WMT14_VOCABULARIES if size in WMT14_SIZES else IWSLT14_VOCABULARIES)
    source, target = (
        Vocabulary.build([" ".join(made_up_words(n - 4))]) for n in (config.source_vocab, config.target_vocab)
    )
    assets = TextAssets(source, target, Preprocessing("de"), Preprocessing("en"))
    return tickets.make(config, 1, initialize(config, 1), assets)


def made_up_words(count: int) -> list[str]:
    """Returns `count` different words of five letters."""
    letters = "etaonrishdlfcmugypwb"
    return ["".join(letters[number // 20**place % 20] for place in range(5)) for number in range(count)]


def random_batch(vocabulary: int = min(IWSLT14_VOCABULARIES), pairs: int = PAIRS) -> dict[str, np.ndarray]:
    """Returns `source`, `target_in` and `target` of one micro-batch: random ids without pads, int32 [1, pairs, LENGTH]."""
    tokens = np.random.default_rng(0).integers(4, vocabulary, (3, 1, pairs, LENGTH)).astype(np.int32)
    return dict(zip(("source", "target_in", "target"), tokens, strict=True))


def in_turn(sides: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Runs all sides in turn and returns the median seconds of each. The first call of each compiles and is not counted."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for measured in [False] + [True] * rounds:
        for name, side in sides.items():
            start = time.perf_counter()
            jax.block_until_ready(side())
            if measured:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}

"""A size and vocabularies of models so small that every benchmark takes little time."""

from functools import partial

import pytest

from configs.common import SIZES
from launch.benchmark import BENCHMARKS
from launch.benchmarks import workloads

VOCABULARIES = (90, 80)


@pytest.fixture
def small(monkeypatch):
    """The size `tiny`, and vocabularies that take little time in the models and batches of all benchmarks."""
    monkeypatch.setitem(SIZES, "tiny", (16, 32, 2, 4))
    smaller = {
        "IWSLT14_VOCABULARIES": VOCABULARIES,
        "model_of": partial(workloads.model_of, vocabularies=VOCABULARIES),
        "random_batch": partial(workloads.random_batch, min(VOCABULARIES)),
    }
    monkeypatch.setattr(workloads, "IWSLT14_VOCABULARIES", VOCABULARIES)
    for module in BENCHMARKS.values():
        for name in smaller.keys() & vars(module).keys():
            monkeypatch.setattr(module, name, smaller[name])

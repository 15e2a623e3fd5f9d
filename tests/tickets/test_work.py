"""What a ticket may ask for leaves room for every honest model, and grows with all that costs memory or time."""

from __future__ import annotations

import dataclasses

import jax
import pytest

from configs import common
from one_layer.errors import UserError
from one_layer.models import ModelConfig, empty_cache
from one_layer.runs.settings import EvaluationConfig
from one_layer.tickets.work import check_work, line_bytes, line_operations

SMALL = ModelConfig(1000, 1000, d_model=64, ffn=128, heads=4, encoder_layers=2, decoder_layers=2)


@pytest.mark.parametrize("size", common.SIZES)
@pytest.mark.parametrize("search", [{"beam": 50}, {"max_tokens": 2**16}, {"beam": 10, "max_length_b": 200}])
def test_the_papers_models_and_generous_searches_are_taken(size, search):
    d_model, ffn, heads, layers = common.SIZES[size]
    config = ModelConfig(42_000, 42_000, d_model, ffn, heads, encoder_layers=layers, decoder_layers=layers)
    check_work(config, EvaluationConfig(**search))


@pytest.mark.parametrize("name", ["d_model", "ffn", "encoder_layers", "decoder_layers", "target_vocab"])
def test_operations_grow_with_every_size(name):
    larger = SMALL.replace(**{name: 8 * getattr(SMALL, name)})
    search = EvaluationConfig()
    assert line_operations(larger, search, 50) > line_operations(SMALL, search, 50)
    assert line_bytes(larger, search, 50) >= line_bytes(SMALL, search, 50)


@pytest.mark.parametrize("name", ["beam", "max_length_a", "max_length_b"])
def test_a_wider_search_takes_more_of_both(name):
    search = EvaluationConfig()
    wider = dataclasses.replace(search, **{name: 4 * getattr(search, name)})
    for need in (line_bytes, line_operations):
        assert need(SMALL, wider, 50) > need(SMALL, search, 50)


def test_the_cache_is_counted_in_full():
    search, tokens = EvaluationConfig(beam=7), 40
    longest = int(search.max_length_a * tokens + search.max_length_b)
    cache = jax.eval_shape(lambda: empty_cache(SMALL, search.beam, longest + 1))
    size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(cache))
    assert size < line_bytes(SMALL, search, tokens) < 10 * size


def test_depth_and_words_are_bounded_by_themselves():
    for change in ({"encoder_layers": 257}, {"decoder_layers": 257}, {"source_vocab": 2**20 + 1}):
        (name, number), *_ = change.items()
        with pytest.raises(UserError, match=f"model.{name} is {number:,}; a ticket's is at most {number - 1:,}"):
            check_work(SMALL.replace(**change), EvaluationConfig())

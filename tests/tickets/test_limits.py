"""What a ticket may ask for leaves room for every honest model, and grows with all that costs memory or time."""

from __future__ import annotations

import jax
import pytest

from configs import common
from one_layer.data.config import DataConfig
from one_layer.errors import UserError
from one_layer.layers.attention import empty_cache
from one_layer.models import ModelConfig
from one_layer.tasks import TASKS
from one_layer.tasks.translation.settings import SearchSettings
from one_layer.tickets.limits import check_work
from one_layer.tickets.settings import Settings

SMALL = ModelConfig(1000, 1000, d_model=64, ffn=128, heads=4, encoder_layers=2, decoder_layers=2)
TASK = TASKS["translation"]


def work(config: ModelConfig, **search):
    return TASK.line_work(config, SearchSettings(**search), 50)


def check(config: ModelConfig, **search) -> None:
    check_work(Settings(TASK, config, 1, 0, DataConfig(), SearchSettings(**search)))


@pytest.mark.parametrize("size", common.SIZES)
@pytest.mark.parametrize("search", [{"beam": 50}, {"max_tokens": 2**16}, {"beam": 10, "max_length_b": 200}])
def test_the_papers_models_and_generous_searches_are_taken(size, search):
    d_model, ffn, heads, layers = common.SIZES[size]
    check(ModelConfig(42_000, 42_000, d_model, ffn, heads, encoder_layers=layers, decoder_layers=layers), **search)


@pytest.mark.parametrize("name", ["d_model", "ffn", "encoder_layers", "decoder_layers", "target_vocab"])
def test_operations_grow_with_every_size(name):
    larger, smaller = work(SMALL.replace(**{name: 8 * getattr(SMALL, name)})), work(SMALL)
    assert larger.operations > smaller.operations and larger.bytes >= smaller.bytes


@pytest.mark.parametrize("name", ["beam", "max_length_a", "max_length_b"])
def test_a_wider_search_takes_more_of_both(name):
    wider, usual = work(SMALL, **{name: 4 * getattr(SearchSettings(), name)}), work(SMALL)
    assert wider.bytes > usual.bytes and wider.operations > usual.operations


def test_a_translation_takes_more_than_its_encoder():
    encoder = SMALL.replace(family="classifier", decoder_layers=0)
    assert work(SMALL).bytes > TASKS["classification"].line_work(encoder, None, 50).bytes > 0


def test_the_cache_is_counted_in_full():
    longest = int(1.2 * 50 + 10) + 1
    cache = jax.eval_shape(lambda: empty_cache(1, 7, longest, SMALL.heads, SMALL.d_model // SMALL.heads, "float32"))
    size = SMALL.decoder_layers * sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(cache))
    assert size < work(SMALL, beam=7).bytes < 10 * size


def test_depth_and_words_are_bounded_by_themselves():
    for change in ({"encoder_layers": 257}, {"decoder_layers": 257}, {"source_vocab": 2**20 + 1}):
        (name, number), *_ = change.items()
        with pytest.raises(UserError, match=f"model.{name} is {number:,}; a ticket's is at most {number - 1:,}"):
            check(SMALL.replace(**change))

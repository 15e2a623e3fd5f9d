"""What a ticket may ask for leaves room for every honest model, and grows with all that costs memory or time."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import pytest

from configs import common
from one_layer.data.config import DataConfig
from one_layer.initializers import Recipe
from one_layer.models import ModelConfig, initialize
from one_layer.system.errors import UserError
from one_layer.tasks import TASKS
from one_layer.tasks.translation.generate import search
from one_layer.tasks.translation.settings import SearchSettings
from one_layer.tasks.work import Work, search_work
from one_layer.tickets.limits import check_drawing, check_work
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


def test_work_grows_with_every_size_and_with_a_wider_search():
    usual = work(SMALL)
    for name in ("d_model", "ffn", "encoder_layers", "decoder_layers", "target_vocab"):
        larger = work(SMALL.replace(**{name: 8 * getattr(SMALL, name)}))
        assert larger.operations > usual.operations and larger.bytes >= usual.bytes, name
    for name in ("beam", "max_length_a", "max_length_b"):
        wider = work(SMALL, **{name: 4 * getattr(SearchSettings(), name)})
        assert wider.bytes > usual.bytes and wider.operations > usual.operations, name
    encoder = SMALL.replace(family="classifier", decoder_layers=0)
    assert usual.bytes > TASKS["classification"].line_work(encoder, None, 50).bytes > 0


NARROW = ModelConfig(50, 50, d_model=32, ffn=8, heads=4, encoder_layers=1, decoder_layers=1)


def test_the_estimate_is_what_the_compiler_allocates():
    variables, tokens, beam, longest = jax.eval_shape(lambda: initialize(NARROW, 1)), 16, 300, 64
    source = jax.ShapeDtypeStruct((1, tokens), jnp.int32)
    program = jax.jit(partial(search, NARROW, beam=beam, max_length=longest - 1, length_penalty=1.0))
    memory = program.lower(variables, source).compile().memory_analysis()
    taken = memory.temp_size_in_bytes + memory.output_size_in_bytes
    assert taken > 10**7  # else what is tested is not most of it
    assert 0.9 * taken < search_work(NARROW, tokens, beam, longest).bytes < 1.5 * taken


def test_small_models_whose_search_takes_gigabytes_are_refused():
    with pytest.raises(UserError, match="bytes for a line; a ticket may take at most 2,147,483,648"):
        check(NARROW.replace(d_model=8, heads=1), beam=1000, max_length_a=0.0, max_length_b=10_000)


def test_a_context_of_gigabytes_is_refused():
    """A language model keeps the keys and values of a whole context, however short a line is."""
    task = TASKS["causal_lm"]
    deep = ModelConfig(260, 260, d_model=128, ffn=128, heads=4, encoder_layers=0, decoder_layers=256, family="decoder")
    small, large = (
        Settings(task, deep, 1, 0, DataConfig(source="plain", directory="there", block=block), task.settings())
        for block in (512, 2**16)
    )
    check_work(small)
    with pytest.raises(UserError, match=r"with data.block 65536, .* bytes for a context; a ticket may take at most"):
        check_work(large)


@pytest.mark.parametrize("name", ["encoder_layers", "decoder_layers", "source_vocab", "target_vocab"])
def test_depth_and_words_are_bounded_by_themselves(name):
    most = 256 if name.endswith("layers") else 2**20
    check(SMALL.replace(**{name: most}), beam=1)
    with pytest.raises(UserError, match=f"model.{name} is {most + 1:,}; a ticket's is at most {most:,}"):
        check(SMALL.replace(**{name: most + 1}))


@pytest.mark.parametrize(
    ("lines", "most", "what"),
    [
        ({256: Work(2**31, 0)}, {256: Work(2**31 + 1, 0)}, "2,147,483,649 bytes for a line.* 2,147,483,648$"),
        (
            {256: Work(0, 2**43)},
            {256: Work(0, 2**43 + 1)},
            "8,796,093,022,209 operations for a line.* 8,796,093,022,208$",
        ),
        ({16: Work(2**34, 0)}, {16: Work(2**34 + 1, 0)}, "549,755,813,920 bytes for a batch.* 549,755,813,888$"),
    ],
)
def test_each_limit_is_of_a_long_line_or_of_a_batch_of_short_ones(monkeypatch, lines, most, what):
    """A batch of 512 tokens has 32 lines of 16."""
    work = dict(lines)
    monkeypatch.setattr(type(TASK), "line_work", lambda self, c, e, tokens: work.get(tokens, Work(0, 0)))
    check(SMALL, max_tokens=512)
    work = most
    with pytest.raises(UserError, match=what):
        check(SMALL, max_tokens=512)


def test_matrices_that_take_hours_to_draw_are_refused():
    """Two orthogonal matrices of 8,192² hold no more weights than any file may describe. Other schemes draw each entry by itself."""
    wide = Recipe("r", (2**13, 2**13), "orthogonal")
    for refused in ([wide, wide], [Recipe("r", (2**10, 2**12), "orthogonal", layers=33)]):
        with pytest.raises(
            UserError, match=r"would take [0-9,]+ multiplications to draw; a ticket's may take at most 137,438"
        ):
            check_drawing(refused)
        check_drawing([dataclasses.replace(each, scheme="normal") for each in refused])
    check_drawing([Recipe("r", (2**10, 2**12), "orthogonal", layers=32)])


def test_a_batch_has_a_line_at_least(monkeypatch):
    monkeypatch.setattr(type(TASK), "line_work", lambda *_: Work(2**40, 0) if _[-1] == 16 else Work(0, 0))
    with pytest.raises(UserError, match="1,099,511,627,776 bytes for a batch"):
        check(SMALL, max_tokens=1)

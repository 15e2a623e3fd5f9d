"""Searching many sentences: each gets its own best hypothesis, in its place, whatever stands beside it."""

import dataclasses
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer.data.special_tokens import EOS, PAD
from one_layer.models import build, initialize
from one_layer.models.config import ModelConfig
from one_layer.models.sharding import Devices
from one_layer.tasks import model as models
from one_layer.tasks import work
from one_layer.tasks.translation import generate
from one_layer.tasks.translation.beam_search import Hypotheses
from one_layer.tasks.translation.generate import search, translated
from one_layer.tasks.translation.settings import SearchSettings
from tests import user_error

VOCAB, LONGEST, MOST = 14, 7, 16
CONFIG = ModelConfig(VOCAB, VOCAB, d_model=8, ffn=16, heads=2, encoder_layers=1, decoder_layers=2)
SETTINGS = SearchSettings(beam=3, max_length_a=0.0, max_length_b=MOST, max_tokens=8 * 24)
BY_LENGTH = SearchSettings(beam=2, max_length_a=0.5, max_length_b=1)
VARIABLES = initialize(CONFIG, 1)
RANDOM = np.random.default_rng(0)
SENTENCES = [np.array([*RANDOM.integers(4, VOCAB, n), EOS], np.int32) for n in (2, 6, 1, 3, 6, 5, 1, 4)]


@pytest.fixture(scope="module")
def prepared():
    return models.prepared(CONFIG, VARIABLES)


@pytest.fixture(scope="module")
def found(prepared):
    return translated(CONFIG, SETTINGS, prepared, SENTENCES)


@jax.jit
def logits(source, target_in):
    return jax.nn.log_softmax(build(CONFIG).apply(VARIABLES, source, target_in))


def padded(ids, width):
    return np.pad(ids, (0, width - len(ids)), constant_values=PAD)[None].astype(np.int32)


def rescored(sentence, tokens, penalty=1.0):
    """Σ log p / length^penalty of `tokens` by the whole network at once: no cache, no search."""
    target_in = padded([EOS, *tokens[:-1]], MOST + 1)
    log_p = np.asarray(logits(padded(sentence, LONGEST), target_in))[0]
    return log_p[np.arange(len(tokens)), tokens].sum() / len(tokens) ** penalty


def same(found, others):
    assert [ids.tolist() for ids in found] == [ids.tolist() for ids in others]


@pytest.mark.parametrize("seed", range(3))
def test_the_order_is_kept(prepared, found, seed):
    order = np.random.default_rng(seed).permutation(len(SENTENCES))
    given, expected = ([each[place] for place in order] for each in (SENTENCES, found))
    same(translated(CONFIG, SETTINGS, prepared, given), expected)


@pytest.mark.parametrize("changes", [{}, {"max_length_b": 2, "length_penalty": 0.6}], ids=["long", "short"])
def test_n_best_begin_with_the_best_and_have_their_scores(prepared, changes):
    settings = dataclasses.replace(SETTINGS, **changes)
    empty, *several = generate.best_translations(CONFIG, settings, prepared, [generate.EMPTY.tokens, *SENTENCES], n=2)
    same([best.tokens for best, *_ in several], translated(CONFIG, settings, prepared, SENTENCES))
    longest = max(len(each.tokens) for best in several for each in best)
    assert empty == [generate.EMPTY] and longest == settings.max_length_b + 1
    for sentence, (first, second) in zip(SENTENCES, several, strict=True):
        assert first.score >= second.score and first.tokens.tolist() != second.tokens.tolist()
        for each in (first, second):
            assert each.score == pytest.approx(rescored(sentence, each.tokens, settings.length_penalty), abs=1e-5)


def test_an_accelerator_takes_the_rows_that_its_memory_holds():
    """At least those of the key, at most sixteen times as many, and between both in proportion to the memory."""
    tokens = [generate.tokens_that_fit(CONFIG, SETTINGS, LONGEST, left) for left in (0, 10**7, 2 * 10**7, 10**12)]
    assert tokens[0] == SETTINGS.max_tokens < tokens[1] < tokens[2] < tokens[3] == 16 * SETTINGS.max_tokens
    assert tokens[2] == pytest.approx(2 * tokens[1], abs=1)
    held = tokens[2] // LONGEST * work.search_work(CONFIG, LONGEST, SETTINGS.beam, MOST).bytes
    assert 0.2 < held / (2 * 10**7) <= 0.25


def some_sentences(seed, lengths):
    rng = np.random.default_rng(seed)
    return [np.array([*rng.integers(4, VOCAB, n - 1), EOS], np.int32) for n in lengths]


@pytest.mark.slow
def test_a_translation_does_not_depend_on_its_neighbours(prepared):
    """Alone, among others, and beside a line many times as long: the same tokens, at most as many as its own length allows."""
    lengths = [3, 7, 2, 4, 7, 25, 6, 90, 5]
    sentences = some_sentences(0, lengths)
    together = translated(CONFIG, BY_LENGTH, prepared, sentences)
    for place in (0, 1, 2, 5, 7):
        for companions in ([], [7], [3, 4, 6]):
            order = [place, *(other for other in companions if other != place)]
            same(
                translated(CONFIG, BY_LENGTH, prepared, [sentences[each] for each in order]),
                [together[each] for each in order],
            )
    found, limits = [len(tokens) - 1 for tokens in together], [int(0.5 * n + 1) for n in lengths]
    assert all(one <= limit for one, limit in zip(found, limits, strict=True))
    assert found.count(limits[1]) > 1 and max(found) > 2 * limits[0], "the limits would show nothing"


def in_place_of_the_search(monkeypatch, function):
    """`translated` calls `function`, of which no program is kept for other tests."""
    monkeypatch.setattr(generate, "search", function)
    program = generate.search_program.__wrapped__(CONFIG, BY_LENGTH)
    monkeypatch.setattr(generate, "search_program", lambda *_: program)


def test_each_sentence_may_become_as_long_as_its_own_length_allows(prepared, monkeypatch):
    """Every id of the source but padding counts, 0 too. Rows without a sentence are not searched. What is not found is not returned."""

    def found(config, variables, source, *, beam, max_length, limit, length_penalty, active):
        scores = jnp.where(active & (limit <= max_length), 0.0, jnp.nan)
        lengths, tokens = jnp.stack([limit, 0 * limit], axis=1), jnp.zeros((len(limit), 2, max_length), jnp.int32)
        return Hypotheses(tokens, lengths, jnp.stack([scores, jnp.full_like(scores, -jnp.inf)], axis=1))

    in_place_of_the_search(monkeypatch, found)
    sentences = [*some_sentences(0, [3, 7, 2, 24, 4]), np.array([0, 5, 0, EOS], np.int32)]
    several = generate.best_translations(CONFIG, BY_LENGTH, prepared, sentences, n=2)
    assert [[len(each.tokens) for each in best] for best in several] == [
        [int(0.5 * len(sentence) + 1)] for sentence in sentences
    ]


def test_few_shapes_are_compiled_for_many_small_inputs(prepared, monkeypatch):
    """A search is traced once for each shape: 40 inputs of 1 to 5 lines, of up to 80 tokens, have at most 6."""
    shapes, rng = [], np.random.default_rng(3)

    def traced(config, variables, source, *, active, **settings):
        shapes.append(source.shape)
        nothing = jnp.zeros((*source.shape[:1], 2))
        return Hypotheses(jnp.int32(nothing)[..., None], jnp.int32(nothing) + 1, nothing)

    in_place_of_the_search(monkeypatch, traced)
    for number in range(40):
        lengths = rng.integers(2, 81, rng.integers(1, 6))
        assert len(translated(CONFIG, BY_LENGTH, prepared, some_sentences(number, lengths))) == len(lengths)
    assert len(shapes) == len(set(shapes)) <= 6


@pytest.mark.parametrize(
    ("platform", "many", "most"),
    [("cpu", False, 2), ("cpu", True, 1), ("gpu", False, 2), ("gpu", True, 1), ("tpu", False, 1)],
)
def test_several_devices_search_one_batch_at_a_time(prepared, monkeypatch, platform, many, most):
    """Two programs with exchanges may reach the devices in another order in each process, and wait for ever."""
    found = []

    def asked(search, batches, at_once, between):
        found.append(at_once)
        raise NotImplementedError  # nothing needs to be searched

    monkeypatch.setattr(generate, "in_threads", asked)
    monkeypatch.setattr(
        Devices,
        "holding",
        lambda tree: SimpleNamespace(platform=platform, many=many, memory_left=lambda: 10**12 * (platform == "gpu")),
    )
    with pytest.raises(NotImplementedError):
        translated(CONFIG, SETTINGS, prepared, SENTENCES)
    assert found == [most]


@pytest.mark.slow
def test_masks_may_be_made_once_or_in_every_step(found):
    same(translated(CONFIG, SETTINGS, VARIABLES, SENTENCES), found)


@pytest.mark.slow
def test_padding_on_either_side_and_the_scores_of_the_whole_network(found):
    """Given right-padded to `translated`, left-padded here."""
    rows = [np.concatenate([np.full(LONGEST - len(ids), PAD), ids]) for ids in SENTENCES]
    options = {"beam": 3, "max_length": MOST, "length_penalty": 1.0}
    left = jax.jit(lambda source: search(CONFIG, VARIABLES, source, **options))(np.array(rows, np.int32))
    for row, (sentence, tokens) in enumerate(zip(SENTENCES, found, strict=True)):
        assert left.tokens[row, 0, : left.lengths[row, 0]].tolist() == tokens.tolist()
        np.testing.assert_allclose(left.scores[row, 0], rescored(sentence, tokens), atol=1e-5)


@pytest.mark.parametrize(
    "change", [{"max_length_a": 1e9}, {"max_length_b": 3 * 10**9}, {"max_length_b": 0}, {"max_length_a": float("nan")}]
)
def test_lengths_that_no_search_can_have_are_refused(change):
    (name,) = change
    with user_error(rf"evaluation\.{name} is .*; it must lie in \["):
        SearchSettings(**change)


def test_a_model_that_one_sentence_breaks_translates_nothing(prepared):
    """Of its tables, the row of a word that the others do not have is no number."""
    made = prepared["materialized"]
    broken = {**made, "source_embedding": {"kernel": made["source_embedding"]["kernel"].at[5].set(jnp.nan)}}
    with user_error("logits are not finite"):
        translated(CONFIG, SETTINGS, {**prepared, "materialized": broken}, SENTENCES)

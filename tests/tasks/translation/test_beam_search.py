"""Beam search, against the algorithm of golden/README.md written once more on plain lists.

The language model of these tests reads its logits off a table, in the row that the *whole* prefix says. It keeps that prefix
in its cache, so that a cache which is not reordered with the hypotheses gives wrong numbers.
"""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from one_layer.data.special_tokens import EOS, PAD
from one_layer.tasks.translation.beam_search import Hypotheses, beam_search
from tests import user_error

BATCH, VOCAB, LONGEST, ROWS = 3, 6, 4, 1009
SENTENCES = np.arange(BATCH)
POWERS = 7 ** np.arange(LONGEST + 1)
NEVER = np.full(BATCH, LONGEST + 1)
BEAMS = st.integers(1, 4)
LIMITS = st.integers(1, LONGEST)
PENALTIES = st.sampled_from([0.0, 0.6, 1.0, 2.0])

quick = settings(max_examples=60, deadline=None, derandomize=True)


def prefix_model(table, tokens, position, memory):
    """Logits of a row of the table; NaN from the position on that `poison` says."""
    history = memory["layer"]["history"].at[:, position].set(tokens)
    logits = table[(history @ POWERS + 31 * memory["sentence"]) % len(table)]
    logits = jnp.where((position >= memory["poison"])[:, None], jnp.nan, logits)
    return logits, {**memory, "layer": {"history": history}}


@cache
def compiled(beam, max_length=LONGEST):
    """One program for all limits, penalties and tables."""

    @jax.jit
    def run(table, sentences, poison, active, limit, penalty):
        rows = {"sentence": jnp.repeat(sentences, beam), "poison": jnp.repeat(poison, beam)}
        memory = {**rows, "layer": {"history": jnp.zeros((len(sentences) * beam, LONGEST + 1), jnp.int32)}}
        options = {"max_length": max_length, "limit": limit, "length_penalty": penalty, "active": active}
        model = partial(prefix_model, table)
        return beam_search(model, memory, len(sentences), beam=beam, **options)

    return run


@partial(jax.jit, static_argnums=1)
def run_by_ancestors(table, beam, limit):
    """History stays where it was written; each beam's own is read along its ancestors."""

    def model(tokens, position, memory):
        history, ancestors = memory
        history = history.at[:, position].set(tokens.reshape(BATCH, beam))
        ancestors = ancestors.at[:, :, position].set(jnp.arange(beam))
        own = jnp.take_along_axis(history, ancestors.swapaxes(1, 2), axis=2).swapaxes(1, 2).reshape(-1, LONGEST + 1)
        own = jnp.where(jnp.arange(LONGEST + 1) <= position, own, 0)
        return table[(own @ POWERS + 31 * jnp.repeat(SENTENCES, beam)) % len(table)], (history, ancestors)

    def reorder(memory, parents):
        return memory[0], jnp.take_along_axis(memory[1], parents[..., None], axis=1)

    memory = jnp.full((BATCH, LONGEST + 1, beam), -1), jnp.zeros((BATCH, beam, LONGEST + 1), jnp.int32)
    return beam_search(model, memory, BATCH, beam=beam, max_length=LONGEST, limit=limit, reorder=reorder)


def search(
    table, beam, limit=LONGEST, penalty=1.0, sentences=SENTENCES, poison=NEVER, active=None, **options
) -> Hypotheses:
    active = np.ones(len(sentences), bool) if active is None else np.array(active)
    limits = jnp.broadcast_to(jnp.asarray(limit, jnp.int32), (len(sentences),))
    arguments = (sentences, poison[: len(sentences)], active, limits, jnp.float32(penalty))
    return jax.device_get(compiled(beam, **options)(table, *arguments))


def random_table(seed, eos_bonus=0.0, spread=2.0, vocab=VOCAB):
    table = np.random.default_rng(seed).standard_normal((ROWS, vocab)) * spread
    table[:, EOS] += eos_bonus
    return table.astype(np.float32)


TABLES = st.builds(random_table, st.integers(0, 10**6), st.sampled_from([-2.0, 0.0, 2.0]), st.sampled_from([0.3, 2.0]))


def log_softmax(table):
    return np.asarray(jax.jit(jax.nn.log_softmax)(jnp.asarray(table, jnp.float32)))


def row_of(prefix, sentence):
    return int(np.dot(prefix, POWERS[: len(prefix)]) + 31 * sentence) % ROWS


def on_lists(log_p, sentence, beam, limit, penalty):
    """Every (tokens, score) that the documented algorithm finds, best first. Sorting is stable, so ties go as they come."""
    alive, finished = [([EOS], np.float32(0))], []
    for step in range(limit + 1):
        candidates = []
        for prefix, score in alive:
            for token, gain in enumerate(log_p[row_of(prefix, sentence)]):
                eos_may = step > 0 if token == EOS else step < limit
                if token != PAD and eos_may:
                    candidates.append(([*prefix, token], score + gain))
        best = sorted(candidates, key=lambda candidate: -candidate[1])[: 2 * beam]
        for tokens, score in best[:beam]:
            if tokens[-1] == EOS and len(finished) < beam:
                finished.append((tokens[1:], score / np.float32(step + 1) ** np.float32(penalty)))
        if len(finished) == beam:
            break
        alive = [(tokens, score) for tokens, score in best if tokens[-1] != EOS][:beam]
    return sorted(finished, key=lambda hypothesis: -hypothesis[1])


def counts(found):
    return np.count_nonzero(found.lengths, axis=1).tolist()


def hypotheses_of(found, row):
    return [found.tokens[row, n, : found.lengths[row, n]].tolist() for n in np.flatnonzero(found.lengths[row])]


def assert_found(found, row, expected):
    assert hypotheses_of(found, row) == [tokens for tokens, _ in expected]
    np.testing.assert_allclose(found.scores[row, : len(expected)], [score for _, score in expected], rtol=1e-6)
    assert (found.scores[row, len(expected) :] == -np.inf).all() and (found.lengths[row, len(expected) :] == 0).all()


@quick
@given(TABLES, BEAMS, LIMITS, PENALTIES)
def test_equals_the_algorithm_on_lists(table, beam, limit, penalty):
    found, log_p = search(table, beam, limit, penalty), log_softmax(table)
    for row, sentence in enumerate(SENTENCES):
        assert_found(found, row, on_lists(log_p, sentence, beam, limit, penalty))


@quick
@given(st.integers(0, 10**6), st.integers(1, 3), BEAMS, LIMITS)
def test_the_lower_beam_and_then_the_lower_token_wins_a_tie(seed, values, beam, limit):
    logits = np.random.default_rng(seed).integers(0, values, VOCAB).astype(np.float32)
    table = np.tile(logits, (ROWS, 1))
    found, log_p = search(table, beam, limit, penalty=0.0), log_softmax(table)
    for row, sentence in enumerate(SENTENCES):
        assert_found(found, row, on_lists(log_p, sentence, beam, limit, penalty=0.0))


@pytest.mark.parametrize("seed", range(5))
def test_a_wide_beam_finds_everything(seed):
    """Up to 2 tokens and eos, of 4 words: 4 + 16 hypotheses in all, in the order of their scores."""
    table = random_table(seed)
    found, log_p = search(table, 20, 2, penalty=0.6), log_softmax(table)
    words = [token for token in range(VOCAB) if token not in (PAD, EOS)]
    every = [[a, EOS] for a in words] + [[a, b, EOS] for a in words for b in words]
    for row, sentence in enumerate(SENTENCES):
        score = {}
        for tokens in every:
            rows = [row_of([EOS, *tokens[:length]], sentence) for length in range(len(tokens))]
            score[tuple(tokens)] = log_p[rows, tokens].sum() / len(tokens) ** 0.6
        assert_found(found, row, sorted(((list(t), s) for t, s in score.items()), key=lambda h: -h[1]))


def test_a_limit_is_a_lower_maximum():
    table = random_table(1, eos_bonus=-2.0)
    limited, short = search(table, 2, limit=2), search(table, 2, limit=2, max_length=2)
    assert limited.tokens.shape[2] == LONGEST + 1 and short.tokens.shape[2] == 3
    np.testing.assert_array_equal(limited.tokens[:, :, :3], short.tokens)
    np.testing.assert_array_equal(limited.scores, short.scores)
    for beyond, nearest in ((0, 1), (LONGEST + 9, LONGEST)):
        np.testing.assert_array_equal(search(table, 2, beyond).tokens, search(table, 2, nearest).tokens)


@quick
@given(TABLES, BEAMS, st.lists(LIMITS, min_size=BATCH, max_size=BATCH))
def test_every_sentence_has_its_own_limit(table, beam, limits):
    found, log_p = search(table, beam, limits), log_softmax(table)
    for row, limit in enumerate(limits):
        assert_found(found, row, on_lists(log_p, SENTENCES[row], beam, limit, 1.0))


@pytest.mark.slow
@quick
@given(TABLES, BEAMS, LIMITS)
def test_a_cache_may_keep_its_rows_and_reorder_who_descends_from_whom(table, beam, limit):
    found = jax.device_get(run_by_ancestors(table, beam, limit))
    jax.tree.map(np.testing.assert_array_equal, found, search(table, beam, limit))


def test_a_vocabulary_smaller_than_the_beam():
    """One word alone: a hypothesis for every length, no more, and none that goes on after its eos."""
    table = random_table(0, vocab=3)
    found, log_p = search(table, 8), log_softmax(table)
    for row, sentence in enumerate(SENTENCES):
        expected = on_lists(log_p, sentence, 8, LONGEST, 1.0)
        assert len(expected) == LONGEST
        assert_found(found, row, expected)


def test_unless_told_otherwise_it_searches_as_fairseq_does():
    """With a beam of 5 and scores per token."""
    table = jnp.asarray(random_table(7))
    memory = {"sentence": jnp.repeat(SENTENCES, 5), "poison": jnp.repeat(NEVER, 5)}
    memory |= {"layer": {"history": jnp.zeros((BATCH * 5, LONGEST + 1), jnp.int32)}}
    found = jax.jit(lambda memory: beam_search(partial(prefix_model, table), memory, BATCH, max_length=LONGEST))(memory)
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(found), search(table, 5, penalty=1.0))


@pytest.mark.parametrize("step", [0, 1])
def test_a_broken_sentence_gets_nan_and_no_other(step):
    table = random_table(2)
    found, clean = search(table, 2, poison=np.array([LONGEST + 1, step, LONGEST + 1])), search(table, 2)
    assert np.isnan(found.scores[1]).all()
    jax.tree.map(lambda x, y: np.testing.assert_array_equal(x[[0, 2]], y[[0, 2]]), found, clean)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_logits_that_are_not_finite_give_nan(value):
    assert np.isnan(search(np.full((ROWS, VOCAB), value, np.float32), 2).scores).all()


def test_nan_after_the_end_harms_nobody():
    """A sentence that stopped gives what it gives alone, whatever the model makes of it while others go on."""
    table = random_table(6)
    clean = search(table, 2)
    stopped = clean.lengths.max(axis=1)
    first = int(stopped.argmin())
    assert stopped[first] < stopped.max()
    poison = NEVER.copy()
    poison[first] = stopped[first]
    jax.tree.map(np.testing.assert_array_equal, search(table, 2, poison=poison), clean)


def test_nan_in_a_beam_that_does_not_count_harms_nobody():
    """Where there are fewer words than beams, the others are fed whatever comes, pads for one."""

    def dislikes_pads(tokens, position, memory):
        return jnp.where((tokens == PAD)[:, None], jnp.nan, jnp.zeros((len(tokens), 3))), memory

    found = beam_search(dislikes_pads, {}, 1, beam=2, max_length=2)
    assert counts(found) == [2] and np.isfinite(found.scores).all()


def test_inactive_sentences_take_no_part():
    table, poison = random_table(4), np.array([LONGEST + 1, 0, LONGEST + 1])
    found, clean = search(table, 2, poison=poison, active=[True, False, True]), search(table, 2)
    assert counts(found) == [2, 0, 2]
    assert (found.scores[1] == -np.inf).all() and (found.lengths[1] == 0).all() and (found.tokens[1] == PAD).all()
    jax.tree.map(lambda x, y: np.testing.assert_array_equal(x[[0, 2]], y[[0, 2]]), found, clean)
    healthy = search(table, 2, active=[True, False, True])
    jax.tree.map(np.testing.assert_array_equal, healthy, found)
    assert not search(table, 2, active=[False] * 3).lengths.any()


@pytest.mark.parametrize(("options", "message"), [({"beam": 0}, "beam is 0"), ({"max_length": 0}, "max_length 0")])
def test_refuses_what_cannot_be_searched(options, message):
    model = partial(prefix_model, random_table(0))
    with user_error(message):
        beam_search(model, {}, 1, **{"beam": 2, "max_length": 3, **options})


def test_the_search_is_the_same_where_jax_counts_in_64_bits():
    table = np.random.default_rng(3).normal(size=(ROWS, VOCAB)).astype(np.float32)

    def tokens():
        def model(tokens, position, cache):
            return jnp.asarray(table)[tokens + position], cache

        return np.asarray(beam_search(model, jnp.zeros((BATCH * 2, 1)), BATCH, beam=2, max_length=LONGEST).tokens)

    narrow = tokens()
    with jax.enable_x64(True):
        np.testing.assert_array_equal(tokens(), narrow)

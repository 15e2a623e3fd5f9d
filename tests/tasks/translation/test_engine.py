"""CTranslate2 as the engine of translation: every sentence is searched once, in batches of similar length, and keeps its place."""

import dataclasses
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from one_layer import tickets
from one_layer.data.special_tokens import EOS
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.preprocess import Preprocessing
from one_layer.data.text.vocabulary import SPECIALS, Vocabulary
from one_layer.importers import ctranslate2
from one_layer.importers.ctranslate2 import searching
from one_layer.tasks.causal_lm.model import CausalLanguageModel
from one_layer.tasks.translation import engine as engines
from one_layer.tasks.translation import model as translation_model
from one_layer.tasks.translation.engine import Search
from one_layer.tasks.translation.settings import SearchSettings
from tests import ROOT, user_error
from tests.tiny_tickets import TINY, ticket_of

TOKENS = (*SPECIALS, "a", "b", "c", "d")
SENTENCES = [np.array(ids, np.int32) for ids in [[4, 5, EOS], [EOS], [6, EOS], [7, 6, 5, 4, EOS], *[[4, EOS]] * 70]]
LINES = ["Two dogs run through the snow.", "", "A girl plays with a ball."]


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(engines, "cores", lambda: 2)


class Reversing:
    """A translator that turns sentences round, and remembers what it was asked for."""

    def __init__(self, score=-1.0):
        self.calls, self.score = [], score

    def translate_batch(self, tokens, *, num_hypotheses, max_decoding_length, **options):
        expected = {"asynchronous": True, "return_scores": True, "beam_size": 5, "length_penalty": 1}
        assert options == {**expected, "max_input_length": 0, "suppress_sequences": [["<pad>"]]}
        self.calls.append((tokens, max_decoding_length))
        results = [
            SimpleNamespace(hypotheses=[each[::-1]] * num_hypotheses, scores=[self.score] * num_hypotheses)
            for each in tokens
        ]
        return [SimpleNamespace(result=lambda result=result: result) for result in results]


def search(translator, **settings):
    text, vocabulary = Preprocessing("en"), Vocabulary(TOKENS)
    return Search(TextAssets(vocabulary, vocabulary, text, text), SearchSettings(**settings), translator)


def test_every_sentence_keeps_its_place():
    found = search(Reversing())(SENTENCES, "")
    assert [best.tokens.tolist() for (best,) in found] == [[*ids[:-1][::-1], EOS] for ids in SENTENCES]


def test_the_engine_gives_n_best():
    found = search(Reversing(score=-2.0))(SENTENCES, "", n=3)
    assert {len(best) for best, ids in zip(found, SENTENCES, strict=True) if len(ids) > 1} == {3}
    assert {each.score for best in found for each in best} == {-2.0, 0.0}


def test_batches_are_of_similar_length_and_have_their_limit():
    translator = Reversing()
    search(translator)(SENTENCES, "")
    assert [len(tokens) for tokens, _ in translator.calls] == [32, 32, 9]  # one sentence has no tokens
    lengths = [len(sentence) for tokens, _ in translator.calls for sentence in tokens]
    assert lengths == sorted(lengths, reverse=True)
    # int(1.2 n + 10) of the longest source with its eos.
    assert [longest for _, longest in translator.calls] == [16, 12, 12]


@pytest.mark.parametrize(("cores", "rows"), [(1, [9]), (2, [5, 4]), (4, [3, 3, 3]), (20, [1] * 9)])
def test_few_sentences_are_shared_out_among_the_cores(monkeypatch, cores, rows):
    monkeypatch.setattr(engines, "cores", lambda: cores)
    translator = Reversing()
    search(translator)(SENTENCES[-9:], "")
    assert [len(tokens) for tokens, _ in translator.calls] == rows


def test_a_batch_has_no_more_tokens_than_the_settings_say():
    translator = Reversing()
    search(translator, max_tokens=9)(SENTENCES, "")
    assert [len(tokens) for tokens, _ in translator.calls] == [1, 3, *[4] * 17, 1]
    assert max(len(tokens) * (1 + len(tokens[0])) for tokens, _ in translator.calls) <= 9


def test_outputs_that_are_no_numbers():
    with user_error("not finite: this checkpoint cannot translate"):
        search(Reversing(float("nan")))(SENTENCES, "")


def restored(folder, config=TINY, **changes):
    tickets.save(folder / "t.safetensors", ticket_of(config.replace(**changes)))
    return tickets.restore_ticket(folder / "t.safetensors")


def test_what_the_engine_cannot_do_is_refused(tmp_path, monkeypatch):
    model = restored(tmp_path)
    with user_error(r"--engine=ctranslate2 has all masks applied; leave --ticket_mode=packed out"):
        searching(dataclasses.replace(model, packed=True), "ctranslate2")
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with user_error(r"--engine=ctranslate2-int8 needs the package ctranslate2, .*requirements-engi"):
        searching(model, "ctranslate2-int8")
    with user_error(
        r"model.encoder_layers is 'SR' with model.reservoir=gru, but .*; give a model without such reservoirs$"
    ):
        searching(restored(tmp_path, encoder_layers="SR", reservoir="gru"), "ctranslate2")
    longer = dataclasses.replace(model, settings=SearchSettings(max_length_b=1000))
    with user_error(r"has 2,048 positions, and a translation may have 2,228 tokens; give a smaller"):
        searching(longer, "ctranslate2")
    with user_error("--engine=ctranslate2 is for translation, and this is a causal_lm model"):
        searching(object.__new__(CausalLanguageModel), "ctranslate2")


def test_the_engine_searches_in_the_place_of_this_program(tmp_path, monkeypatch):
    """Also for a copy with other masks, which is another model to it."""
    monkeypatch.setattr(ctranslate2, "import_package", lambda option: None)
    model, asked = searching(restored(tmp_path), "ctranslate2-int8"), []
    opened = lambda model, engine, write: asked.append(model) or search(Reversing())  # noqa: E731
    monkeypatch.setattr(translation_model, "opened", opened)
    role = next(iter(model.masks))
    other = model.with_masks({role: 1 - model.masks[role]})
    for each in (model, other, model):
        each.lines_of_tokens(["a b"])
    assert asked == [model, other]
    assert other.engine == "ctranslate2-int8"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ctranslate2", "ctranslate2-int8"])
def test_a_shipped_ticket(name):
    pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed (requirements-engines.txt)")
    model = tickets.restore_ticket(ROOT / "tickets" / "multi30k-en-de.safetensors")
    found = searching(model, name).translate(LINES)
    assert found == model.translate(LINES)
    assert not found[1]

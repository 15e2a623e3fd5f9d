"""Raw lines in, raw lines out: every step on the way to the model and back, with a model that repeats what it is given."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from one_layer.data.config import DataConfig
from one_layer.data.corpus import Split
from one_layer.data.text.assets import TextAssets, load_text_assets, save_text_assets
from one_layer.data.text.preprocess import Preprocessing
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.data.tokens import TokenStore
from one_layer.tasks.translation.generate import Generator, Hypothesis
from one_layer.tasks.translation.model import TranslationModel
from one_layer.tasks.translation.settings import SearchSettings

RAW = ["Er sagt: „Die E-Mail ist GROSS & alt.“", "Das war gut, z. B. am 3. Mai."]
CODES = "#version: 0.2\ne r</w>\nm a\nma i\n"


class Parrot(Generator):
    """Its translation of a sentence is the sentence; knows what it was given."""

    def __init__(self) -> None:
        self.given = []

    def _best(self, variables, sentences, *_):
        self.given = sentences
        return [Hypothesis(ids, 0.0) for ids in sentences]


def model_with(folder: Path, generator: Generator, **steps: bool) -> TranslationModel:
    """A model of which only the text side is there, as it comes back from its folder."""
    steps = {"tokenize": True, "lowercase": True, **steps}
    sides = [Preprocessing(language, codes=CODES, **steps) for language in ("de", "en")]
    vocabulary = Vocabulary.build(sides[0].apply(RAW))
    save_text_assets(TextAssets(vocabulary, vocabulary, *sides), folder)
    model = object.__new__(TranslationModel)
    vars(model).update(assets=load_text_assets(folder), prepared={}, _generator=generator)
    return model


@pytest.mark.parametrize("split_hyphens", [False, True])
def test_raw_text_comes_back_but_for_case_and_typography(tmp_path: Path, split_hyphens: bool) -> None:
    parrot = Parrot()
    model = model_with(tmp_path, parrot, split_hyphens=split_hyphens)
    assert model.translate(RAW) == [
        'er sagt: "die e-mail ist gross & alt".',
        "das war gut, z. b. am 3. mai.",
    ]
    tokens = [model.assets.source_vocabulary.decode(ids) for ids in parrot.given]
    assert "<unk>" not in " ".join(tokens)
    assert ("@-@" in tokens[0].replace("@@ ", "")) == split_hyphens
    assert "ma@@ i" in tokens[1] and "&amp;" in tokens[0].replace("@@ ", "")


@pytest.mark.parametrize("prepared", [False, True])
def test_a_scored_line_is_shown_as_it_was_read_or_joined_if_it_was_prepared(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, prepared: bool
) -> None:
    model = model_with(tmp_path, Parrot())
    lines = ["ma@@ i", "a tilde@@ b"]
    ids = TokenStore.of(map(model.assets.source_vocabulary.encode, lines))
    vars(model).update(data=DataConfig(prepared=prepared), settings=SearchSettings())
    with caplog.at_level("INFO"):
        model.score(Split(ids, ids, lines, ["mai", "a tildeb"], ["mai", "a tildeb"]), "test")
    shown = [record.message.split(maxsplit=1)[1] for record in caplog.records if record.message.startswith("  source")]
    assert shown == (["mai", "a tildeb"] if prepared else lines)


def test_what_holds_no_word_stays_empty(tmp_path: Path) -> None:
    parrot = Parrot()
    model = model_with(tmp_path, parrot)
    lines = ["", "  ", "\u2028", "\x07\x00", "\u200b", "\u00a0\t", RAW[1], "\r"]
    assert model.translate(lines) == ["", "", "", "", "", "", "das war gut, z. b. am 3. mai.", ""]
    assert len(parrot.given) == 1
    assert model.translate(lines[:6]) == [""] * 6


BLANK = st.text(" \u00a0\t\u2028\u3000", max_size=3)


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(BLANK | st.sampled_from(RAW), min_size=1, max_size=8), tokenize=st.booleans())
def test_a_line_is_scored_as_it_is_translated(tmp_path: Path, lines: list[str], tokenize: bool) -> None:
    """A line without text stays empty in both, whatever tokens its preprocessing makes of it; so it does in validation."""
    parrot = Parrot()
    model = model_with(tmp_path, parrot, tokenize=tokenize)
    vars(model).update(data=DataConfig(), settings=SearchSettings())
    ids = TokenStore.of(map(model.assets.source_vocabulary.encode, model.assets.source_preprocessing.apply(lines)))
    split = Split(ids, ids, lines, lines, lines)
    plain = model.score(split, "test")[1]["plain"]
    assert plain == model.translate(lines)
    assert [bool(text) for text in plain] == [bool(line.strip()) for line in lines]
    assert all(len(each) > 1 for each in parrot.given)

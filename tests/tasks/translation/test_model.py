"""Raw lines in, raw lines out: every step on the way to the model and back, with a model that repeats what it is given."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus, Split
from one_layer.data.loading import load, load_scored
from one_layer.data.reader import ParallelReader
from one_layer.data.text.assets import TextAssets, load_text_assets, save_text_assets
from one_layer.data.text.preprocess import Preprocessing
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.data.tokens import TokenStore
from one_layer.tasks.translation.generate import Found
from one_layer.tasks.translation.model import TranslationModel
from one_layer.tasks.translation.settings import SearchSettings
from tests import user_error
from tests.data.text.test_metaspace import ODD, SENTENCES

RAW = ["Er sagt: „Die E-Mail ist GROSS & alt.“", "Das war gut, z. B. am 3. Mai."]
CODES = "#version: 0.2\ne r</w>\nm a\nma i\n"


class Parrot:
    """A search whose translation of a sentence is the sentence; knows what it was given."""

    given = ()

    def __call__(self, sentences, title, n=1):
        self.given = [ids for ids in sentences if len(ids) > 1]
        return [[Found(ids, 0.0)] * n for ids in sentences]


def model_with(folder: Path, parrot: Parrot, **steps: bool) -> TranslationModel:
    """A model of which only the text side is there, as it comes back from its folder."""
    steps = {"tokenize": True, "lowercase": True, **steps}
    sides = [Preprocessing(language, codes=CODES, **steps) for language in ("de", "en")]
    vocabulary = Vocabulary.build(sides[0].apply(RAW))
    save_text_assets(TextAssets(vocabulary, vocabulary, *sides), folder)
    model = object.__new__(TranslationModel)
    vars(model).update(assets=load_text_assets(folder), engine=True, opened=parrot, settings=SearchSettings())
    return model


@pytest.mark.parametrize("split_hyphens", [False, True])
def test_raw_text_comes_back_but_for_case_and_typography(tmp_path: Path, split_hyphens: bool) -> None:
    parrot = Parrot()
    model = model_with(tmp_path, parrot, split_hyphens=split_hyphens)
    assert model.translate(RAW) == ['er sagt: "die e-mail ist gross & alt".', "das war gut, z. b. am 3. mai."]
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


RAW_LINES = [
    line.replace("\n", " ").replace("\r", " ") for line in (*SENTENCES.values(), *ODD) if "<s>" not in line and line
]


def parrot_of(folder: Path, lines: list[str], **keys: object) -> tuple[TranslationModel, Corpus]:
    """A perfect model of files whose two sides are the same lines, with its corpus."""
    for name in ("train", "valid", "test"):
        for language in ("en", "xx"):
            (folder / f"{name}.{language}").write_text("".join(line + "\n" for line in lines), "utf-8")
    known = {"source": "text", "directory": str(folder), "source_language": "en", "target_language": "xx"}
    config = DataConfig(**{**known, "joined_vocabulary": True, **keys})  # type: ignore[arg-type]
    corpus = load(config)
    model = object.__new__(TranslationModel)
    vars(model).update(assets=corpus, prepared={}, engine=True, opened=Parrot(), data=config, settings=SearchSettings())
    return model, corpus


@pytest.mark.parametrize(
    "keys",
    [
        {"bpe_kind": "metaspace", "bpe_merges": 200},
        {"bpe_kind": "metaspace", "bpe_merges": 200, "lowercase": True},
        {"bpe_kind": "metaspace"},
        {"bpe_merges": 200},
        {},
    ],
)
def test_a_perfect_model_of_raw_text_has_the_score_of_the_file(tmp_path: Path, keys: dict[str, object]) -> None:
    """Whatever the text: it is not tokenised, and so neither is it changed, nor its reference."""
    model, corpus = parrot_of(tmp_path, RAW_LINES, **keys)
    test = corpus.tests["test"]
    assert test.reference_detokenized == RAW_LINES
    scores, hypotheses = model.score(test, "test")
    assert scores["bleu_tokenized"] == pytest.approx(100) and scores["bleu_sacre"] == pytest.approx(100)
    wanted = [line.lower() for line in RAW_LINES] if keys.get("lowercase") else RAW_LINES
    if "bpe_kind" in keys:
        assert hypotheses["plain"] == [line.strip(" ") for line in wanted]
        assert model.translate(["two\nlines", "a\r\nb"]) == ["two lines", "a b"], "one line for each"
    assert [line.split() for line in hypotheses["plain"]] == [line.split() for line in wanted]


PREPARED = {
    "sentencepiece": ["▁do g ▁eats .", "▁two ▁do g s ▁ <0xE2> <0x82> <0xAC>"],
    "sentencepiece,moses": ["▁do g ▁&apos;s ▁.", "▁two ▁do gs ▁."],
    "subword-nmt": ["do@@ g eats .", "two do@@ gs ."],
    "subword-nmt,moses": ["do@@ g eats .", "two do@@ gs ."],
    "moses": ["dog eats .", "two dogs ."],
    "none": ["dog@@ eats .", "▁two ▁dogs ."],
}
WORDS = {
    "sentencepiece": ["dog eats.", "two dogs €"],
    "sentencepiece,moses": ["dog 's.", "two dogs."],
    "subword-nmt": ["dog eats .", "two dogs ."],
    "subword-nmt,moses": ["dog eats.", "two dogs."],
    "moses": ["dog eats.", "two dogs."],
    "none": ["dog@@ eats .", "▁two ▁dogs ."],
}


@pytest.mark.parametrize("undo", PREPARED)
def test_text_that_was_prepared_elsewhere_is_written_and_scored_as_words(tmp_path: Path, undo: str) -> None:
    model, corpus = parrot_of(tmp_path, PREPARED[undo], undo=undo)
    _, hypotheses = model.score(corpus.tests["test"], "test")
    assert hypotheses["tokenized"] == corpus.tests["test"].reference
    assert hypotheses["plain"] == corpus.tests["test"].reference_detokenized == WORDS[undo]
    save_text_assets(corpus, tmp_path / "run")
    saved = load_text_assets(tmp_path / "run")
    assert saved.steps == corpus.steps
    # The steps of the run count, and not those of the config with which it is scored.
    again = load_scored(DataConfig(**{**vars(model.data), "undo": "", "prepared": True}), *scored_with(saved))
    assert again.tests["test"].reference_detokenized == WORDS[undo]


def scored_with(assets: TextAssets) -> tuple:
    return assets.vocabularies, assets.codes, "test", ParallelReader(), assets.steps


def test_subwords_that_nobody_joins_are_named(tmp_path: Path) -> None:
    for undo, inverse in (("sentencepiece", "sentencepiece"), ("subword-nmt", "subword-nmt,moses")):
        for keys, named in (({}, True), ({"undo": undo}, False)):
            _, corpus = parrot_of(tmp_path, PREPARED[undo], **keys)
            assert any(f"data.undo={inverse} would join them" in line for line in corpus.report) == named
    _, corpus = parrot_of(tmp_path, PREPARED["subword-nmt"], prepared=True)
    assert corpus.tests["test"].reference_detokenized == WORDS["subword-nmt,moses"], "as earlier versions did"


@pytest.mark.parametrize(
    "undo", ["sentencepiece,subword-nmt", "moses,sentencepiece", "none,moses", "spm", "moses,", "@@ "]
)
def test_unknown_ways_to_undo_are_refused(undo: str) -> None:
    with user_error(r"data\.undo='.*' is unknown: give subword-nmt, byte-level, sentencepiece or moses"):
        DataConfig(undo=undo)


def test_an_earlier_run_is_undone_as_it_was() -> None:
    older = {"language": "de", "tokenize": False, "lowercase": False, "codes": None}
    assert Preprocessing.from_dict(older).undo(["a@@ b &apos;s ."]) == ["ab 's."]
    assert "inverse" not in Preprocessing.from_dict(older).to_dict()
    raw = Preprocessing.from_dict({**older, "codes": "a b\n"})
    assert raw.undo(["a@@ b &apos;s ."]) == ["ab &apos;s ."], "what was never tokenised is not detokenised"

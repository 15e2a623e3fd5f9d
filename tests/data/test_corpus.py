"""The corpus: pairs for training, complete test sets, references for scoring, and the text assets that a run saves."""

import gzip
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from one_layer.data.config import SOURCES, STREAMS, DataConfig
from one_layer.data.corpus import Corpus
from one_layer.data.loading import load, load_scored
from one_layer.data.sources.pairs import _KINDS
from one_layer.data.special_tokens import UNK
from one_layer.data.text.assets import load_text_assets, save_text_assets
from one_layer.data.text.vocabulary import SPECIALS
from tests import user_error
from tests.data.pairs import write

GERMAN = ["Das ist ein Haus.", "Er sagt: „Ja!“", "", "Das Haus ist neu und neu und neu und neu.", "Nein, nein!"]
ENGLISH = ["That's a house.", "He says: 'yes!'", "Nothing.", "The house is new.", "No, no!"]
TOY = DataConfig(toy_train=300, toy_valid=20, toy_test=30)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, pairs in {"train": slice(None), "valid": slice(0, 2), "test": slice(1, 4)}.items():
        write(tmp_path, name, GERMAN[pairs], ENGLISH[pairs])
    return tmp_path


def texts(folder: Path, **keys: object) -> DataConfig:
    return DataConfig(source="text", directory=str(folder), **keys)  # type: ignore[arg-type]


def decoded(corpus: Corpus) -> list[tuple[str, str]]:
    source, target = corpus.vocabularies
    return [(source.decode(s), target.decode(t)) for s, t in zip(corpus.train.source, corpus.train.target, strict=True)]


def test_test_means_all_test_sets_also_where_one_has_this_name(tmp_path: Path) -> None:
    for name in ("train", "valid", "test", "more"):
        for language in ("de", "en"):
            (tmp_path / f"{name}.{language}").write_text("ein haus\n")
    config = DataConfig(source="text", directory=str(tmp_path), tests=("test", "more"))
    vocabularies = load(config).vocabularies
    for wanted, names in (("test", ["test", "more"]), ("more", ["more"]), ("valid", [])):
        assert list(load_scored(config, vocabularies, None, wanted).tests) == names


def test_a_validation_set_that_is_a_test_set_too_is_one_everywhere(folder: Path) -> None:
    both = texts(folder, tests=("valid", "test"))
    corpus = load(both)
    for wanted, names in (("", ["valid", "test"]), ("test", ["valid", "test"]), ("valid", ["valid"])):
        scored = load_scored(both, corpus.vocabularies, None, wanted)
        assert list(scored.tests) == names and len(scored.valid) == len(scored.tests["valid"]) == 2
    assert list(corpus.tests) == ["valid", "test"]


def test_the_toy_language() -> None:
    corpus = load(TOY)
    (test,) = corpus.tests.values()
    assert (len(corpus.train), len(corpus.valid), list(corpus.tests), len(test)) == (300, 20, ["test"], 30)
    assert all(ids.dtype == np.int32 and ids[-1] == 2 for side in (test.source, test.target) for ids in side)
    seen = [(line, ids) for line, ids in zip(test.reference, test.target, strict=True) if UNK not in ids]
    assert seen and all(corpus.target_vocabulary.decode(ids) == line for line, ids in seen)
    assert corpus.languages == ("de", "en") and corpus.codes is None
    again = load(TOY)
    assert corpus.report == again.report and decoded(corpus) == decoded(again)


def test_the_toy_language_in_the_other_direction() -> None:
    forth, back = load(TOY), load(replace(TOY, source_language="en", target_language="de"))
    assert decoded(back) == [(english, german) for german, english in decoded(forth)]
    assert back.tests["test"].source_text == forth.tests["test"].reference


def test_training_leaves_out_and_counts_pairs_with_an_empty_or_long_side(folder: Path) -> None:
    corpus = load(texts(folder, max_length=10))
    assert decoded(corpus) == [
        (GERMAN[n], ENGLISH[n]) for n in (0, 1, 4)
    ]  # the fourth has 10 tokens and eos, 11 in all
    assert "train: 3 pairs" in corpus.report[0]
    assert (
        "left out: 1 pairs with an empty side, 1 with more than 10 tokens on a side (with the end of the sentence)"
        in corpus.report[0]
    )
    assert len(load(texts(folder, max_length=11)).train) == 4


def test_valid_and_test_keep_every_pair(folder: Path) -> None:
    test = load_scored(texts(folder, max_length=2, tokenize=False), load(texts(folder)).vocabularies, None).tests[
        "test"
    ]
    assert test.source_text == GERMAN[1:4] and test.reference == ENGLISH[1:4]
    assert [len(ids) for ids in test.source] == [4, 1, 11]


def test_a_corpus_without_a_pair_is_refused(folder: Path) -> None:
    with user_error(r"none of 5 training pairs can be used; left out: 1 .*, 4 with more than 2"):
        load(texts(folder, max_length=2))


def test_raw_text_is_tokenised_lower_cased_and_split(folder: Path) -> None:
    corpus = load(texts(folder, tokenize=True, lowercase=True, bpe_merges=12, joined_vocabulary=True))
    assert corpus.source_vocabulary is corpus.target_vocabulary
    assert corpus.codes is not None and corpus.codes.count("\n") == 13
    assert corpus.target_preprocessing.undo([decoded(corpus)[0][1]]) == ["that's a house."]
    assert corpus.valid.source_text == GERMAN[:2]
    assert corpus.valid.reference == ["that &apos;s a house .", "he says : &apos; yes ! &apos;"]
    assert corpus.valid.reference_detokenized == ENGLISH[:2], "sacreBLEU lower-cases by itself, and says so"
    cased = load(texts(folder, tokenize=True)).valid
    assert cased.reference_detokenized == ENGLISH[:2]


def test_tokenised_text_is_detokenised_for_sacrebleu(folder: Path) -> None:
    write(folder, "test", ["d@@ as ist , ja"], ["th@@ at &apos;s , yes"])
    test = load(texts(folder, undo="subword-nmt,moses")).tests["test"]
    assert test.reference == ["that &apos;s , yes"]
    assert test.reference_detokenized == ["that's, yes"]
    assert test.source_text == ["d@@ as ist , ja"]


@pytest.mark.parametrize("prepared", [False, True])
def test_an_unknown_word_of_a_reference_is_never_right(folder: Path, prepared: bool) -> None:
    """As in fairseq, also inside a word that BPE has split. Scores against a raw file use its text as it stands."""
    lines = ["the <unk> is <unk>", "<unk>", "th@@ <unk> a", "a<unk> <<unk>>"]
    write(folder, "test", ["ja"] * len(lines), lines)
    test = load(texts(folder, prepared=prepared)).tests["test"]
    inside = "th" if prepared else "th@@ "  # raw text without BPE has no marks
    assert test.reference == ["the <<unk>> is <<unk>>", "<<unk>>", f"{inside}<<unk>> a", "a<unk> <<unk>>"]
    assert ("<<unk>>" in test.reference_detokenized[0]) == prepared


def test_prepared_text_stays_unchanged_and_new_text_is_prepared(folder: Path) -> None:
    (folder / "codes.gz").write_bytes(gzip.compress(b"#version: 0.2\nt h\nth a\n"))
    write(folder, "train", ["d@@ as ist"], ["tha@@ t is"])
    corpus = load(texts(folder, prepared=True, tokenize=True, lowercase=True, bpe_codes=str(folder / "codes")))
    assert decoded(corpus) == [("d@@ as ist", "tha@@ t is")]
    assert corpus.target_preprocessing.apply(["THAT is."]) == ["tha@@ t i@@ s ."]


@pytest.mark.parametrize("keys", [{"prepared": True}, {"undo": "sentencepiece"}])
def test_new_lines_are_split_only_if_something_says_how(folder: Path, keys: dict[str, object]) -> None:
    """A config for raw text, `data.bpe_kind=metaspace`, cannot know how text was split that was prepared elsewhere."""
    line = "▁tha t@@ ▁is ."
    write(folder, "train", [line], [line])
    corpus = load(texts(folder, bpe_kind="metaspace", **keys))
    assert decoded(corpus) == [(line, line)] and corpus.source_preprocessing.apply([line]) == [line]
    assert len(corpus.target_vocabulary) == len(SPECIALS) + 4


def test_the_toy_language_comes_back_from_pieces() -> None:
    corpus = load(DataConfig(**{**vars(TOY), "bpe_kind": "metaspace"}))
    lines = corpus.target_preprocessing.undo(map(corpus.target_vocabulary.decode, corpus.valid.target))
    assert lines == corpus.valid.reference == corpus.valid.reference_detokenized and "▁" not in "".join(lines)


def test_byte_level_text_needs_merges(folder: Path) -> None:
    config = texts(folder, bpe_kind="byte-level")
    with user_error(r"data\.bpe_kind=byte-level needs merges .*data\.bpe_codes.*train\.init_from"):
        load(config)
    assert load(config, codes="#version: 0.2\nt h\n").codes == "#version: 0.2\nt h\n"


def test_without_training_the_training_text_is_not_needed(folder: Path) -> None:
    config = texts(folder, bpe_merges=8)
    first = load(config)
    (folder / "train.de").unlink()
    second = load_scored(config, first.vocabularies, first.codes)
    assert len(second.train) == 0 and all(map(np.array_equal, second.valid.target, first.valid.target))
    assert second.report == first.report[1:-1]
    with user_error("BPE codes of the run are needed"):
        load_scored(config, first.vocabularies, None)


def test_the_report_counts_tokens_and_unknown_ones(folder: Path) -> None:
    write(folder, "train", ["a b", "c"], ["x y z", "x"])
    write(folder, "valid", ["a q b", "q"], ["x", "x"])
    report = load(texts(folder)).report
    assert report[0].startswith("train: 2 pairs, 3 de tokens (0.00 % unknown) and 4 en tokens (0.00 % unknown); left")
    assert report[1] == "valid: 2 pairs, 4 de tokens (50.00 % unknown) and 2 en tokens (0.00 % unknown)"
    assert report[2].startswith("test: 3 pairs, ")
    assert report[3] == "vocabularies: de 7, en 7 tokens"
    assert load(texts(folder, joined_vocabulary=True)).report[3] == "vocabulary: 10 tokens, joined"


def test_the_report_counts_what_a_model_was_trained_on_before_it_is_scored_on_it(folder: Path) -> None:
    write(folder, "train", ["a b", "c", "long " * 101], ["x y z", "x", "x"])
    write(folder, "valid", ["a b", "a b c", "c", "c", "long " * 101], ["x"] * 5)
    write(folder, "test", ["b a", "a"], ["x y z", "x"])
    known = "sources that the training text has too: valid 3 of 5, test 0 of 2"
    assert load(texts(folder, max_length=100)).report[-1] == known


def test_both_sides_of_a_table_may_have_one_language(tmp_path: Path) -> None:
    """As in simplification, or in another script: each side has its own line in the report."""
    (tmp_path / "t.tsv").write_text("a b c\td\n" * 3)
    keys = {"source": "tsv", "columns": "1,2", "train": "t.tsv", "valid": "t.tsv", "tests": ()}
    for target in ("en", "en_GB"):
        corpus = load(DataConfig(directory=str(tmp_path), source_language="en", target_language=target, **keys))  # type: ignore[arg-type]
        assert f"9 en tokens (0.00 % unknown) and 3 {target} tokens" in "\n".join(corpus.report)


@pytest.mark.parametrize("joined", [False, True])
def test_text_assets_are_saved_and_read(folder: Path, joined: bool) -> None:
    corpus = load(texts(folder, tokenize=True, lowercase=True, bpe_merges=8, joined_vocabulary=joined))
    save_text_assets(corpus, folder / "run")
    assets = load_text_assets(folder / "run")
    assert assets.vocabularies == corpus.vocabularies and assets.codes == corpus.codes
    assert assets.source_preprocessing == corpus.source_preprocessing
    assert assets.target_preprocessing == corpus.target_preprocessing
    assert (assets.source_vocabulary is assets.target_vocabulary) == joined
    names = ["preprocessing.json", "vocabulary.source.txt", "vocabulary.target.txt"]
    assert sorted(path.name for path in (folder / "run").iterdir()) == names


def test_a_resumed_run_notices_other_codes_and_needs_no_file_of_them(folder: Path, tmp_path: Path) -> None:
    codes = tmp_path / "codes"
    codes.write_text("#version: 0.2\nn e\n")
    config = texts(folder, bpe_codes=str(codes), store=str(tmp_path / "store"))
    corpus = load(config)
    (tmp_path / "moved").write_text(codes.read_text())
    for path in (tmp_path / "moved", tmp_path / "nowhere"):
        again = load(replace(config, bpe_codes=str(path)), corpus.vocabularies, corpus.codes)
        assert again.fingerprints() == corpus.fingerprints()
    assert len(list((tmp_path / "store").iterdir())) == 1, "it finds what it has stored"
    codes.write_text("#version: 0.2\nu e\n")
    with user_error(r"data.bpe_codes=.*codes is not the file that this run, or the run of train.init_from, began"):
        load(config, corpus.vocabularies, corpus.codes)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"source": "web"},
            "data.source='web' is unknown: give 'toy', 'text', 'tsv', 'fairseq', 'tfds', 'labelled', 'plain' or 'enwik8'",
        ),
        ({"source": "text"}, "data.directory is empty"),
        (
            {"source": "text", "directory": "d", "source_language": "en", "target_language": "en"},
            "are both 'en', so with data.source=text both sides would be one text",
        ),
        ({"target_language": "fr"}, "the toy language has the sides 'de' and 'en', not 'de' and 'fr'"),
        ({"bpe_merges": 5, "bpe_codes": "codes"}, "leave out data.bpe_codes"),
        (
            {"bpe_merges": 5, "prepared": True},
            "data.bpe_merges=5 learns codes on raw text: give data.bpe_merges=0, or leave out",
        ),
        ({"max_length": 1}, "data.max_length=1 is too small: give 2 or more"),
        ({"max_tokens": 0}, "data.max_tokens=0 is too small"),
        ({"toy_valid": 0}, "data.toy_valid=0 is too small"),
    ],
)
def test_invalid_configs_are_refused(keys: dict[str, object], message: str) -> None:
    with user_error(message):
        DataConfig(**keys)  # type: ignore[arg-type]


def test_every_source_has_a_reader():
    assert {*_KINDS, "labelled", *STREAMS} == set(SOURCES)

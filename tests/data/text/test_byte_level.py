"""Byte-level BPE: the pieces equal the tokenizers library's, every text comes back exactly, and invalid merges are refused."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import ByteLevelBPETokenizer

from one_layer.data.config import DataConfig
from one_layer.data.loading import load
from one_layer.data.special_tokens import UNK
from one_layer.data.text import byte_level
from one_layer.data.text.assets import load_text_assets, save_text_assets
from one_layer.data.text.preprocess import Preprocessing, check_codes
from one_layer.data.text.vocabulary import SPECIALS
from tests import user_error

LINES = [
    "The house is new, and the houses are newer.",
    "It's a well-known house; they've known it.",
    "naïve café 漢字 漢字 🙂🙂 and the rest",
    "they're there  with   spaces ",
] * 2
TEXT = st.text(
    st.one_of(
        st.sampled_from("the house'sĠ  \t\r\x00\x07\u00a0\u2028\u200d🙂👩\U0001f3fd漢é"),
        st.characters(codec="utf-8", exclude_characters="\n"),
        st.sampled_from(["e\u0301", "\u0327", "\ufeff"]).map(lambda mark: mark[-1]),
    ),
    max_size=25,
)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a merges.txt and a vocab.json that the library wrote; the first four tokens are RoBERTa's."""
    folder = tmp_path_factory.mktemp("bytes")
    tokenizer = ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(LINES, vocab_size=400, show_progress=False, special_tokens=list(SPECIALS))
    tokenizer.save_model(str(folder))
    return folder


@pytest.fixture(scope="module")
def steps(published: Path) -> Preprocessing:
    return Preprocessing("en", codes=(published / "merges.txt").read_text("utf-8"), bpe_kind="byte-level")


@pytest.fixture(scope="module")
def theirs(published: Path) -> ByteLevelBPETokenizer:
    return ByteLevelBPETokenizer.from_file(str(published / "vocab.json"), str(published / "merges.txt"))


@settings(deadline=None, max_examples=200)
@given(TEXT)
def test_pieces_equal_the_library_s_and_restore_the_text(
    steps: Preprocessing, theirs: ByteLevelBPETokenizer, line: str
) -> None:
    (pieces,) = steps.apply([line])
    assert pieces.split(" ") == (theirs.encode(line).tokens or [""])
    assert steps.undo([pieces]) == steps.join([pieces]) == [line]


def test_lower_casing_and_moses_come_before_bpe(steps: Preprocessing) -> None:
    lower = Preprocessing("en", lowercase=True, codes=steps.codes, bpe_kind="byte-level")
    assert lower.apply(["THE House"]) == steps.apply(["the house"])
    moses = Preprocessing("en", tokenize=True, codes=steps.codes, bpe_kind="byte-level")
    assert moses.join(moses.apply(["It's new."])) == ["It &apos;s new ."]
    assert moses.undo(moses.apply(["It's new."])) == ["It's new."]


def test_undo_replaces_invalid_utf8_and_keeps_other_letters(steps: Preprocessing) -> None:
    assert steps.undo(["Ã", "the ðŁ", "<unk> Ġhouse", "漢 Ġx"]) == ["\ufffd", "the\ufffd", "<unk> house", "漢 x"]


@pytest.mark.parametrize("header", ["", "#version: 0.2\n", "#version: 0.2 - Trained by `huggingface/tokenizers`\n"])
def test_a_header_is_optional_and_number_signs_can_be_merged(header: str) -> None:
    steps = Preprocessing("en", codes=header + "# #\nt h\nth e\n", bpe_kind="byte-level")
    assert steps.apply(["## the"]) == ["## Ġ the"]


@pytest.mark.parametrize(
    ("merges", "message"),
    [
        ("", "merges.txt holds no merges"),
        ("#version: 0.2\n", "merges.txt holds no merges"),
        ("#version: 0.2\nt h\nth\n", "merges.txt, line 3: 'th' is not two symbols"),
        ("t h\nth e x\n", "merges.txt, line 2: 'th e x' is not two symbols"),
        ("t h\n\nh e\n", "merges.txt, line 2: '' is not two symbols"),
        ("t  h\n", "merges.txt, line 1: 't  h' is not two symbols"),
        ("#version: 0.2\nt h\ne r</w>\n", "merges.txt, line 3: 'r</w>' is neither a byte nor the result of any merge"),
        ("t h\nth 漢\n", "merges.txt, line 2: '漢' is neither a byte"),
    ],
)
def test_invalid_merges_are_named_with_file_and_line(merges: str, message: str) -> None:
    with user_error(message):
        check_codes(merges, "merges.txt", "byte-level")


def test_byte_level_merges_are_refused_as_subword_nmt_codes(steps: Preprocessing) -> None:
    assert steps.codes
    with user_error(r"holds byte-level merges.*set data\.bpe_kind=byte-level"):
        Preprocessing("en", codes=steps.codes)
    check_codes("#version: 0.2\nĠ e</w>\n")  # Ġ is also a letter of Maltese
    with user_error(r"data\.bpe_kind='wordpiece' is unknown: give subword-nmt or byte-level or metaspace"):
        Preprocessing("en", bpe_kind="wordpiece")


def corpus_of(folder: Path, published: Path, **keys: object) -> DataConfig:
    for name in ("train", "valid", "test"):
        (folder / f"{name}.en").write_text("".join(line + "\n" for line in LINES), "utf-8")
        (folder / f"{name}.de").write_text("das Haus\n" * len(LINES), "utf-8")
    known = {"source": "text", "directory": str(folder), "source_language": "en", "target_language": "de"}
    known |= {"bpe_codes": str(published / "merges.txt"), "bpe_kind": "byte-level"}
    return DataConfig(**{**known, **keys})  # type: ignore[arg-type]


@pytest.mark.parametrize("store", [False, True])
def test_a_corpus_uses_the_ids_of_vocab_json(tmp_path: Path, published: Path, theirs: object, store: bool) -> None:
    keys = {"store": str(tmp_path / "store")} if store else {}
    corpus = load(corpus_of(tmp_path, published, vocabulary=str(published / "vocab.json"), **keys))
    assert isinstance(theirs, ByteLevelBPETokenizer)
    for line, ids in zip(LINES, corpus.train.source, strict=True):
        assert ids.tolist() == [*theirs.encode(line).ids, 2] and UNK not in ids
    assert corpus.source_vocabulary.tokens[:4] == SPECIALS
    assert len(corpus.source_vocabulary) == theirs.get_vocab_size() > len(corpus.target_vocabulary)
    assert corpus.valid.reference == corpus.valid.reference_detokenized == ["das Haus"] * len(LINES)
    save_text_assets(corpus, tmp_path / "run")
    again = load_text_assets(tmp_path / "run")
    assert again.vocabularies == corpus.vocabularies and again.source_preprocessing == corpus.source_preprocessing
    if store:
        same = load(corpus_of(tmp_path, published, vocabulary=str(published / "vocab.json"), **keys))
        load(corpus_of(tmp_path, published, **keys))
        assert same.source_vocabulary == corpus.source_vocabulary and len(list((tmp_path / "store").iterdir())) == 2


def test_long_words_are_learned_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A genome is one word, and learning takes time that grows with the square of its length."""
    lines = [*LINES, "acgt" * 6 + "\n", " " * 20]
    usual = byte_level.learn(lines, 60)
    monkeypatch.setattr(byte_level, "_LONGEST_WORD", 10_000)
    assert byte_level.learn(lines, 60) == usual
    monkeypatch.setattr(byte_level, "_LONGEST_WORD", 4)
    longest = [
        max(len(merge) for merge in merges.replace(" ", "").split("\n")[1:])
        for merges in (usual, byte_level.learn(lines, 60))
    ]
    assert longest[0] > longest[1] == 4

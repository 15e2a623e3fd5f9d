"""fairseq's data-bin folders: they give the same corpus as their text, and damaged files are named."""

import struct
from pathlib import Path

import numpy as np
import pytest

from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus
from one_layer.data.loading import load, load_scored
from one_layer.data.sources.data_bin import read_indexed
from one_layer.data.special_tokens import EOS, UNK
from one_layer.data.text.lines import split_lines
from one_layer.data.text.vocabulary import Vocabulary
from tests import user_error

PARTS = {
    "train": (["das ist ein ha@@ us", "ja", "", "nein ja nein ja ja ja"], ["this is a house", "yes", "no", "no yes"]),
    "valid": (["ja ein ha@@ us", "nein"], ["yes a house", "no"]),
    "test": (["ja das ist ein ha@@ us", "ist nein"], ["yes this is a house", "is no"]),
}
SENTENCES = [np.array(ids) for ids in ([5, 6, 2], [2], [7, 4, 4, 2])]


def write_mapped(prefix: Path, sentences: list[np.ndarray], code: int = 8, kind: str = "<u2") -> None:
    """--dataset-impl mmap: sizes in ids, pointers in bytes."""
    lengths = np.array([len(ids) for ids in sentences], "<i4")
    pointers = ((np.cumsum(lengths) - lengths) * np.dtype(kind).itemsize).astype("<i8")
    head = b"MMIDIDX\x00\x00" + struct.pack("<QBQ", 1, code, len(lengths))
    Path(f"{prefix}.idx").write_bytes(head + lengths.tobytes() + pointers.tobytes())
    Path(f"{prefix}.bin").write_bytes(np.concatenate(sentences).astype(kind).tobytes())


def write_folder(folder: Path, parts: dict[str, tuple[list[str], list[str]]]) -> None:
    """German and English lines of every part, and the dictionaries of `train`."""
    folder.mkdir()
    for side, language in enumerate(("de", "en")):
        vocabulary = Vocabulary.build(parts["train"][side])
        vocabulary.save(folder / f"dict.{language}.txt")
        for name, lines in parts.items():
            write_mapped(folder / f"{name}.de-en.{language}", [vocabulary.encode(line) for line in lines[side]])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_folder(tmp_path / "bin", PARTS)
    return tmp_path / "bin"


def fairseq(folder: Path, **keys: object) -> DataConfig:
    return DataConfig(source="fairseq", directory=str(folder), **keys)  # type: ignore[arg-type]


def ids(corpus: Corpus) -> list[list[list[int]]]:
    splits = [corpus.train, corpus.valid, *corpus.tests.values()]
    return [[ids.tolist() for ids in side] for split in splits for side in (split.source, split.target)]


@pytest.mark.parametrize("languages", [("de", "en"), ("en", "de")])
def test_a_folder_gives_the_same_corpus_as_its_text(tmp_path: Path, languages: tuple[str, str]) -> None:
    write_folder(tmp_path / "bin", PARTS)
    for name, sides in PARTS.items():
        for language, lines in zip(("de", "en"), sides, strict=True):
            (tmp_path / f"{name}.{language}").write_text("".join(line + "\n" for line in lines))
    keys = {"source_language": languages[0], "target_language": languages[1], "max_length": 6}
    text = load(DataConfig(source="text", directory=str(tmp_path), prepared=True, **keys))  # type: ignore[arg-type]
    binary = load(fairseq(tmp_path / "bin", **keys))
    assert len(text.train) == 2 and "1 pairs with an empty side, 1 with more" in text.report[0]
    assert ids(binary) == ids(text) and binary.report == text.report and binary.vocabularies == text.vocabularies
    assert binary.tests["test"].reference == text.tests["test"].reference
    assert binary.valid.reference_detokenized == text.valid.reference_detokenized
    again = load_scored(fairseq(tmp_path / "bin", **keys), binary.vocabularies, None)
    assert not len(again.train) and ids(again)[2:] == ids(binary)[2:]


def test_sentencepiece_text_is_scored_as_words(tmp_path: Path) -> None:
    """As with fairseq's option remove-bpe=sentencepiece. Without the key, the log says that nothing joins the pieces."""
    write_folder(tmp_path / "bin", {**PARTS, "train": (["▁ja"], ["▁do g ▁s"]), "valid": (["▁ja"], ["▁do g ▁s g"])})
    words, pieces = (load(fairseq(tmp_path / "bin", undo=undo)) for undo in ("sentencepiece", ""))
    assert words.valid.reference == words.valid.reference_detokenized == ["dog sg"]
    assert not any("data.undo" in line for line in words.report)
    assert any("'▁do' is one" in line and "data.undo=sentencepiece would join them" in line for line in pieces.report)


def test_ids_are_memory_mapped_and_equal_dictionaries_give_one_vocabulary(folder: Path) -> None:
    (folder / "dict.en.txt").write_bytes((folder / "dict.de.txt").read_bytes())
    corpus = load(fairseq(folder))
    assert corpus.source_vocabulary is corpus.target_vocabulary
    assert isinstance(corpus.train.source.tokens.base, np.memmap)


def test_an_unknown_reference_token_matches_no_hypothesis(tmp_path: Path) -> None:
    write_folder(tmp_path / "bin", {**PARTS, "valid": (["ja", "neu"], ["yes what", "what what a"])})
    valid = load(fairseq(tmp_path / "bin")).valid
    assert valid.reference == ["yes <<unk>>", "<<unk>> <<unk>> a"] and valid.source_text == ["ja", "<<unk>>"]
    assert valid.target[1].tolist()[:2] == [UNK, UNK] and valid.source[1].tolist() == [UNK, EOS]


def test_new_text_is_prepared_like_the_folder(folder: Path) -> None:
    (folder / "code").write_text("#version: 0.2\ne i\nn </w>\n")
    corpus = load(fairseq(folder, tokenize=True, lowercase=True, bpe_codes=str(folder / "code")))
    assert corpus.source_preprocessing.apply(["Ein Ei!"]) == ["ei@@ n e@@ i !"]
    assert corpus.valid.reference == ["yes a house", "no"]


def test_a_training_text_that_other_splits_continue_is_refused(tmp_path: Path) -> None:
    """fairseq would read `train1` as a part of `train`. Other splits may have such names."""
    write_folder(tmp_path / "other", {**PARTS, "valid1": PARTS["test"]})
    assert len(load(fairseq(tmp_path / "other")).valid) == 2
    write_folder(tmp_path / "bin", {**PARTS, "train1": PARTS["test"]})
    with user_error(r"train1\.de-en\.de\.idx continues train, and is not read; preprocess the training text"):
        load(fairseq(tmp_path / "bin"))


def test_an_end_of_a_sentence_inside_a_line_cuts_nothing(folder: Path) -> None:
    """The ids are those of the file, and the text has every word, as in fairseq."""
    inner = np.array([5, EOS, 4, EOS, EOS, 6, EOS])
    for language in ("de", "en"):
        write_mapped(folder / f"valid.de-en.{language}", [inner, inner[::-1][1:], inner])
    (folder / "dict.en.txt").write_text("a 3\nNew York 2\n▁c -1\nd 1\n")
    (folder / "dict.de.txt").write_text("a 3\nNew York 2\n▁c -1\nd 1\n")
    write_mapped(folder / "valid.de-en.de", [inner, inner])
    write_mapped(folder / "valid.de-en.en", [inner, inner])
    for part in ("train", "test"):
        for language in ("de", "en"):
            write_mapped(folder / f"{part}.de-en.{language}", [inner])
    corpus = load(fairseq(folder))
    for split in (corpus.valid, corpus.tests["test"], load_scored(fairseq(folder), corpus.vocabularies, None).valid):
        for side in (split.source, split.target):
            assert all(ids.tolist() == inner.tolist() for ids in side)
        assert {*split.source_text, *split.reference} == {"New York a ▁c"}


def test_sentences_have_no_more_ids_together_than_the_file(tmp_path: Path) -> None:
    """A small index of many overlapping sentences would otherwise ask for any amount of memory."""
    write_mapped(tmp_path / "x", [np.array([5, EOS])] * 70_000)
    index = bytearray((tmp_path / "x.idx").read_bytes())
    assert len(read_indexed(tmp_path / "x")) == 70_000
    lengths = np.frombuffer(index, "<i4", 70_000, offset=26).copy()
    lengths[:35_000] = 70_000
    index[26 : 26 + 4 * 70_000] = lengths.tobytes()
    (tmp_path / "x.idx").write_bytes(index)
    with user_error(r"has sentences of 2,450,070,000 ids together, but x\.bin holds 140,000"):
        read_indexed(tmp_path / "x")


@pytest.mark.parametrize(
    ("code", "kind"), [(1, "u1"), (2, "i1"), (3, "<i2"), (4, "<i4"), (5, "<i8"), (8, "<u2"), (9, "<u4")]
)
def test_every_dtype_of_ids_can_be_read(tmp_path: Path, code: int, kind: str) -> None:
    write_mapped(tmp_path / "x", SENTENCES, code, kind)
    assert [ids.tolist() for ids in read_indexed(tmp_path / "x")] == [ids.tolist() for ids in SENTENCES]


def test_a_truncated_index_or_one_beyond_its_data_is_refused(tmp_path: Path) -> None:
    write_mapped(tmp_path / "x", SENTENCES)
    index, data = tmp_path / "x.idx", tmp_path / "x.bin"
    whole, ids = index.read_bytes(), data.read_bytes()
    for end in range(9, len(whole)):
        index.write_bytes(whole[:end])
        with user_error(r"x\.idx is truncated"):
            read_indexed(tmp_path / "x")
    index.write_bytes(whole)
    data.write_bytes(ids[:-1])
    with user_error(r"x\.idx places sentence 3 at ids 4 to 8, but x\.bin holds 7"):
        read_indexed(tmp_path / "x")
    data.unlink()
    with user_error(r"x\.bin does not exist"):
        read_indexed(tmp_path / "x")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"x\.idx begins with b''"),
        (b"MMIDIDX\x00\x00" + struct.pack("<QBQ", 2, 8, 0), r"x\.idx has version 2; give a file of version 1"),
        (
            b"MMIDIDX\x00\x00" + struct.pack("<QBQ", 1, 7, 0),
            r"x\.idx has ids of dtype code 7; the known codes are 1, 2",
        ),
        (b"MMIDIDX\x00\x00" + struct.pack("<QBQ", 1, 8, 0), r"x\.idx has no sentences"),
        (b"MMIDIDX\x00\x00" + struct.pack("<QBQiq", 1, 8, 1, 2, -2), r"x\.idx places sentence 1 at ids -1 to 1"),
        (b"MMIDIDX\x00\x00" + struct.pack("<QBQiq", 1, 8, 1, 2, 3), r"x\.idx places sentence 1 at ids -1 to 1"),
        (b"MMIDIDX\x00\x00" + struct.pack("<QBQiq", 1, 1, 1, 2, 2**63 - 1), r"x\.idx places sentence 1 at ids 9,223"),
        (b"MMIDIDX\x00\x00" + struct.pack("<QBQ", 1, 8, 2**62), r"x\.idx is truncated"),
        (b"MMIDIDX\x00\x00" + struct.pack("<QBQ", 1, 8, 2**64 - 1), r"x\.idx is truncated"),
        (
            b"TNTIDX\x00\x00" + bytes(40),
            r"x\.idx begins with b'TNTIDX.*run fairseq-preprocess with --dataset-impl mmap",
        ),
    ],
)
def test_an_invalid_index_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x.idx").write_bytes(content)
    (tmp_path / "x.bin").write_bytes(bytes(8))
    with user_error(message):
        read_indexed(tmp_path / "x")


def test_files_that_do_not_fit_together_are_refused(folder: Path) -> None:
    with user_error(r"news\.de-en\.de\.idx does not exist \(nor news\.en-de\.de\.idx\)"):
        load(fairseq(folder, tests=("news",)))
    with user_error(r"dict\.fr\.txt does not exist"):
        load(fairseq(folder, target_language="fr"))
    with user_error(r"the dictionaries in .* are not those that this run, or the run of train.init_from, began with"):
        load(fairseq(folder), (Vocabulary.build(["a"]),) * 2)
    write_mapped(folder / "valid.de-en.en", SENTENCES)
    with user_error(r"valid\.de-en\.de\.idx has 2 sentences, but .*valid\.de-en\.en\.idx has 3"):
        load(fairseq(folder))
    write_mapped(folder / "valid.de-en.en", [np.array([5, 2]), np.array([999, 2])])
    with user_error(r"valid\.de-en\.en\.bin holds ids from 2 to 999, but its dictionary has 10"):
        load(fairseq(folder))
    write_mapped(folder / "valid.de-en.en", [np.array([5, 2]), np.array([5, 6])])
    with user_error(r"valid\.de-en\.en\.bin: sentence 2 does not end with </s>"):
        load(fairseq(folder))
    (folder / "raw.de-en.de").write_text("ja\n")
    with user_error(r"holds raw as text .* set data\.source=text"):
        load(fairseq(folder, valid="raw"))
    words = split_lines((folder / "dict.de.txt").read_bytes(), "dict")
    (folder / "dict.de.txt").write_text("\n".join([*words, words[0]]))
    with user_error(r"dict\.de\.txt, line 8: 'ja' is already in line"):
        load(fairseq(folder))


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with user_error("is not a folder"):
        load(fairseq(tmp_path / "none"))

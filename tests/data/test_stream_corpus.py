"""Plain text as a corpus: files, parts by position and units; files that cannot be read; and enwik8, as models are compared on it."""

import dataclasses
import gzip
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from one_layer.data import stream_corpus
from one_layer.data.config import DataConfig
from one_layer.data.sources import plain_parts, plain_text
from one_layer.data.sources.plain_text import PlainText
from one_layer.data.special_tokens import EOS, PAD, UNK
from one_layer.data.text import units
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.units import Bytes, Pieces, vocabulary_of
from tests import user_error

TEXT = "Il nostro  voto è sì.\nдва\r\n\n€ 5\t" * 9


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.txt").write_bytes(TEXT.encode())
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"the end\n" * 20))
    return tmp_path


BPE = {"unit": "bpe", "bpe_kind": "byte-level", "bpe_merges": 20}


def config(folder, **changes):
    return DataConfig(
        **{"source": "plain", "directory": str(folder), "train": "a.txt,b.txt", "held_out": 0.1, "block": 8, **changes}
    )


def test_the_parts_by_position_make_up_the_text(folder):
    corpus = stream_corpus.load(config(folder))
    parts = [corpus.train, corpus.valid, corpus.tests["test"]]
    whole = np.concatenate([ids for part in parts for ids in part.source.chunks()])
    assert bytes((whole - 4).astype(np.uint8)) == TEXT.encode() + b"\n" + b"the end\n" * 20
    assert f"files of train: {folder}/a.txt, {folder}/b.txt.gz" in corpus.report
    assert len(corpus.valid.source.tokens) == len(corpus.tests["test"].source.tokens) == len(whole) // 10


def test_lines_of_any_length_are_encoded_a_few_at_a_time(folder, monkeypatch):
    text, merges = PlainText((folder / "a.txt",)), plain_merges(folder)
    pieces = Pieces(vocabulary_of(merges), merges)
    whole = np.concatenate([*pieces.encode(text)])
    monkeypatch.setattr(units, "_CHARACTERS", 40)
    some = [*pieces.encode(text)]
    longest = max(map(len, TEXT.splitlines(keepends=True)))
    assert len(some) > 3 and max(len(pieces.text(each)) for each in some) < 40 + longest
    np.testing.assert_array_equal(np.concatenate(some), whole)


def test_a_text_that_is_named_as_it_is_may_be_there_twice_and_be_scored_too(folder):
    assert len(stream_corpus.load(config(folder, train="a.txt,a.txt", valid="a.txt")).valid) > 0


def test_a_file_that_has_the_name_of_a_list_is_meant_itself(folder):
    (folder / "x,y.txt").write_bytes(b"x,y.txt\n" * 9)
    corpus = stream_corpus.load(config(folder, train="x,y.txt"))
    assert f"files of train: {folder}/x,y.txt" in corpus.report and read_bytes(corpus.train).startswith(b"x,y.txt")


def test_a_list_of_names_may_be_longer_than_a_name_of_a_file(folder):
    once, often = (stream_corpus.load(config(folder, train=",".join(["a.txt"] * times))) for times in (1, 60))
    assert len(read_bytes(often.train)) > 50 * len(read_bytes(once.train))


def read_bytes(part):
    return bytes((np.asarray(part.source.tokens) - 4).astype(np.uint8))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(
    texts=st.lists(st.text(st.sampled_from("añ\n\r\ufeff"), max_size=9), min_size=1, max_size=4),
    marks=st.lists(st.booleans(), min_size=4, max_size=4),
    zipped=st.lists(st.booleans(), min_size=4, max_size=4),
    piece=st.sampled_from([1, 4, 1 << 20]),
)
def test_a_text_in_several_files_has_the_lines_of_each(tmp_path, texts, marks, zipped, piece):
    """No line goes over from one file to the next, and none begins with a byte order mark that is not the text's own."""
    paths, lines = [], []
    for number, (text, mark, compressed) in enumerate(zip(texts, marks, zipped, strict=False)):
        text = text.lstrip("\ufeff")
        content = (("\ufeff" if mark else "") + text).encode()
        paths.append(tmp_path / f"{number}.{'GZ' if compressed else 'txt'}")
        paths[-1].write_bytes(gzip.compress(content) if compressed else content)
        lines += [line + "\n" for line in text.removesuffix("\n").split("\n")] if text else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_text, "_PIECE", piece)
        found = PlainText(tuple(paths))
        whole = b"".join(found.pieces()).decode()
        assert whole.removesuffix("\n") == "".join(lines).removesuffix("\n")
        assert found.size == len(whole.encode())
        cut = found.size // 2
        halves = found.part(0, cut, False), found.part(cut, found.size, False)
        assert b"".join(piece for half in halves for piece in half.pieces()).decode() == whole


def test_bpe_cuts_the_text_where_a_character_begins(folder, monkeypatch):
    monkeypatch.setattr(plain_text, "_PIECE", 5)  # most pieces end inside a character
    (folder / "c.txt").write_text("два" * 40, "utf-8")
    chosen = config(folder, **BPE, train="a.txt,c.txt")
    corpus = stream_corpus.load(chosen)
    of_unit = stream_corpus.unit_of(chosen, corpus)
    parts = [of_unit.text(part.source.tokens) for part in (corpus.train, corpus.valid, corpus.tests["test"])]
    assert "".join(parts) == TEXT + "\n" + "два" * 40 and all(parts)


@pytest.mark.parametrize("share", [0.107, 0.112, 0.3])  # in bytes, the ends of all parts lie inside a character
def test_the_parts_of_a_masked_model_s_bytes_are_whole_characters(folder, share):
    text = "два€" * 50 + "\n" + "路" * 50
    (folder / "c.txt").write_text(text, "utf-8")
    chosen = config(folder, train="c.txt", held_out=share)
    corpus = stream_corpus.load(chosen, masked=True)
    scored = stream_corpus.load_scored(chosen, assets_of(corpus), masked=True)
    assert corpus.valid.source.fingerprint == scored.valid.source.fingerprint
    parts = [corpus.train, scored.valid, scored.tests["test"]]
    read = [bytes((ids[ids >= 4] - 4).astype(np.uint8)).decode() for ids in (part.source.tokens for part in parts)]
    assert "".join(read) == text.replace("\n", "")


def test_a_part_may_end_or_begin_within_the_last_character(tmp_path):
    (tmp_path / "c.txt").write_text("a路", "utf-8")
    text, size = PlainText((tmp_path / "c.txt",)), 4
    for cut in range(size + 1):
        halves = [text.part(*ends, at_characters=True) for ends in ((0, cut), (cut, size))]
        assert "".join(part for half in halves for part in half.characters()) == "a路"


@pytest.mark.parametrize("name", ["bytes", "bpe"])
def test_a_unit_gives_the_text_back_and_counts_what_it_measures(folder, name):
    text = PlainText((folder / "a.txt",))
    merges = plain_merges(folder) if name == "bpe" else None
    of_unit = Pieces(vocabulary_of(merges), merges) if merges else Bytes(vocabulary_of(None))
    ids = np.concatenate(list(of_unit.encode(text)))
    assert of_unit.text(ids) == TEXT and np.array_equal(ids, of_unit.ids(TEXT)) and UNK not in ids
    assert of_unit.sizes[ids].sum() == len(TEXT.encode())
    assert name != "bpe" or len(ids) < len(TEXT) / 2
    assert of_unit.text([*of_unit.ids("a")[:0], PAD, EOS]) == ""


def plain_merges(folder):
    return stream_corpus.load(config(folder, unit="bpe", bpe_kind="byte-level", bpe_merges=40)).codes


def test_a_store_gives_the_same_corpus_without_the_text_being_read_again(folder, monkeypatch):
    chosen = config(folder, **BPE, store=str(folder / "store"))
    first = stream_corpus.load(chosen)
    assert first.fingerprints() == stream_corpus.load(config(folder, **BPE)).fingerprints()
    monkeypatch.setattr(stream_corpus, "vocabulary_of", None)
    again = stream_corpus.load(chosen)
    assert again.fingerprints() == first.fingerprints() and again.vocabularies == first.vocabularies


def test_a_store_in_the_vocabulary_of_another_run_is_not_a_new_run_s(folder, tmp_path):
    """Fine-tuning reads a text in the vocabulary of another run, and both may use one store."""
    (folder / "other.txt").write_text("abcdefgh\n" * 30)
    saved = assets_of(stream_corpus.load(config(folder, **BPE, train="other.txt")))
    own = config(folder, **BPE)
    chosen = config(folder, **BPE, store=str(tmp_path / "store"))
    for kept in (saved, None, saved, None):
        corpus, expected = stream_corpus.load(chosen, kept), stream_corpus.load(own, kept)
        assert corpus.vocabularies == expected.vocabularies and corpus.fingerprints() == expected.fingerprints()
    assert len(list((tmp_path / "store").iterdir())) == 2  # each is made once
    resumed = stream_corpus.load(chosen, assets_of(corpus))
    assert resumed.fingerprints() == corpus.fingerprints() and len(list((tmp_path / "store").iterdir())) == 2


def assets_of(corpus):
    return TextAssets(*corpus.vocabularies, corpus.source_preprocessing, corpus.target_preprocessing)


def test_only_the_parts_that_a_run_has_are_scored(folder):
    chosen = config(folder)
    saved = assets_of(stream_corpus.load(chosen))
    for wanted, parts in (("valid", (True, 0)), ("test", (False, 1)), ("", (True, 1))):
        scored = stream_corpus.load_scored(chosen, saved, wanted)
        assert (len(scored.valid) > 0, len(scored.tests)) == parts
    assert list(stream_corpus.load_scored(dataclasses.replace(chosen, tests=("valid",)), saved).tests) == ["valid"]
    with user_error(r"--split='dev' is unknown; this run has valid, test \(and test: all"):
        stream_corpus.load_scored(chosen, saved, "dev")


def test_other_merges_than_the_run_s_are_refused(folder):
    (folder / "merges.txt").write_text(plain_merges(folder), "utf-8")
    chosen = config(folder, unit="bpe", bpe_kind="byte-level", bpe_codes=str(folder / "merges.txt"))
    first = stream_corpus.load(chosen)
    saved = assets_of(first)
    for path, store in ((chosen.bpe_codes, ""), ("nowhere", ""), ("nowhere", str(folder / "store"))):
        again = stream_corpus.load(dataclasses.replace(chosen, bpe_codes=path, store=store), saved)
        assert again.fingerprints() == first.fingerprints()
    lines = plain_merges(folder).splitlines()
    (folder / "merges.txt").write_text("".join(f"{line}\n" for line in lines[:-1]), "utf-8")
    with user_error(
        r"data\.bpe_codes=.*merges\.txt is not the file that this run, or the run of train.init_from, began"
    ):
        stream_corpus.load(chosen, saved)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": "none.txt"}, r"none\.txt does not exist .*; give the name of a text file as data\.train, plain or"),
        ({"train": "a.txt,"}, r"data\.train='a\.txt,' has an empty name; give names with one comma between them"),
        ({"tests": ("",)}, r"data\.tests=\[''\] has an empty name; .* or \(\) for no test set"),
        ({"directory": ".", "train": ""}, r"data\.train='' has an empty name"),
        ({"train": "empty.txt"}, r"empty\.txt is empty"),
        ({"held_out": 0.0}, r"Without a file for valid, give data\.held_out=0\.02"),
        ({"valid": "dev"}, r"dev does not exist .*\. Or give data\.valid=valid with data\.held_out=0\.02$"),
        ({"tests": ("other",)}, r"other does not exist .*\. Or name the test sets as data\.tests"),
        ({"train": "latin.txt", **BPE}, r"latin\.txt: byte 2 is not UTF-8.* Only task=causal_lm with data\.unit=bytes"),
        ({"train": "half.txt.gz"}, "is not a whole compressed file"),
        ({"unit": "words"}, r"data\.unit='words' is unknown: give 'bytes' or 'bpe'"),
        ({"unit": "bpe", "bpe_merges": 9}, r"give data\.bpe_kind=byte-level"),
        ({"unit": "bpe", "bpe_kind": "byte-level"}, r"data\.unit=bpe needs data\.bpe_merges"),
        ({"bpe_merges": 9}, r"data\.bpe_merges=9 has no effect with data\.unit=bytes"),
        ({"tokenize": True}, r"data\.tokenize=True has no effect with data\.source='plain'"),
        ({"block": 1}, r"data\.block=1 is too small"),
        ({"source": "enwik8"}, r"data\.held_out=0\.1 has no effect with data\.source='enwik8'"),
        ({"directory": ""}, r"data\.directory is empty: give the folder with the text files"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(folder, changes, message):
    (folder / "empty.txt").touch()
    (folder / "latin.txt").write_bytes("più o meno così fan tutte".encode("latin-1"))
    (folder / "half.txt.gz").write_bytes(gzip.compress(b"the end\n" * 20)[:-9])
    with user_error(message):
        stream_corpus.load(config(folder, **changes))


def test_a_vocabulary_has_every_piece_of_its_merges(folder):
    """One that it lacks would be unknown, and its bytes be counted as one."""
    merges = plain_merges(folder)
    (folder / "merges.txt").write_text(merges, "utf-8")
    ids = {token: number for number, token in enumerate(vocabulary_of(merges).tokens[:-1])}
    (folder / "vocab.json").write_text(json.dumps(ids), "utf-8")
    given = {"unit": "bpe", "bpe_kind": "byte-level", "bpe_codes": str(folder / "merges.txt")}
    with user_error(r"vocab\.json: the merges make '\S+', which the vocabulary lacks"):
        stream_corpus.load(config(folder, **given, vocabulary=str(folder / "vocab.json")))


@pytest.mark.parametrize("piece", [1, 5, 100])
@pytest.mark.parametrize(("text", "place"), [(b"caf\xc3\xa9 \xff", 6), (b"a\xe2\x82", 1), (b"ab\xe2\x82 c", 2)])
def test_the_byte_that_is_not_utf8_is_named_wherever_pieces_end(tmp_path, monkeypatch, piece, text, place):
    monkeypatch.setattr(plain_text, "_PIECE", piece)
    (tmp_path / "text").write_bytes(text)
    with user_error(rf": byte {place} is not UTF-8"):
        "".join(PlainText((tmp_path / "text",)).characters())


def test_a_masked_model_s_text_needs_a_line_that_is_not_blank(folder):
    (folder / "blank.txt").write_text("\n  \n" * 30)
    with user_error("has no token in the part that is wanted; give more text"):
        stream_corpus.load(config(folder, train="blank.txt"), masked=True)


def test_enwik8_is_split_as_published(tmp_path, monkeypatch):
    parts = {"train": (0, 90), "valid": (90, 95), "test": (95, 100)}
    assert {name: (first / 1e6, end / 1e6) for name, (first, end) in plain_parts.ENWIK8.items()} == parts
    monkeypatch.setattr(plain_parts, "ENWIK8", parts)
    monkeypatch.setattr(plain_parts, "ENWIK8_BYTES", 100)
    chosen = DataConfig(source="enwik8", directory=str(tmp_path), block=4)
    (tmp_path / "enwik8.gz").write_bytes(gzip.compress(bytes(range(100))))
    corpus = stream_corpus.load(chosen)
    assert corpus.train.source.tokens.tolist() == list(range(4, 94))
    assert corpus.tests["test"].source.tokens.tolist() == list(range(99, 104))
    assert not stream_corpus.load(dataclasses.replace(chosen, tests=())).tests
    with user_error(r"data\.valid='test' has no effect with data\.source='enwik8', which has parts of its own"):
        stream_corpus.load(dataclasses.replace(chosen, valid="test"))
    monkeypatch.setattr(plain_parts, "ENWIK8_BYTES", 101)
    with user_error(r"has 100 bytes, but enwik8 has 101"):
        stream_corpus.load(chosen)

"""Plain text that cannot be read, or holds packed files; and the text of enwik8, as language models are compared on it."""

from __future__ import annotations

import dataclasses
import gzip
import zipfile

import pytest

from one_layer.data import stream_corpus
from one_layer.data.config import DataConfig
from one_layer.data.sources import plain_parts, plain_text
from one_layer.data.sources.plain_text import PlainText
from one_layer.system.errors import UserError

TEXT = "Il nostro  voto è sì.\nдва\r\n\n€ 5\t" * 9


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.txt").write_bytes(TEXT.encode())
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"the end\n" * 20))
    return tmp_path


def config(folder, **changes):
    return DataConfig(
        **{"source": "plain", "directory": str(folder), "train": "a.txt,b.txt", "held_out": 0.1, "block": 8, **changes}
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": "none.txt"}, r"none\.txt does not exist"),
        ({"train": "a.txt,"}, r"data\.train='a\.txt,' has an empty name; give names with one comma between them"),
        ({"tests": ("",)}, r"data\.tests='' has an empty name"),
        ({"directory": ".", "train": ""}, r"data\.train='' has an empty name"),
        ({"train": "empty.txt"}, r"empty\.txt is empty"),
        ({"train": "empty.zip"}, r"empty\.zip holds no files; give an archive with one text in it"),
        (
            {"train": "two.zip"},
            r"two\.zip holds 2 files; give an archive with one text in it",
        ),  # and not the first of them alone
        ({"train": "secret.zip"}, r"secret\.zip is encrypted; give an archive without a password"),
        ({"held_out": 0.0}, r"Without a file for valid, give data\.held_out=0\.05"),
        (
            {"train": "latin.txt", "unit": "characters"},
            r"latin\.txt: byte 2 is not UTF-8.* Only task=causal_lm with data\.unit=bytes",
        ),
        ({"train": "half.txt.gz"}, "is not a whole compressed file"),
        ({"train": "half.zip"}, "is not a whole compressed file"),
        ({"train": "method.zip"}, r"cannot be unpacked \(That compression method is not supported\)"),
        ({"unit": "words"}, r"data\.unit='words' is unknown: give 'bytes', 'characters' or 'bpe'"),
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
    zipfile.ZipFile(folder / "empty.zip", "w").close()
    for name in ("two", "secret"):
        with zipfile.ZipFile(folder / f"{name}.zip", "w") as archive:
            for text in ("a.txt", "b.txt")[: 1 + (name == "two")]:
                archive.writestr(text, "the end\n")
    whole = (folder / "secret.zip").read_bytes()
    place = (
        whole.index(b"PK\x01\x02") + 8
    )  # the flags in the archive's list of files; their first bit says that a file is encrypted
    (folder / "secret.zip").write_bytes(whole[:place] + bytes([whole[place] | 1]) + whole[place + 1 :])
    (folder / "half.zip").write_bytes(whole[:-9])
    method = bytearray(whole)
    method[8] = method[whole.index(b"PK\x01\x02") + 10] = 97  # it is stated twice
    (folder / "method.zip").write_bytes(method)
    (folder / "latin.txt").write_bytes("più o meno così fan tutte".encode("latin-1"))
    (folder / "half.txt.gz").write_bytes(gzip.compress(b"the end\n" * 20)[:-9])
    with pytest.raises(UserError, match=message):
        stream_corpus.load(config(folder, **changes))


@pytest.mark.parametrize("piece", [1, 5, 100])
@pytest.mark.parametrize(("text", "place"), [(b"caf\xc3\xa9 \xff", 6), (b"a\xe2\x82", 1), (b"ab\xe2\x82 c", 2)])
def test_the_byte_that_is_not_utf8_is_named_wherever_pieces_end(tmp_path, monkeypatch, piece, text, place):
    monkeypatch.setattr(plain_text, "_PIECE", piece)
    (tmp_path / "text").write_bytes(text)
    with pytest.raises(UserError, match=rf": byte {place} is not UTF-8"):
        "".join(PlainText((tmp_path / "text",)).characters())


def test_a_masked_model_s_text_needs_a_line_that_is_not_blank(folder):
    (folder / "blank.txt").write_text("\n  \n" * 30)
    with pytest.raises(UserError, match="has no token in the part that is wanted; give more text"):
        stream_corpus.load(config(folder, train="blank.txt"), masked=True)


def test_enwik8_is_split_as_published(tmp_path, monkeypatch):
    parts = {"train": (0, 90), "valid": (90, 95), "test": (95, 100)}
    assert {name: (first / 1e6, end / 1e6) for name, (first, end) in plain_parts.ENWIK8.items()} == parts
    monkeypatch.setattr(plain_parts, "ENWIK8", parts)
    monkeypatch.setattr(plain_parts, "ENWIK8_BYTES", 100)
    chosen = DataConfig(source="enwik8", directory=str(tmp_path), block=4)
    with zipfile.ZipFile(tmp_path / "enwik8.zip", "w") as archive:
        archive.writestr("enwik8", bytes(range(100)))
    corpus = stream_corpus.load(chosen)
    assert corpus.train.source.tokens.tolist() == list(range(4, 94))
    assert corpus.tests["test"].source.tokens.tolist() == list(range(99, 104))
    assert not stream_corpus.load(dataclasses.replace(chosen, tests=())).tests
    with pytest.raises(
        UserError, match=r"data\.valid='test' has no effect with data\.source='enwik8', which has parts of its own"
    ):
        stream_corpus.load(dataclasses.replace(chosen, valid="test"))
    with zipfile.ZipFile(tmp_path / "enwik8.zip", "w") as archive:
        archive.writestr("enwik8", bytes(range(100)))
    monkeypatch.setattr(plain_parts, "ENWIK8_BYTES", 101)
    with pytest.raises(UserError, match=r"has 100 bytes, but enwik8 has 101"):
        stream_corpus.load(chosen)

"""What is no text is refused at every door through which text comes, and named; text is not."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import tarfile
import zipfile

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from one_layer.data.sources.plain_text import PlainText
from one_layer.data.sources.table import Table
from one_layer.data.text.lines import check_text, read_lines, stream_lines
from one_layer.data.text.streams import read_input
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.importers.text_embeddings import read_embeddings
from one_layer.system.errors import UserError

TEXT = "der hund schläft .\ta dog sleeps .\n" * 30
VOCABULARY = Vocabulary.build(["a dog"])


def archive(text):
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w") as members:
        member = tarfile.TarInfo("train.en")
        member.size = len(text)
        members.addfile(member, io.BytesIO(text))
    return found.getvalue()


def zipped(text):
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w") as members:
        members.writestr("train.en", text)
    return found.getvalue()


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
CONTENTS = {
    "gzip": (gzip.compress(gzip.compress(TEXT.encode())), "holds gzip"),
    "bzip2": (bz2.compress(TEXT.encode()), "holds bzip2"),
    "xz": (lzma.compress(TEXT.encode()), "holds xz"),
    "zstd": (zstandard.compress(TEXT.encode()), "holds zstd"),
    "zip": (zipped(TEXT), "holds zip"),
    "tar": (archive(TEXT.encode()), "holds a tar archive"),
    "parquet": (b"PAR1\x15\x04\x15", "holds Parquet"),
    "pointer": (POINTER, "is a pointer of Git LFS .* git lfs pull"),
    "utf-16-le": (TEXT.encode("utf-16-le"), "is UTF-16LE; .* iconv -f UTF-16LE -t UTF-8"),
    "utf-16-be": (TEXT.encode("utf-16-be"), "is UTF-16BE"),
}
DOORS = {
    "lines": read_lines,
    "stream": lambda path: list(stream_lines(path)),
    "--input": lambda path: read_input(str(path)),
    "plain": lambda path: list(PlainText((path,)).pieces()),
    "table": lambda path: list(Table(path, ("1", "2"), ",")),
    "vocabulary": Vocabulary.load,
    "word vectors": lambda path: read_embeddings(path, VOCABULARY, 4),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", CONTENTS)
def test_every_door_says_what_the_file_is(kind, door, packed, tmp_path):
    content, message = CONTENTS[kind]
    path = tmp_path / f"train.tsv{'.gz' if packed else ''}"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(UserError, match=rf"{path.name} {message}"):
        DOORS[door](path)


@pytest.mark.parametrize("kind", CONTENTS)
def test_so_does_stdin(kind, monkeypatch):
    content, message = CONTENTS[kind]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    with pytest.raises(UserError, match=f"stdin {message}"):
        read_input("")


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=300))
def test_no_text_is_refused(text):
    check_text(text.encode()[:512], "text", read="file")

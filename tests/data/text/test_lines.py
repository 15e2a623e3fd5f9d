"""Reading text files: lines, compression, and a clear message for each problem that a file can have, at every door."""

import bz2
import gzip
import io
import lzma
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from one_layer.data.sources.plain_text import PlainText
from one_layer.data.sources.table import Table
from one_layer.data.text.lines import check_text, read_lines, read_parallel, stream_lines
from one_layer.data.text.streams import read_input
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.importers.text_embeddings import read_embeddings
from tests import user_error

LINE = st.text(
    st.characters(exclude_characters="\n\0", exclude_categories=["Cs"]), max_size=8
)  # zeros look like UTF-16


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("text")


@given(st.lists(LINE, min_size=1, max_size=6), st.sampled_from(["a.txt", "b.gz"]))
def test_only_a_newline_ends_a_line(folder: Path, lines: list[str], name: str) -> None:
    content = "".join(line + "\n" for line in lines).encode()
    (folder / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    expected = [line.removesuffix("\r") for line in lines]
    expected[0] = lines[0].removeprefix("\ufeff").removesuffix("\r")
    assert read_lines(folder / name) == expected


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"\n", [""]),
        (b"a\n\n", ["a", ""]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\rb\n", ["a\rb"]),
        (b"\xef\xbb\xbfa\n", ["a"]),
        ("a\u2028b\u0085c\x0bd\x1ce\n".encode(), ["a\u2028b\u0085c\x0bd\x1ce"]),
    ],
)
def test_line_ends(tmp_path: Path, content: bytes, lines: list[str]) -> None:
    (tmp_path / "text").write_bytes(content)
    assert read_lines(tmp_path / "text") == lines


def test_the_compressed_file_is_read_if_the_plain_one_is_missing(tmp_path: Path) -> None:
    (tmp_path / "train.de.gz").write_bytes(gzip.compress(b"zip\n"))
    assert read_lines(tmp_path / "train.de") == ["zip"]
    (tmp_path / "train.de").write_bytes(b"plain\n")
    assert read_lines(str(tmp_path / "train.de")) == ["plain"]


@pytest.mark.parametrize("name", ["text", "text.gz"])
@pytest.mark.parametrize("number", [1, 3])
def test_bytes_that_are_not_utf8_are_named_with_their_line(tmp_path: Path, name: str, number: int) -> None:
    content = "größe\n".encode() * (number - 1) + "größe\n".encode("latin-1") + b"more\n"
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    with user_error(rf"{name}, line {number}: the byte 0xf6 is not UTF-8"):
        read_lines(tmp_path / name)


@pytest.mark.parametrize(
    ("encoding", "advice"), [("utf-16", "UTF-16"), ("utf-16-be", "UTF-16"), ("latin-1", "WINDOWS-1252")]
)
def test_the_advice_for_another_encoding_names_it(tmp_path: Path, encoding: str, advice: str) -> None:
    mark = "\ufeff" if encoding == "utf-16-be" else ""  # utf-16 writes its own
    (tmp_path / "text").write_bytes(f"{mark}größe\nmehr\n".encode(encoding))
    for read in (read_lines, lambda path: list(PlainText((path,)).lines())):
        with user_error(f"with iconv -f {advice} -t UTF-8"):
            read(tmp_path / "text")


def test_missing_and_empty_files_and_folders(tmp_path: Path) -> None:
    with user_error(r"train\.de does not exist \(nor train\.de\.gz\)"):
        read_lines(tmp_path / "train.de")
    with user_error(r"; the folder is empty$"):
        read_lines(tmp_path / "train.de")
    with user_error(r"; there is no folder .*/data$"):
        read_lines(tmp_path / "data" / "train.de")
    with user_error("is not a file"):
        read_lines(tmp_path)
    with user_error(r"^\. is not a file"):
        read_lines(".")
    with user_error("aa does not exist"):
        read_lines(tmp_path / ("a" * 300))
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "empty.gz").write_bytes(gzip.compress(b""))
    (tmp_path / "nothing.gz").write_bytes(b"")
    for name in ("empty", "empty.gz", "nothing.gz"):
        with user_error(f"{name} is empty"):
            read_lines(tmp_path / name)


def test_a_missing_file_is_answered_with_the_names_that_are_most_like_it(tmp_path: Path) -> None:
    for name in ("train.eng", "train.deu", "code", "x", "y", "z"):
        (tmp_path / name).write_text("a\n")
    with user_error(r"; the folder has train.deu, train.eng, .* and 2 more$"):
        read_lines(tmp_path / "train.de")


def test_damaged_gzip(tmp_path: Path) -> None:
    whole = gzip.compress("".join(f"line {number}\n" for number in range(1000)).encode(), mtime=0)
    flipped = bytearray(whole)
    flipped[-6] ^= 1
    for content in (whole[:-1], whole[: len(whole) // 2], whole[:5], bytes(flipped), b"plain text\n"):
        (tmp_path / "text.gz").write_bytes(content)
        with user_error(r"text\.gz is not a whole compressed file"):
            read_lines(tmp_path / "text.gz")


def test_a_file_in_the_place_of_its_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "train.en").touch()
    with user_error(r"train\.en is a file; give the folder that it lies in"):
        read_lines(tmp_path / "train.en" / "train.en")


def test_parallel_files(tmp_path: Path) -> None:
    (tmp_path / "a.de").write_text("eins\nzwei\u2028\n", encoding="utf-8")
    (tmp_path / "a.en").write_text("one\ntwo\n")
    assert read_parallel(tmp_path / "a.de", tmp_path / "a.en") == (["eins", "zwei\u2028"], ["one", "two"])
    (tmp_path / "b.en").write_text("one\ntwo\nthree\nfour\n")
    for sides, message in (
        (("a.de", "b.en"), r"a\.de has 2 lines.*en has 4"),
        (("b.en", "a.de"), r"n has 4 .*e has 2"),
    ):
        with user_error(message):
            read_parallel(*(tmp_path / side for side in sides))


TEXT = "der hund schläft .\ta dog sleeps .\n" * 30
VOCABULARY = Vocabulary.build(["a dog"])


def archive(text, kind=tarfile.DEFAULT_FORMAT):
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w", format=kind) as members:
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
    "tar of GNU": (archive(TEXT.encode(), tarfile.GNU_FORMAT), "holds a tar archive of GNU"),
    "parquet": (b"PAR1\x15\x04\x15", "holds Parquet"),
    "parquet with an encrypted column": (b"PAR1\x2d\x1f\0\0\xc3\x28", "holds Parquet"),
    "encrypted parquet": (b"PARE\x2d\x1f\0\0\xc3\x28", "holds Parquet"),
    "parquet with an encrypted footer": (b"PARE\x15\x04\x15", "holds Parquet"),
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
    with user_error(rf"{path.name} {message}"):
        DOORS[door](path)


@pytest.mark.parametrize("kind", CONTENTS)
def test_so_does_stdin(kind, monkeypatch):
    content, message = CONTENTS[kind]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    with user_error(f"stdin {message}"):
        read_input("")


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=300))
@example("x" * 255 + "gustar")  # a tar archive has `ustar` there, but not as a part of a word
@example("PAR1 is a gene")
@example("PARENTS")
def test_no_text_is_refused(text):
    check_text(text.encode()[:512], "text")

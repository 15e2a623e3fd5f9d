"""Preparation of IWSLT14 from an archive with the official layout, and messages for invalid archives."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from one_layer.commands import prepare_iwslt14 as iwslt14
from one_layer.commands import prepare_wmt14 as wmt14
from one_layer.data.text.lines import read_lines, read_parallel
from one_layer.data.text.preprocess import Preprocessing, join_bpe
from one_layer.runs.lock import locked
from tests import user_error

# A talk in WIT3's format: lines of mark-up, a title and a description, then one sentence per line.
HEAD = ["<url>http://www.ted.com/{0}</url>", "<keywords>talks, {0}</keywords>", "<talkid>{0}</talkid>"]
HEAD += ["<title>Number {0}</title>", "<description>A talk & its “{0}”.</description>"]
SENTENCES = {"de": "Das ist der Satz Nummer {0}, usw.", "en": "This is the sentence number {0}, etc."}


def talks(language: str) -> list[str]:
    """Returns nine talks of six sentences: 72 pairs, including the titles and descriptions."""
    lines = []
    for talk in range(9):
        lines += [line.format(talk) for line in HEAD]
        lines += [SENTENCES[language].format(6 * talk + number) for number in range(6)]
    return lines


def scored_set(language: str, number: int) -> list[str]:
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<mteval><refset trglang="{language}">', '<doc docid="1">']
    lines += ["<title>Not text</title>", f'<seg id="1"> It’s TEST {number} </seg>', '<seg id="2">„Ende“</seg>']
    return [*lines, "</doc>", "</refset></mteval>"]


def published(**changed: list[str]) -> dict[str, list[str]]:
    """Returns the lines of all files of the archive by name; `changed` replaces the training text of a language."""
    files = {f"de-en/{iwslt14.TRAIN}.{language}": changed.get(language) or talks(language) for language in ("de", "en")}
    for number, name in enumerate(iwslt14.TESTS):
        files |= {f"de-en/{name}.{language}.xml": scored_set(language, number) for language in ("de", "en")}
    return files | {"de-en/README": ["not text either"]}


def pack(path: Path, files: Mapping[str, bytes | list[str]]) -> Path:
    """Writes an archive of these files, given by their bytes or their lines."""
    with tarfile.open(path, "w:gz") as archive:
        for name, given in files.items():
            content = given if isinstance(given, bytes) else "".join(line + "\n" for line in given).encode()
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.fixture(autouse=True)
def counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small archives have other counts than the published one."""
    monkeypatch.setattr(iwslt14, "PUBLISHED", {})


def prepared(folder: Path, files: dict[str, list[str]], *options: str) -> Path:
    archive = pack(folder / "de-en.tgz", files)
    out = folder / "out"
    arguments = [f"--archive={archive}", f"--out={out}", "--merges=40"]
    iwslt14.main([*arguments, *options])
    return out


def test_the_whole_preparation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iwslt14, "PUBLISHED", {"train": 69, "valid": 3, "test": 10})
    out = prepared(tmp_path, published())
    sides = {name: read_parallel(out / f"{name}.de", out / f"{name}.en") for name in ("train", "valid", "test")}
    assert {name: len(source) for name, (source, _) in sides.items()} == {"train": 69, "valid": 3, "test": 10}
    english = [join_bpe(line) for line in sides["train"][1]]
    assert english[:3] == ["number 0", "a talk &amp; its “ 0 ” .", "this is the sentence number 0 , etc ."]
    # Lines 23, 46 and 69 of the 72: the fifth sentence of the third talk, the fourth of the sixth, the third of the ninth.
    everything = [join_bpe(line) for line in sides["valid"][1]]
    assert everything == [f"this is the sentence number {number} , etc ." for number in (16, 33, 50)]
    assert not set(everything) & set(english)
    assert [join_bpe(line) for line in sides["test"][1]] == [
        line for number in range(5) for line in (f"it &apos;s test {number}", "„ ende “")
    ]


def test_the_manifest_describes_the_files_and_a_run_prepares_new_text_alike(tmp_path: Path) -> None:
    out = prepared(tmp_path, published())
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["pairs"] == {"train": 69, "valid": 3, "test": 10} and manifest["merges"] == 40
    assert set(manifest["tools"]) == {"python", "sacremoses", "subword-nmt", "numpy"}
    assert len(manifest["files"]) == 7
    for name, facts in manifest["files"].items():
        content = (out / name).read_bytes()
        assert facts["sha256"] == hashlib.sha256(content).hexdigest() and facts["lines"] == content.count(b"\n")
    assert (
        manifest["archives"]["de-en.tgz"]["sha256"] == hashlib.sha256((tmp_path / "de-en.tgz").read_bytes()).hexdigest()
    )
    codes = "".join(line + "\n" for line in read_lines(out / "code"))
    steps = Preprocessing("de", tokenize=True, lowercase=True, codes=codes, normalize=False)
    assert steps.apply(["Das ist der Satz Nummer 7, usw."]) == [read_lines(out / "train.de")[11]]


def test_a_finished_folder_is_refused_before_anything_is_written_or_downloaded(tmp_path: Path) -> None:
    out = prepared(tmp_path, published())
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}
    with user_error(r"out already holds a prepared corpus; delete it or give another --out"):
        prepared(tmp_path, published(), "--merges=9")
    with user_error(r"out already holds a prepared corpus"):
        iwslt14.main([f"--out={out}", "--download"])
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before


def test_one_preparation_works_in_a_folder_at_a_time(tmp_path: Path) -> None:
    """Two would remove each other's unfinished files."""
    with locked(tmp_path / "out", "prepares a corpus in it"):
        with user_error(r"out is in use: process \d+ on .* prepares a corpus in it; wait for it"):
            prepared(tmp_path, published())
        with user_error(r"out is in use"):
            wmt14.main([f"--out={tmp_path / 'out'}"])
    prepared(tmp_path, published())
    assert not (tmp_path / "out" / ".lock").exists()


def test_filtered_pairs_are_left_out_and_counted(tmp_path: Path) -> None:
    odd = {"de": ["", "eins zwei drei vier", "w " * 176, "a\u2028b\x07 c\u0085d", " \u00a0 "]}
    odd["en"] = ["empty", "one two", "w " * 176, "one\x00 two three four", "of spaces"]
    out = prepared(tmp_path, published(**{language: lines + talks(language) for language, lines in odd.items()}))
    assert json.loads((out / "manifest.json").read_text())["left_out"] == {"empty": 2, "ratio": 1, "long": 1}
    source, target = read_parallel(out / "train.de", out / "train.en")
    assert len(source) == 70 and len(read_lines(out / "valid.de")) == 3
    # Other line ends of Unicode count as white space here, and control characters disappear.
    assert (join_bpe(source[0]), join_bpe(target[0])) == ("a b c d", "one two three four")


def test_counts_are_checked_against_the_published_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(iwslt14, "PUBLISHED", {"train": 160_239})
    with user_error(r"train has 69 pairs, but 160,239 in the literature; give the published archive"):
        prepared(tmp_path, published())


def test_sides_of_unequal_length_are_refused(tmp_path: Path) -> None:
    message = r"train\.tags\.de-en\.de has 71 lines of text, but .*train\.tags\.de-en\.en has 72"
    with user_error(message):
        prepared(tmp_path, published(de=talks("de")[:-1]))
    files = published()
    files[f"de-en/{iwslt14.TESTS[2]}.en.xml"].remove('<seg id="2">„Ende“</seg>')
    with user_error(rf"{iwslt14.TESTS[2]}\.de\.xml has 2 lines of text, but .*\.en\.xml has 1"):
        prepared(tmp_path, files)


def test_damaged_members_are_named_with_their_line(tmp_path: Path) -> None:
    files = published()
    name = f"{iwslt14.TESTS[0]}.de.xml"
    files[f"de-en/{name}"][4] = '<seg id="1">It goes on'
    with user_error(rf"{name}, line 5: the segment does not end on this line"):
        prepared(tmp_path, files)
    files[f"de-en/{name}"] = ["<html>404</html>"]
    with user_error(rf"{name} has no line with <seg id"):
        prepared(tmp_path, files)
    del files[f"de-en/{name}"]
    with user_error(rf"de-en\.tgz holds no file {name}"):
        prepared(tmp_path, files)


def test_a_missing_archive_is_reported(tmp_path: Path) -> None:
    with user_error(r"--archive=.*none\.tgz is no file; give the file de-en\.tgz, or --download"):
        iwslt14.main([f"--archive={tmp_path / 'none.tgz'}", f"--out={tmp_path}"])
    with user_error(r"de-en\.tgz does not exist; save https://.*de-en\.tgz there, or add --download"):
        iwslt14.main([f"--out={tmp_path}"])

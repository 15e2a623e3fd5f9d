"""Preparation of WMT14 from archives with the official layout: in shards, resumed, and in several processes."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from one_layer.commands import prepare_wmt14 as wmt14
from one_layer.data.preparation import shards
from one_layer.data.preparation.archives import Archive
from one_layer.data.text import bpe_learning
from one_layer.data.text.lines import read_lines, read_parallel
from one_layer.data.text.preprocess import Preprocessing, join_bpe
from one_layer.system.errors import UserError
from tests.commands.test_prepare_iwslt14 import pack

NAMES = [name for _, name in wmt14.sources("v9")]


def sentences(language: str, name: str, count: int) -> list[str]:
    text = {"en": "The well-known “sentence” {0} of {1}.", "de": "Der alt-bekannte „Satz“ {0} von {1}."}
    return [text[language].format(number, name) for number in range(count)]


def remote(
    folder: Path, counts: tuple[int, int, int] = (120, 60, 33), **odd: list[str]
) -> tuple[wmt14.Sources, Archive]:
    """Returns small archives with the official layout and file:// URLs; the `odd` lines begin a language's first file."""
    folder.mkdir()
    training = []
    for (official, name), count in zip(wmt14.sources("v9"), counts, strict=True):
        files = {f"training/{name}.{side}": sentences(side, name, count) for side in wmt14.LANGUAGES}
        files[f"training/{name.replace('de-en', 'fr-en')}.en"] = ["another pair of languages"]
        if name == NAMES[0]:
            files = {path: odd.get(path[-2:], []) + lines for path, lines in files.items()}
        path = pack(folder / official.name, files)
        training.append((replace(official, urls=(path.as_uri(),), size=path.stat().st_size, sha256=""), name))
    test = [f'<seg id="{number}"> It’s a “well-known” test. </seg>' for number in (1, 2)]
    path = pack(folder / "test-full.tgz", {f"test-full/{name}": ["<refset>", *test] for name in wmt14.TEST_FILES})
    return training, Archive("test-full.tgz", (path.as_uri(),))


def prepare(folder: Path, name: str, archives: tuple[wmt14.Sources, Archive], **options: int) -> Path:
    options = {"merges": 50, "shard_size": 50} | options
    wmt14.prepare(*archives, folder / "archives", folder / name, download=True, **options)
    return folder / name


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_whole_preparation(tmp_path: Path) -> None:
    odd = {
        "en": ["", "one two\u2028three\x07 four\x85five", "one " * 251, "a b c"],
        "de": ["leer", "ein zwo drei vier funf", "w " * 251, "a"],
    }
    out = prepare(tmp_path, "out", remote(tmp_path / "remote", **odd))
    sides = {name: read_parallel(out / f"{name}.en", out / f"{name}.de") for name in ("train", "valid", "test")}
    assert {name: len(source) for name, (source, _) in sides.items()} == {"train": 212, "valid": 2, "test": 2}
    train, valid = (join_bpe("\n".join(sides[name][0])).split("\n") for name in ("train", "valid"))
    assert train[:2] == [
        "one two three four five",
        "The well @-@ known &quot; sentence &quot; 0 of europarl @-@ v7.de @-@ en .",
    ]
    # Pairs 100 and 200 of the 217, counted before the three invalid pairs are left out.
    assert [line.split(" ")[7] for line in valid] == ["95", "15"] and not set(train) & set(valid)
    assert [join_bpe(line) for line in sides["test"][0]] == ["It &apos;s a “ well @-@ known ” test ."] * 2
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["pairs"] == {"train": 212, "empty": 1, "long": 1, "ratio": 1, "valid": 2, "test": 2}
    assert set(manifest["files"]) == set(contents(out)) - {"manifest.json"}
    codes = "".join(line + "\n" for line in read_lines(out / "code"))
    steps = Preprocessing("en", tokenize=True, split_hyphens=True, codes=codes)
    assert steps.apply(sentences("en", NAMES[0], 1)) == [sides["train"][0][1]]
    with pytest.raises(UserError, match=r"out already holds a prepared corpus"):
        prepare(tmp_path, "out", remote(tmp_path / "again"))


@pytest.mark.slow
def test_the_text_does_not_depend_on_shards_and_processes(tmp_path: Path) -> None:
    archives = remote(tmp_path / "remote")
    once = contents(prepare(tmp_path, "once", archives, shard_size=1000))
    assert contents(prepare(tmp_path, "shards", archives, processes=2)) == once


def test_an_interrupted_preparation_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archives = remote(tmp_path / "remote")
    whole = contents(prepare(tmp_path, "whole", archives))
    tokenized, split = [], []

    def counting_words(self: Preprocessing, lines: object, words=Preprocessing.words) -> list[str]:
        tokenized.append(1)
        if len(tokenized) in (6, 13):
            raise KeyboardInterrupt
        return words(self, lines)

    def counting_split(self: shards._Split, number: int, call=shards._Split.__call__) -> dict[str, int]:
        split.append(number)
        if len(split) == 3:
            raise KeyboardInterrupt
        return call(self, number)

    monkeypatch.setattr(Preprocessing, "words", counting_words)
    monkeypatch.setattr(shards._Split, "__call__", counting_split)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            prepare(tmp_path, "out", archives)
    with pytest.raises(UserError, match=r"work holds unfinished work with merges=50, not 40; delete this folder"):
        prepare(tmp_path, "out", archives, merges=40)
    options = tmp_path / "out/work/options.json"
    options.write_text(json.dumps(json.loads(options.read_text()) | {"colour": "red"}))
    with pytest.raises(UserError, match=r"work holds unfinished work with colour=red, not None; delete this folder"):
        prepare(tmp_path, "out", archives)
    options.write_text(
        json.dumps({name: value for name, value in json.loads(options.read_text()).items() if name != "colour"})
    )
    input_file = tmp_path / "archives/test-full.tgz"  # no checksum of it is published
    read = input_file.read_bytes()
    input_file.write_bytes(read[:-1] + bytes([read[-1] ^ 1]))
    with pytest.raises(UserError, match=r"work holds unfinished work with input="):
        prepare(tmp_path, "out", archives)
    input_file.write_bytes(read)
    with pytest.raises(KeyboardInterrupt):
        prepare(tmp_path, "out", archives)
    monkeypatch.setattr(bpe_learning, "_Learner", None)  # must not be needed again
    assert contents(prepare(tmp_path, "out", archives)) == whole
    # Both sides of 5 shards; one shard lost twice, once with and once without its first side; the test set in each of 4 runs.
    assert len(tokenized) == 10 + 2 + 1 + 2 * 4


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out/work").mkdir(parents=True)
    (tmp_path / "out/work/thesis.txt").write_text("mine")
    with pytest.raises(UserError, match=r"out/work holds files that no preparation wrote; move this folder away"):
        prepare(tmp_path, "out", remote(tmp_path / "remote"))
    assert (tmp_path / "out/work/thesis.txt").read_text() == "mine"


def test_invalid_text_is_named_with_its_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"europarl-v7\.de-en\.en has 121 lines, but .*europarl-v7\.de-en\.de has 120"):
        prepare(tmp_path, "a", remote(tmp_path / "one", en=["one more"]))
    (tmp_path / "a/work/europarl-v7.de-en.en").write_bytes("größe\n".encode() + "größe\n".encode("latin-1"))
    with pytest.raises(UserError, match=r"europarl-v7\.de-en\.en, line 2: the byte 0xf6 is not UTF-8"):
        prepare(tmp_path, "a", remote(tmp_path / "two", en=["one more"]))


def test_an_incomplete_archive_is_refused(tmp_path: Path) -> None:
    archives = remote(tmp_path / "remote")
    path = tmp_path / "remote" / archives[0][1][0].name
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(UserError, match=r"commoncrawl\.tgz\.part has [\d,]+ bytes, but the published file has"):
        prepare(tmp_path, "out", archives)
    with pytest.raises(
        UserError, match=r"europarl-v7\.tgz does not exist; save https://www\.statmt\.org/.* there, or add --download"
    ):
        wmt14.main([f"--out={tmp_path / 'none'}"])

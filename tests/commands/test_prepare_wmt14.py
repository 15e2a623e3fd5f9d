"""Preparation of WMT14 from archives with the official layout."""

import json
from dataclasses import replace
from pathlib import Path

from one_layer.commands import prepare_wmt14 as wmt14
from one_layer.data.preparation.archives import Archive
from one_layer.data.text.lines import read_lines, read_parallel
from one_layer.data.text.preprocess import Preprocessing, join_bpe
from tests import user_error
from tests.commands.test_prepare_iwslt14 import pack

NAMES = [name for _, name in wmt14.TRAINING]


def sentences(language: str, name: str, count: int) -> list[str]:
    text = {"en": "The well-known “sentence” {0} of {1}.", "de": "Der alt-bekannte „Satz“ {0} von {1}."}
    return [text[language].format(number, name) for number in range(count)]


def remote(
    folder: Path, counts: tuple[int, int, int] = (120, 60, 33), **odd: list[str]
) -> tuple[wmt14.Sources, Archive]:
    """Returns small archives with the official layout and file:// URLs; the `odd` lines begin a language's first file."""
    folder.mkdir()
    training = []
    for (official, name), count in zip(wmt14.TRAINING, counts, strict=True):
        files = {f"training/{name}.{side}": sentences(side, name, count) for side in wmt14.LANGUAGES}
        files[f"training/{name.replace('de-en', 'fr-en')}.en"] = ["another pair of languages"]
        if name == NAMES[0]:
            files = {path: odd.get(path[-2:], []) + lines for path, lines in files.items()}
        path = pack(folder / official.name, files)
        training.append((replace(official, urls=(path.as_uri(),), size=path.stat().st_size, sha256=""), name))
    test = [f'<seg id="{number}"> It’s a “well-known” test. </seg>' for number in (1, 2)]
    path = pack(folder / "test-full.tgz", {f"test-full/{name}": ["<refset>", *test] for name in wmt14.TEST_FILES})
    return training, Archive("test-full.tgz", (path.as_uri(),))


def prepare(folder: Path, name: str, archives: tuple[wmt14.Sources, Archive]) -> Path:
    wmt14.prepare(*archives, folder / "archives", folder / name, merges=50, download=True)
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


def test_sides_of_unequal_length_are_named_and_leave_no_unpacked_files(tmp_path: Path) -> None:
    with user_error(r"europarl-v7\.de-en\.en has 121 lines, but .*europarl-v7\.de-en\.de has 120"):
        prepare(tmp_path, "a", remote(tmp_path / "one", en=["one more"]))
    assert not list((tmp_path / "a").iterdir())

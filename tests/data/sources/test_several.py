"""Several corpora as one training text."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from one_layer.data.config import DataConfig
from one_layer.data.loading import load
from one_layer.data.reader import ParallelReader
from one_layer.system.errors import UserError

TABLE, FILES = 100, 30  # pairs


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table without a header, one with the sides the other way round, and a pair of files."""
    path = tmp_path_factory.mktemp("corpora")
    (path / "a.tsv").write_text("".join(f"a{line}\tA{line}\n" for line in range(TABLE)))
    (path / "c.csv").write_text("de,en\n" + "".join(f"C{line},c{line}\n" for line in range(7)))
    (path / "b.en").write_text("".join(f"b{line}\n" for line in range(FILES)))
    (path / "b.de").write_text("".join(f"B{line}\n" for line in range(FILES)))
    return path


def config(folder: Path, **keys: Any) -> DataConfig:
    own = {"source": "tsv", "train": "a.tsv,b", "columns": "1,2;", "source_language": "en", "target_language": "de"}
    return DataConfig(directory=str(folder), **(own | {"valid": "b", "tests": ()} | keys))


def pairs(given: DataConfig) -> list[tuple[str, str]]:
    source = ParallelReader().open(given)
    return list(zip(*source.lines(source.train), strict=True))


@pytest.mark.parametrize("mix", ["", "1:1", "2:1", "1:2.5", "1:100"])
def test_every_pair_is_there_and_each_corpus_has_its_share(folder: Path, mix: str) -> None:
    found = Counter(pairs(config(folder, mix=mix)))
    sizes = {"a": TABLE, "b": FILES}
    assert {source for source, _ in found} == {f"{name}{line}" for name, size in sizes.items() for line in range(size)}
    assert all(source.upper() == target for source, target in found)
    given = {name: [count for pair, count in found.items() if pair[0][0] == name] for name in sizes}
    assert all(max(counts) - min(counts) <= 1 for counts in given.values()), "no pair of a corpus comes more often"
    if mix:
        first, second = map(float, mix.split(":"))
        assert sum(given["a"]) / sum(given["b"]) == pytest.approx(first / second, rel=0.02)
    else:
        assert set(found.values()) == {1}


def test_each_corpus_has_its_own_columns(folder: Path) -> None:
    found = pairs(config(folder, train="a.tsv,c.csv,b", columns="1,2;en,de;"))
    assert len(found) == TABLE + 7 + FILES
    assert all(source.upper() == target for source, target in found)


def test_what_is_held_out_is_in_no_corpus_and_is_not_repeated(folder: Path) -> None:
    given = config(folder, mix="1:1", held_out=0.1, valid="valid", tests=("test",))
    source = ParallelReader().open(given)
    parts = {name: list(source.read(name)[0]) for name in ("valid", "test")}
    trained = {line for line, _ in pairs(given)}
    for lines in parts.values():
        assert len(set(lines)) == len(lines) > 0
        assert not trained & set(lines)
    assert {line[0] for lines in parts.values() for line in lines} == {"a", "b"}
    assert len(trained) + sum(map(len, parts.values())) == TABLE + FILES


def test_one_vocabulary_is_made_of_all_and_a_store_knows_the_shares(folder: Path, tmp_path: Path) -> None:
    stores = [load(config(folder, mix=mix, store=str(tmp_path), joined_vocabulary=True)) for mix in ("1:1", "2:1")]
    for corpus in stores:
        assert {"a5", "A5", "b7", "B7"} <= set(corpus.source_vocabulary.tokens)
    assert len(stores[0].train.source) == 2 * TABLE
    assert len(stores[1].train.source) == TABLE + TABLE // 2


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"mix": "1"}, "data.mix='1' must have a number above 0 for each"),
        ({"mix": "1:0"}, "data.mix='1:0' must"),
        ({"mix": "a:b"}, "data.mix='a:b' must"),
        ({"mix": "nan:1"}, "data.mix='nan:1' must"),
        ({"train": "a.tsv", "columns": "1,2", "mix": "1"}, "data.mix='1' must"),
        ({"train": "a.tsv,"}, "data.train='a.tsv,' must be different names"),
        ({"train": "b,b"}, "data.train='b,b' must be different names"),
        ({"columns": "1,2;1,2;1,2"}, "3 groups for 2 corpora"),
        ({"columns": "1,2;1"}, "data.columns='1' must name two columns"),
        ({"mix": "9999999:1"}, "data.mix asks for"),
        ({"train": "a.tsv,none"}, "none.en does not exist"),
    ],
)
def test_what_is_no_mixture_is_refused(folder: Path, keys: dict[str, str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        load(config(folder, **keys))

"""The store of prepared text is made once, found again, made anew when its sources change, and never left incomplete."""

import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from one_layer.data import training_text
from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus
from one_layer.data.loading import load
from tests import user_error
from tests.data.pairs import write

GERMAN = ["das ist ein haus", "ja", "", "nein nein nein nein nein nein"]
ENGLISH = ["this is a house", "yes", "no", "no"]


@pytest.fixture
def config(tmp_path: Path) -> DataConfig:
    for name in ("train", "valid", "test"):
        write(tmp_path, name, GERMAN, ENGLISH)
    return DataConfig(
        source="text", directory=str(tmp_path), store=str(tmp_path / "store"), max_length=6, lowercase=True
    )


def kept(config: DataConfig) -> list[str]:
    return sorted(os.listdir(config.store))


def same(one: Corpus, other: Corpus) -> bool:
    sides = [(one.train.source, other.train.source), (one.train.target, other.train.target)]
    return (
        one.report == other.report
        and one.vocabularies == other.vocabularies
        and one.codes == other.codes
        and all(len(a) == len(b) and all(map(np.array_equal, a, b)) for a, b in sides)
    )


def test_a_store_gives_the_same_corpus_without_reading_the_text_again(
    config: DataConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    for keys in ({}, {"bpe_merges": 4, "joined_vocabulary": True}, {"prepared": True}):
        here = replace(config, **keys)  # type: ignore[arg-type]
        direct, first = load(replace(here, store="")), load(here)
        with monkeypatch.context() as patch:
            patch.setattr(training_text, "_from_text", None)
            second = load(here)
            resumed = load(here, first.vocabularies, first.codes)
        assert same(direct, first) and same(direct, second) and same(direct, resumed)
        assert (second.source_vocabulary is second.target_vocabulary) == here.joined_vocabulary
        assert isinstance(second.train.target.tokens.base, np.memmap) and second.train.source.tokens.dtype == np.uint16
    assert len(kept(config)) == 3


def test_content_and_not_time_stamps_decide(config: DataConfig, tmp_path: Path) -> None:
    load(config)
    os.utime(tmp_path / "train.de", (1, 1))
    (tmp_path / "train.de").rename(tmp_path / "news.de")
    (tmp_path / "train.en").rename(tmp_path / "news.en")
    load(replace(config, train="news", tests=("valid",)))
    assert len(kept(config)) == 1
    before = (tmp_path / "news.de").stat()
    write(tmp_path, "news", [GERMAN[1], GERMAN[0], *GERMAN[2:]], ENGLISH)  # same size and time stamp, other text
    os.utime(tmp_path / "news.de", ns=(before.st_atime_ns, before.st_mtime_ns))
    changed = load(replace(config, train="news"))
    assert len(kept(config)) == 2 and changed.source_vocabulary.decode(changed.train.source[0]) == "ja"


def test_options_and_codes_select_the_store(config: DataConfig, tmp_path: Path) -> None:
    codes = tmp_path / "code"
    codes.write_text("#version: 0.2\nh a\n")
    others = [{"max_length": 9}, {"lowercase": False}, {"bpe_codes": str(codes)}, {"tokenize": True}]
    for count, keys in enumerate(others, start=1):
        load(replace(config, **keys))  # type: ignore[arg-type]
        assert len(kept(config)) == count
    codes.write_text("#version: 0.2\nn e\n")
    load(replace(config, bpe_codes=str(codes)))
    assert len(kept(config)) == len(others) + 1


def test_pieces_that_are_there_already_have_a_store_of_their_own(config: DataConfig) -> None:
    raw = replace(config, lowercase=False, bpe_kind="metaspace")
    for chosen in (raw, replace(raw, undo="sentencepiece"), raw):
        assert same(load(chosen), load(replace(chosen, store="")))
    assert len(kept(config)) == 2


def test_a_store_never_gives_training_the_lines_of_a_part_that_is_held_out(config: DataConfig, tmp_path: Path) -> None:
    write(tmp_path, "train", [f"satz {number}" for number in range(200)], [f"line {number}" for number in range(200)])
    for tests in ((), ("test",)):
        corpus = load(replace(config, held_out=0.2, tests=tests))
        trained = {corpus.source_vocabulary.decode(ids) for ids in corpus.train.source}
        scored = [corpus.valid, *corpus.tests.values()]
        assert all(split.source_text and trained.isdisjoint(split.source_text) for split in scored)


def test_a_table_that_is_read_in_another_way_has_a_store_of_its_own(config: DataConfig, tmp_path: Path) -> None:
    """The same bytes are other columns with another delimiter, and in a file whose name says another kind of table."""
    for name in ("train.csv", "train.tsv"):
        (tmp_path / name).write_text('a;b,c;"d\te"\n' * 3)
    ways = [("train.csv", ","), ("train.csv", ";"), ("train.tsv", ",")]
    for train, delimiter in ways:
        parts = {"source": "tsv", "columns": "1,2", "train": train, "valid": train, "tests": (), "delimiter": delimiter}
        here = replace(config, **parts)  # type: ignore[arg-type]
        assert same(load(here), load(replace(here, store=""))), (train, delimiter)
    assert len(kept(config)) == len(ways)


def test_a_resumed_run_keeps_its_vocabulary_when_the_text_changes(config: DataConfig, tmp_path: Path) -> None:
    first = load(config)
    write(tmp_path, "train", ["ganz neu", "ja"], ["quite new", "yes"])
    for _ in range(2):
        again = load(config, first.vocabularies, first.codes)
        assert (
            again.vocabularies == first.vocabularies and again.source_vocabulary.decode(again.train.source[1]) == "ja"
        )
        assert len(kept(config)) == 2
    assert load(config).vocabularies != first.vocabularies


@pytest.mark.parametrize("prepared", [True, False])
def test_training_text_of_unequal_length_is_refused(config: DataConfig, tmp_path: Path, prepared: bool) -> None:
    write(tmp_path, "train", GERMAN, ENGLISH[:2])
    with user_error(r"train\.de has 4 lines, but .*train\.en has 2; give parallel files"):
        load(replace(config, prepared=prepared))
    assert kept(config) == []


def test_a_failed_preparation_leaves_nothing(config: DataConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("one_layer.data.preparation.store.save_text_assets", breaks)
        with pytest.raises(KeyboardInterrupt):
            load(config)
    assert kept(config) == []
    load(config)
    assert len(kept(config)) == 1


def test_the_first_of_two_concurrent_processes_wins(config: DataConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    make = training_text._from_text

    def slowly(*arguments: object) -> object:
        with monkeypatch.context() as patch:
            patch.setattr(training_text, "_from_text", make)
            load(config)  # the other process
        return make(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(training_text, "_from_text", slowly)
    corpus = load(config)
    assert len(kept(config)) == 1 and same(corpus, load(replace(config, store="")))


@pytest.mark.parametrize("name", ["source.tokens.npy", "target.lengths.npy", "vocabulary.target.txt", "manifest.json"])
@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_a_damaged_store_is_named(config: DataConfig, name: str, damage: str) -> None:
    load(config)
    (path,) = Path(config.store).glob(f"*/{name}")
    content = path.read_bytes()
    path.write_bytes({"cut": content[:-3], "changed": content[:-1] + b"x", "gone": b""}[damage])
    if damage == "gone":
        path.unlink()
    with user_error(rf"{re.escape(name)} .*; delete the folder, then run again"):
        load(config)


def test_a_store_is_on_the_disk_before_it_has_its_name(config: DataConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[str] = set()
    fsync, rename, seen = os.fsync, os.rename, []

    def recorded(handle: int) -> None:
        synced.add(os.readlink(f"/proc/self/fd/{handle}"))
        fsync(handle)

    def renamed(old: Path, new: Path) -> None:
        seen.append(synced >= {str(path) for path in (old, *old.iterdir())})
        rename(old, new)
        synced.clear()

    monkeypatch.setattr(os, "fsync", recorded)
    monkeypatch.setattr(os, "rename", renamed)
    load(config)
    assert seen == [True] and config.store in synced


def test_a_folder_that_cannot_be_written_to_is_reported_before_the_work(
    config: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_text, "_from_text", None)
    with user_error(r"data\.store=.* cannot be written \(Not a directory\); give another folder"):
        load(replace(config, store=str(tmp_path / "train.de" / "store")))
    with user_error(r"data\.store=.* has no effect with data\.source='toy'"):
        DataConfig(store="store")

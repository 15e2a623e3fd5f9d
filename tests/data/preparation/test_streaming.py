"""Preparation in chunks gives the same text as all at once, with any number of processes, which end with their parent."""

import math
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus
from one_layer.data.loading import PARALLEL, load
from one_layer.data.preparation import spill, streaming
from one_layer.data.preparation.parallel import chunks, cores, in_order
from one_layer.data.preparation.spill import Spill
from one_layer.data.text.bpe_learning import learn_bpe_from_counts
from one_layer.data.text.preprocess import Preprocessing, count_words
from one_layer.data.text.vocabulary import Vocabulary
from tests import ROOT, until, user_error
from tests.data.pairs import write

LINE = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=12)
WORDS = st.lists(st.sampled_from(["das", "Haus", "neu,", "naïve", "a-b", "„ja“", "\u2028", "\x07", "@@", " "]))
RAW = [
    ("Das ist ein Haus.", "That's a house."),
    ("Er sagt: „Ja!“", "He says: 'yes!'"),
    ("", "Nothing."),
    ("Das Haus ist neu und neu\u2028und neu.", "The house is new."),
    ("Nein, nein!\x07", "No, no!"),
] * 5
WAYS: list[dict[str, Any]] = [
    {"tokenize": True, "lowercase": True, "bpe_merges": 9, "joined_vocabulary": True},
    {"tokenize": True, "split_hyphens": True},
    {"bpe_merges": 5},
    {"lowercase": True, "bpe_codes": "code"},
    {"bpe_codes": "code", "bpe_kind": "byte-level"},
    {},
    {"tokenize": True, "prepared": True},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("text")
    write(folder, "valid", *zip(*RAW[:2], strict=True))
    (folder / "code").write_text("#version: 0.2\nu s</w>\nn e\n")
    (folder / "code.bytes").write_text("#version: 0.2\nu s\nn e\n")
    return folder


def config_of(folder: Path, way: dict[str, Any]) -> DataConfig:
    codes = "code.bytes" if way.get("bpe_kind") else "code"
    keys = way | ({"bpe_codes": str(folder / codes)} if "bpe_codes" in way else {})
    return DataConfig(source="text", directory=str(folder), tests=("valid",), **keys)


def at_once(config: DataConfig, pairs: list[tuple[str, str]]) -> tuple[list[Vocabulary], str | None, list[list[Any]]]:
    """Returns vocabularies, codes and ids of all the text, made in memory step by step."""
    codes = Path(config.bpe_codes).read_text() if config.bpe_codes else None
    sides = [list(side) for side in zip(*pairs, strict=True)]
    if not config.prepared:
        sides = [step.words(side) for step, side in zip(PARALLEL.preprocessing(config, None), sides, strict=True)]
        if config.bpe_merges:
            codes = learn_bpe_from_counts(count_words(chain(*sides)), config.bpe_merges)
        sides = [step.subwords(side) for step, side in zip(PARALLEL.preprocessing(config, codes), sides, strict=True)]
    joined = [sides[0] + sides[1]] * 2 if config.joined_vocabulary else sides
    vocabularies = [Vocabulary.build(side) for side in joined]
    ids = [[v.encode(line).tolist() for line in side] for v, side in zip(vocabularies, sides, strict=True)]
    lengths = [(len(source), len(target)) for source, target in zip(*ids, strict=True)]
    kept = [place for place, both in enumerate(lengths) if min(both) > 1 and max(both) <= config.max_length]
    return vocabularies, codes, [[side[place] for place in kept] for side in ids]


def of(corpus: Corpus) -> tuple[list[Vocabulary], str | None, list[list[Any]]]:
    sides = corpus.train.source, corpus.train.target
    return list(corpus.vocabularies), corpus.codes, [[ids.tolist() for ids in side] for side in sides]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_chunks_give_the_same_as_all_at_once(
    folder: Path, way: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "_CHUNK", 3)
    monkeypatch.setattr(spill, "_BLOCK", 16)
    config = config_of(folder, way)

    @settings(deadline=None, max_examples=15)
    @given(st.lists(st.tuples(WORDS, WORDS), max_size=8))
    @example([(["das"], ["„ja“"] * 200)])  # too long, and left out
    def check(more: list[tuple[list[str], list[str]]]) -> None:
        pairs = RAW + [(" ".join(source), " ".join(target)) for source, target in more]
        write(folder, "train", *zip(*pairs, strict=True))
        corpus = load(config)
        assert of(corpus) == at_once(config, pairs)
        assert [v.counts for v in corpus.vocabularies] == [v.counts for v in at_once(config, pairs)[0]]

    check()


def test_several_processes_give_the_same_text_in_the_same_order(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, "train", *zip(*RAW, strict=True))
    monkeypatch.setattr(streaming, "_CHUNK", 2)
    monkeypatch.setattr(streaming, "_FEW", {True: 0, False: 0})
    monkeypatch.setattr(streaming, "cores", lambda: 2)
    config = config_of(folder, WAYS[0])
    assert of(load(config)) == at_once(config, RAW)


class Long:
    """Lines that are generated on demand, 10 MB in all."""

    def __iter__(self) -> Iterator[str]:
        for number in range(2000):
            yield f"{number} {'x' * 99} {'Y' * 4900}"


def test_memory_does_not_grow_with_the_number_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "_CHUNK", 20)
    monkeypatch.setattr(spill, "_BLOCK", 1 << 16)
    steps = Preprocessing("de", lowercase=True), Preprocessing("en")
    tracemalloc.start()
    try:
        first, counts = streaming.words((Long(), Long()), 2000, steps)
        second = streaming.subwords(first, 2000, steps)
        assert sum(map(len, second[1])) == sum(map(len, Long())) > 10e6 and len(counts) == 2003
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4e6


@settings(deadline=None)
@given(st.lists(st.lists(LINE, max_size=4), max_size=5), st.integers(1, 40))
def test_lines_can_be_read_several_times(parts: list[list[str]], block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spill, "_BLOCK", block)
        lines = Spill()
        for part in parts:
            lines.write(part)
        whole = list(chain(*parts))
        assert list(zip(lines, lines, strict=True)) == [(line, line) for line in whole]
        lines.write(["one more"])
        assert list(lines) == [*whole, "one more"] and len(lines) == len(whole) + 1


def test_a_missing_temporary_folder_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    with user_error(r"no folder for temporary files .*No such file.*TMPDIR"):
        Spill()


def test_a_full_disk_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full, where every write fails for want of room, on this system")
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: full.open("wb", buffering=0))
    with user_error(r"folder for temporary files, .*No space left.*TMPDIR"):
        Spill().write(["a line"])


def test_results_come_in_order_and_errors_are_raised() -> None:
    numbers = range(30, 0, -1)
    for processes in (1, 2):
        assert list(in_order(math.factorial, numbers, processes)) == [math.factorial(number) for number in numbers]
        with pytest.raises(ValueError, match="factorial"):
            list(in_order(math.factorial, [3, -1, 2], processes))
    with user_error("one of 2 processes was killed"):
        list(in_order(os._exit, [1, 1, 1], 2))
    assert list(chunks(range(5), 2)) == [[0, 1], [2, 3], [4]] and list(chunks([], 2)) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows processes in /proc")
def test_processes_end_when_their_parent_is_killed() -> None:
    program = "import time; from one_layer.data.preparation.parallel import in_order; list(in_order(time.sleep, [600] * 2, 2))"
    first = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    try:
        assert until(lambda: len(workers(first.pid)) == 2)
        begun = workers(first.pid)
        time.sleep(2)  # the processes have started and are working
    finally:
        first.kill()
        first.wait()
    assert until(lambda: not any(alive(pid) for pid in begun))


def workers(pid: int) -> list[int]:
    """Returns the pool processes of the process `pid`."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which cores a process may use")
def test_cores_counts_those_that_this_process_may_use() -> None:
    program = (
        "import os; from one_layer.data.preparation.parallel import cores\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); print(cores())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "1\n" and cores() == len(os.sched_getaffinity(0))

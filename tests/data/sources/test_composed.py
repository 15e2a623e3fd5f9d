"""Sources made of others: parts that are held out of one file, and several corpora as one training text."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from one_layer.data.config import DataConfig
from one_layer.data.loading import load
from one_layer.data.reader import ParallelReader
from one_layer.data.sources.pairs import Source, TableFiles
from one_layer.tasks import TASKS
from tests import user_error

PAIRS = [(f"satz {place % 700}", f"sentence {place}") for place in range(1000)]  # 300 source lines occur twice


def opened(folder: Path, pairs: list[tuple[str, str]], **keys: object) -> Source:
    (folder / "all.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    given = {"train": "all.tsv", "columns": "1,2", "held_out": 0.1, **keys}
    return ParallelReader().open(DataConfig(source="tsv", directory=str(folder), **given))  # type: ignore[arg-type]


def parts(source: Source) -> dict[str, list[tuple[str, str]]]:
    names = (source.train, source.valid, *source.tests)
    return {name: list(zip(*map(list, source.lines(name)), strict=True)) for name in names}


def test_the_parts_are_the_whole_and_have_no_source_line_in_common(tmp_path: Path) -> None:
    found = parts(opened(tmp_path, PAIRS))
    assert sorted(pair for part in found.values() for pair in part) == sorted(PAIRS)
    lines = [{source for source, _ in part} for part in found.values()]
    assert sum(map(len, lines)) == len(set.union(*lines))
    assert all(50 < len(found[name]) < 150 for name in ("valid", "test"))  # about 100 of 1,000
    assert found["all.tsv"] == [pair for pair in PAIRS if pair in found["all.tsv"]]  # in the order of the file


def test_a_line_stays_in_its_part_when_the_file_changes(tmp_path: Path) -> None:
    before, changed = parts(opened(tmp_path, PAIRS)), [*PAIRS[100:], ("neu", "new")]
    random.Random(1).shuffle(changed)
    after = parts(opened(tmp_path, changed))
    for name, pairs in after.items():
        assert set(pairs) - {("neu", "new")} <= set(before[name])


@pytest.mark.parametrize("task", ["translation", "classification"])
def test_a_training_text_without_a_line_is_refused(tmp_path: Path, task: str) -> None:
    """A header alone, or a file whose only line is held out."""
    keys = {"translation": {"source": "tsv"}, "classification": {"source": "labelled", "labels": "from_train"}}[task]
    given = {"columns": "de,en", "directory": str(tmp_path), "valid": "dev.tsv", "tests": (), **keys}
    only = parts(opened(tmp_path, PAIRS))["valid"][0][0]
    for name, lines in {"all": "", "one": f"{only}\tyes\n", "dev": "a\tyes\n"}.items():
        (tmp_path / f"{name}.tsv").write_text(f"de\ten\n{lines}")
    held_out = DataConfig(**given | {"train": "one.tsv", "valid": "valid", "held_out": 0.1})  # type: ignore[arg-type]
    with user_error(r"no (pairs|texts) to train on in the train text one\.tsv .* data\.held_out than 0\.1"):
        TASKS[task].corpus(held_out)
    with user_error(r"no pairs to train on in the train text all\.tsv|all\.tsv has no labelled text"):
        TASKS[task].corpus(DataConfig(**given | {"train": "all.tsv"}))  # type: ignore[arg-type]


def test_a_part_with_a_file_of_its_own_is_read_from_it(tmp_path: Path) -> None:
    (tmp_path / "dev.tsv").write_text("a\tb\n")
    source = opened(tmp_path, PAIRS, valid="dev.tsv")
    found = parts(source)
    assert found["dev.tsv"] == [("a", "b")] and len(found["all.tsv"]) + len(found["test"]) == len(PAIRS)
    assert [path.name for path in source.files("test")] == ["all.tsv"]


def test_parallel_files_too(tmp_path: Path) -> None:
    for side, language in enumerate(("de", "en")):
        (tmp_path / f"train.{language}").write_text("".join(pair[side] + "\n" for pair in PAIRS))
    config = DataConfig(source="text", directory=str(tmp_path), held_out=0.1)
    assert parts(ParallelReader().open(config))["valid"] == parts(opened(tmp_path, PAIRS))["valid"]
    (tmp_path / "train.en").write_text("short\n")
    with user_error(r"train.de has 1,000 lines, but .*train.en has 1"):
        ParallelReader().open(config).read("valid")


def test_the_whole_text_is_asked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data set of TFDS is unpacked for it."""
    source, asked = opened(tmp_path, PAIRS), []
    of_table = TableFiles.lines
    monkeypatch.setattr(TableFiles, "lines", lambda self, name: asked.append(name) or of_table(self, name))
    assert parts(source) == parts(source) and asked == ["all.tsv"]


def test_what_cannot_be_held_out_is_refused(tmp_path: Path) -> None:
    with user_error(r"neither data.valid='dev.tsv' nor data.tests=\('a.tsv',\) is one of its parts"):
        opened(tmp_path, PAIRS, valid="dev.tsv", tests=("a.tsv",))
    with user_error(r"data.held_out=0.1 leaves no line for the part 'valid'"):
        opened(tmp_path, PAIRS[:1]).read("valid")
    with user_error(r"data.held_out=0.7 is not a share"):
        opened(tmp_path, PAIRS, held_out=0.7)
    for name, source in (("valid", "plain"), ("test", "tsv")):
        with user_error(rf"data.train='{name}' is the name of a part that data.held_out takes out"):
            DataConfig(source=source, directory="there", train=name, held_out=0.1, columns="1,2" * (source == "tsv"))
    with user_error(r"data.held_out=0.1 has no effect with data.source='toy'"):
        DataConfig(held_out=0.1)


def test_lines_that_the_model_reads_alike_are_in_one_part(tmp_path: Path) -> None:
    pairs = [(each, "x") for place in range(300) for each in (f"Satz {place}", f"satz {place}")]
    for lowercase in (True, False):
        found = parts(opened(tmp_path, pairs, lowercase=lowercase))
        read = [{source.lower() for source, _ in part} for part in found.values()]
        assert (sum(map(len, read)) == 300) == lowercase
    low = [(each.lower(), "x") for each, _ in pairs]
    assert parts(opened(tmp_path, low, lowercase=True)) == parts(opened(tmp_path, low))


def test_lines_that_have_the_same_words_are_in_one_part(tmp_path: Path) -> None:
    pairs = [(each, "x") for place in range(300) for each in (f"satz {place}, hier", f"satz {place} , hier")]
    for tokenize in (True, False):
        found = parts(opened(tmp_path, pairs, tokenize=tokenize))
        read = [{source.replace(" ,", ",") for source, _ in part} for part in found.values()]
        assert (sum(map(len, read)) == 300) == tokenize


TABLE, FILES = 100, 30  # pairs


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table without a header, one with the sides the other way round, and a pair of files."""
    path = tmp_path_factory.mktemp("corpora")
    (path / "a.tsv").write_text("".join(f"a{line}\tA{line}\n" for line in range(TABLE)))
    (path / "c.csv").write_text("de,en\n" + "".join(f"C{line},c{line}\n" for line in range(7)))
    (path / "b.en").write_text("".join(f"b{line}\n" for line in range(FILES)))
    (path / "b.de").write_text("".join(f"B{line}\n" for line in range(FILES)))
    return path


def config(corpora: Path, **keys: Any) -> DataConfig:
    own = {"source": "tsv", "train": "a.tsv,b", "columns": "1,2;", "source_language": "en", "target_language": "de"}
    return DataConfig(directory=str(corpora), **(own | {"valid": "b", "tests": ()} | keys))


def mixed(given: DataConfig) -> list[tuple[str, str]]:
    source = ParallelReader().open(given)
    return list(zip(*source.lines(source.train), strict=True))


@pytest.mark.parametrize("mix", ["", "1:1", "2:1", "1:2.5", "1:100"])
def test_every_pair_is_there_and_each_corpus_has_its_share(corpora: Path, mix: str) -> None:
    found = Counter(mixed(config(corpora, mix=mix)))
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


def test_each_corpus_has_its_own_columns(corpora: Path) -> None:
    found = mixed(config(corpora, train="a.tsv,c.csv,b", columns="1,2;en,de;"))
    assert len(found) == TABLE + 7 + FILES
    assert all(source.upper() == target for source, target in found)


def test_a_part_is_read_with_the_columns_of_the_corpus_that_has_its_ending(corpora: Path) -> None:
    (corpora / "dev.csv").write_text("de,en\nX,x\n")
    source = ParallelReader().open(config(corpora, train="a.tsv,c.csv,b", columns="1,2;en,de;", valid="dev.csv"))
    assert source.read("dev.csv") == (["x"], ["X"])


def test_what_is_held_out_is_in_no_corpus_and_is_not_repeated(corpora: Path) -> None:
    given = config(corpora, mix="1:1", held_out=0.1, valid="valid", tests=("test",))
    source = ParallelReader().open(given)
    parts_read = {name: list(source.read(name)[0]) for name in ("valid", "test")}
    trained = {line for line, _ in mixed(given)}
    for lines in parts_read.values():
        assert len(set(lines)) == len(lines) > 0
        assert not trained & set(lines)
    assert {line[0] for lines in parts_read.values() for line in lines} == {"a", "b"}
    assert len(trained) + sum(map(len, parts_read.values())) == TABLE + FILES
    assert [line for line in source.report.values() if "% of the lines" in line] == [
        f"{name}: 10 % of the lines each become valid and test, by a hash of the source line" for name in ("a.tsv", "b")
    ]


def test_files_of_two_corpora_that_were_exchanged_are_refused_although_all_sides_have_as_many_lines(
    tmp_path: Path,
) -> None:
    for name, counts in (("a", (6, 3)), ("b", (3, 6))):
        for language, count in zip(("en", "de"), counts, strict=True):
            (tmp_path / f"{name}.{language}").write_text("x\n" * count)
    with user_error(r"a\.en has 6 lines, but .*a\.de has 3"):
        mixed(config(tmp_path, source="text", train="a,b", columns=""))


@pytest.mark.parametrize("keys", [{}, {"held_out": 0.45, "valid": "valid", "tests": ("test",)}])
def test_a_corpus_may_give_no_pair(corpora: Path, keys: dict[str, Any]) -> None:
    (corpora / "none.tsv").write_text(
        "en\tde\n" + ("a2\tA2\n" if keys else "")
    )  # a header, and a line that is held out
    found = mixed(config(corpora, train="b,none.tsv", columns=";en,de", **keys))
    assert {source[0] for source, _ in found} == {"b"} and len(found) == (len(set(found)) if keys else FILES)


def test_one_vocabulary_is_made_of_all_and_a_store_knows_the_shares(corpora: Path, tmp_path: Path) -> None:
    stores = [load(config(corpora, mix=mix, store=str(tmp_path), joined_vocabulary=True)) for mix in ("1:1", "2:1")]
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
def test_what_is_no_mixture_is_refused(corpora: Path, keys: dict[str, str], words: str) -> None:
    with user_error(words):
        load(config(corpora, **keys))

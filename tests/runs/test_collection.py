"""A collection has the files of its runs, unchanged; what reads folders of runs reads it, and a stranger's file can do no harm."""

import json
import shutil
import tracemalloc
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from one_layer.commands import compare
from one_layer.data.text.assets import TEXT_FILES
from one_layer.report.reading import read_runs
from one_layer.runs import collection
from one_layer.runs.collection import collect, opened
from one_layer.system.errors import UserError
from tests import tiny

RUNS = ("plain", "sweep/a", "sweep/b")
ABOUT = ("config.json", "result.json", "metrics.jsonl", "identity.json", *TEXT_FILES)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of three runs, two of which belong to a sweep that lacks a third, beside what is no run."""
    top = tmp_path_factory.mktemp("collected") / "runs"
    finished = tiny.trained(tmp_path_factory)
    for name in RUNS:
        (top / name).mkdir(parents=True)
        for file in (*ABOUT, "hypotheses-test.txt", "hypotheses-test.tokenized.txt"):
            shutil.copy(finished / file, top / name)
        result = json.loads((finished / "result.json").read_text())
        (top / name / "result.json").write_text(json.dumps({**result, "started": f"{result['started']} {name}"}))
    config = json.loads((finished / "config.json").read_text())
    planned = {name: {"config": config, "words": [f"--workdir={name}"]} for name in ("a", "b", "c")}
    (top / "sweep" / "sweep.json").write_text(json.dumps({"sweep": "x", "runs": planned}))
    (top / "sweep" / "a" / "evaluation-test-last.json").write_text(
        json.dumps({"split": "test", "checkpoint": "last", "step": 12, "bleu_tokenized": 3.5, "note": "ü\r\n\u2028"})
    )
    (top / "plain" / "checkpoints").mkdir()
    (top / "plain" / "ticket.safetensors").write_bytes(b"large")
    (top / "not a run").mkdir()
    return top


@pytest.fixture(scope="module")
def collected(folders: Path) -> Path:
    output = folders.parent / f"all{collection.SUFFIX}"
    assert collect(f"{folders}/**", output) == len(RUNS)
    return output


def test_the_report_reads_of_a_collection_what_it_reads_of_the_folders(folders, collected, monkeypatch):
    monkeypatch.chdir(folders.parent)
    shutil.copy(collected, "runs.jsonl.zst")  # so that the names are the same
    for inner in ("", "/", "/sweep", "/*", "/plain", "/sweep/a"):
        assert read_runs(f"runs.jsonl.zst{inner}") == read_runs(f"runs{inner.rstrip('/') or '/**'}"), inner
    assert {str(record.folder) for record in read_runs("runs.jsonl.zst")} == {
        *(f"runs/{name}" for name in (*RUNS, "sweep/c"))
    }
    (once,) = read_runs("*.jsonl.zst/plain")
    assert once.folder.name == "plain"


def test_every_byte_comes_back_and_nothing_else_is_in_it(folders, collected):
    texts = [*folders.rglob("*.json*"), *folders.rglob("hypotheses-test.txt"), *folders.rglob("vocabulary.*.txt")]
    assert len(texts) == 3 * (len(ABOUT) + 1) + 2
    assert read(collected) == {str(path.relative_to(folders)): path.read_bytes() for path in texts}


def test_damage_inside_is_named_by_the_collection(folders, tmp_path, monkeypatch, capsys):
    runs, mine = shutil.copytree(folders, tmp_path / "runs"), "mine.jsonl.zst"
    monkeypatch.chdir(tmp_path)
    (runs / "sweep" / "a" / "hypotheses-test.txt").write_text("")
    collect(str(runs), Path(mine))
    compare.main([f"{mine}/plain", f"{mine}/sweep/a"])
    assert f"not compared: {mine}/sweep/a/hypotheses-test.txt is empty" in capsys.readouterr().out
    (runs / "sweep" / "a" / "result.json").write_text("{")
    collect(str(runs), Path(mine))
    with pytest.raises(UserError, match=rf"^{mine}/sweep/a/result\.json cannot be read"):
        read_runs(mine)


def test_two_runs_of_a_collection_are_compared_line_by_line(folders, collected, capsys):
    compare.main([f"{collected}/plain", f"{collected}/sweep/a"])
    said = capsys.readouterr().out
    assert "and 8 are equally good" in said, said


def test_the_text_of_compared_runs_may_lie_elsewhere(collected, tmp_path):
    with pytest.raises(UserError, match=r"--text=here is for the lines of two runs; leave it out, or give two runs"):
        compare.main([str(collected), str(collected), "--text=here"])


@pytest.mark.parametrize(("inside", "pattern"), [("", "."), ("plain", "."), ("sweep", ".."), ("plain", "../**")])
def test_runs_may_be_named_from_the_folder_that_one_is_in(folders, tmp_path, monkeypatch, inside, pattern):
    monkeypatch.chdir(folders / inside)
    collect(str(Path(pattern)), tmp_path / "here.jsonl.zst")
    monkeypatch.chdir(tmp_path)
    collect(str((folders / inside / pattern).resolve()), tmp_path / "whole.jsonl.zst")
    content = read(Path("here.jsonl.zst"))
    assert content == read(Path("whole.jsonl.zst")) and any(name.endswith("plain/result.json") for name in content)


def test_linked_runs_are_collected_and_folders_of_other_programs_are_not(folders, tmp_path):
    """As a report reads them. What Hugging Face writes has a config.json too."""
    (tmp_path / "linked").symlink_to(folders / "sweep")
    shutil.copytree(folders / "plain", tmp_path / "own")
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "config.json").write_text('{"model_type": "gpt2"}')
    for pattern in (tmp_path, f"{tmp_path}/**"):
        assert collect(str(pattern), tmp_path / f"all{collection.SUFFIX}") == len(RUNS)
    assert [record.folder.name for record in read_runs(str(tmp_path))] == ["a", "b", "c", "own"]


def test_links_that_form_a_loop_end_and_hidden_runs_are_collected(folders, tmp_path):
    for name in ("a", ".b"):
        shutil.copytree(folders / "plain", tmp_path / name)
        (tmp_path / name / "up").symlink_to(tmp_path)
    assert collect(str(tmp_path), tmp_path / f"all{collection.SUFFIX}") == 2


def test_a_collection_may_lie_in_a_folder_with_brackets(collected, tmp_path):
    (tmp_path / "a[1]").mkdir()
    shutil.copy(collected, tmp_path / "a[1]" / f"all{collection.SUFFIX}")
    assert len(read_runs(f"{tmp_path}/a[1]/all{collection.SUFFIX}")) == len(read_runs(str(collected))) > 0


def test_a_file_that_is_no_text_is_named(folders, tmp_path):
    run = shutil.copytree(folders / "plain", tmp_path / "run")
    with (run / "metrics.jsonl").open("ab") as file:
        file.write(b"\xff")
    with pytest.raises(UserError, match=r"run/metrics\.jsonl' cannot be collected"):
        collect(str(run), tmp_path / "all.jsonl.zst")
    assert not (tmp_path / "all.jsonl.zst").exists()


def test_a_file_that_goes_while_runs_are_collected_is_left_out(folders, tmp_path, monkeypatch):
    """As the result of a run that becomes longer."""
    there = collection._files
    monkeypatch.setattr(collection, "_files", lambda folder: [*there(folder), folder / "evaluation-gone.json"])
    collection.collect(str(folders), tmp_path / "all.jsonl.zst")
    assert read_runs(str(tmp_path / "all.jsonl.zst"))


def test_a_line_without_end_takes_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(collection, "_LONGEST", 1000)
    file = tmp_path / "strange.jsonl.zst"
    file.write_bytes(zstandard.ZstdCompressor().compress(bytes(2**26)))
    tracemalloc.start()
    try:
        assert read(file) == "refused"
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_damaged_collection_is_refused_in_a_sentence(collected, data):
    content = bytearray(collected.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content = content[:place]
    else:
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    damaged = collected.with_name("damaged.jsonl.zst")
    damaged.write_bytes(content)
    assert read(damaged) in (read(collected), "refused")  # one bit of zstd's header means nothing


def read(file: Path) -> dict[str, bytes] | str:
    """The content of a collection, or that it was refused."""
    try:
        with opened(str(file)) as (place,):
            return {str(path.relative_to(place.root)): path.read_bytes() for path in place.root.rglob("*.*")}
    except UserError as error:
        return (
            "refused"
            if f"{file} is no whole collection" in str(error) and "--mode=collect" in str(error)
            else str(error)
        )


HEAD = {"format": "one_layer runs", "version": 1, "files": 1}


@pytest.mark.parametrize(
    "lines",
    [
        [{**HEAD, "version": 2}, {"file": "a/result.json", "text": "{}"}],
        [{**HEAD, "files": 0}, {"file": "a/result.json", "text": "{}"}],
        [{"file": "a/result.json", "text": "{}"}],
        [],
        [HEAD],
        [HEAD, {"file": "../result.json", "text": "{}"}],
        [HEAD, {"file": "/tmp/result.json", "text": "{}"}],
        [HEAD, {"file": "a/../../result.json", "text": "{}"}],
        [HEAD, {"file": "a/run.sh", "text": "{}"}],
        [HEAD, {"file": "a/result.json"}],
        [HEAD, {"file": 7, "text": "{}"}],
        [HEAD, {"file": "a/result.json", "text": 7}],
        [HEAD, ["a/result.json", "{}"]],
        [HEAD, {"file": "a/result.json", "text": "x" * 300}],
    ],
    ids=str,
)
def test_a_stranger_s_file_writes_nothing_outside_and_not_without_end(lines, tmp_path, monkeypatch):
    monkeypatch.setattr(collection, "_MOST", 200)
    file = tmp_path / "strange.jsonl.zst"
    file.write_bytes(zstandard.ZstdCompressor().compress("".join(f"{json.dumps(line)}\n" for line in lines).encode()))
    with pytest.raises(UserError, match="is no whole collection of runs"), opened(str(file)):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


@pytest.mark.parametrize(
    ("pattern", "output", "message"),
    [("**", "all.zip", r"ends in \.jsonl\.zst"), ("nothing", "all.jsonl.zst", "matches no folder of a run")],
)
def test_what_cannot_be_collected_is_said_and_leaves_no_file(folders, tmp_path, pattern, output, message):
    with pytest.raises(UserError, match=message):
        collect(f"{folders}/{pattern}", tmp_path / output)
    assert not [*tmp_path.iterdir()]

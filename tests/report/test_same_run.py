"""What is one run, one text and one model, wherever its files lie and whatever came later."""

import json
import shutil
from pathlib import Path

from one_layer.report.reading import read_runs
from one_layer.report.tables import methods
from one_layer.runs.sources import sources
from tests.report.made_runs import found, write_run


def test_what_a_run_needs_is_counted_once_and_files_of_embeddings_are_named(tmp_path):
    """The second run begins with the first and learns from it. Embeddings in the folder of a run are that run's."""
    first = write_run(tmp_path / "first", {}, 10.0, train_seconds=3600.0, train_flops=5e9)
    both = {"train.init_from": str(first), "data.teacher": str(first)}
    second = write_run(tmp_path / "second", both, 20.0, train_seconds=1800.0, train_flops=1e9)
    (needs,) = sources({"train.init_from": str(second)})
    assert (needs["train_seconds"], needs["train_flops"]) == (5400.0, 6e9)
    for path, seconds in ((first / "embeddings.{language}.txt", 3600.0), (tmp_path / "from elsewhere.txt", None)):
        (needs,) = sources({"model.embedding_source": "text", "model.embedding_path": str(path)})
        assert needs["path"] == str(path) and needs["train_seconds"] == seconds


def test_a_teacher_of_several_generations_is_counted_once(tmp_path):
    def made(name: str, seconds: float, **needs: str) -> Path:
        return write_run(
            tmp_path / name, needs, 10.0, train_seconds=seconds, train_flops=seconds, sources=sources(needs)
        )

    teacher = str(made("teacher", 1000.0))
    first = made("first", 100.0, **{"data.teacher": teacher})
    second = made("second", 10.0, **{"data.teacher": teacher, "train.init_from": str(first)})
    third = made("third", 1.0, **{"data.teacher": teacher, "train.init_from": str(second)})
    seconds = {point.records[0].folder: point.seconds for point in found(tmp_path)}
    assert [seconds[folder] for folder in (first, second, third)] == [1100.0, 1110.0, 1111.0]


def test_a_run_that_is_there_twice_is_read_once(tmp_path, caplog):
    """By a link, or by a copy; not a second run with the same score and seed."""
    write_run(tmp_path / "a", {}, 30.0, started="2026-11-25T12:00:00+00:00")
    shutil.copytree(tmp_path / "a", tmp_path / "copy")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    write_run(tmp_path / "unknown", {"optim.lr": 0.5}, 30.0)
    (tmp_path / "other link").symlink_to(tmp_path / "unknown")
    write_run(tmp_path / "z", {}, 30.0, started="2026-11-25T13:00:00+00:00")
    assert sorted(sorted(record.folder.name for record in point.records) for point in found(tmp_path)) == [
        ["a"],
        ["other link"],
        ["z"],
    ]
    assert f"{tmp_path / 'copy'} is left out: it is the same run as {tmp_path / 'a'}" in caplog.text


def test_codes_and_a_vocabulary_in_another_place_are_the_same_text(tmp_path):
    """By the fingerprints of the ids. Of runs without any, nobody knows."""
    for known in (True, False):
        for seed in (1, 2):
            places = {"data.bpe_codes": f"{seed}/codes", "data.vocabulary": f"{seed}/words", "seed": seed}
            text = {"data.source": "text", "data.directory": f"{seed}", "optim.lr": float(known)}
            more = {} if known else {"data": {}}
            write_run(tmp_path / f"{known} {seed}", places | text, 30.0, **more)
    assert sorted(len(point.values) for point in found(tmp_path)) == [1, 1, 2]


def test_a_run_that_went_on_is_shown_as_it_ended(tmp_path):
    """Its scores are those of its end; so are its curve and its best update, whatever came later."""
    folder = write_run(tmp_path / "a", {}, 30.0, steps=50)
    (record,) = read_runs(str(folder))
    assert [line["step"] for line in record.metrics] == [25, 50] and len(record.evaluated("nll")) == 2
    (folder / "result.json").unlink()
    (record,) = read_runs(str(folder))
    assert [line["step"] for line in record.metrics] == [25, 50, 75, 100]


def test_what_a_run_needs_is_known_before_it_ends(tmp_path):
    """It notes that at its beginning; what the source has cost since then is not its own need."""
    needs = {"key": "train.init_from", "path": "runs/gone", "train_seconds": 3600.0, "train_flops": 5e9}
    folder = write_run(tmp_path / "a", {"train.init_from": "runs/gone"}, 30.0, sources=[needs], skipped_updates=3)
    table = methods(read_runs(str(folder)))
    finished = dict(zip(table.columns, table.rows[0], strict=True))
    assert finished["updates"] == "1000 (3 skipped)"
    (folder / "result.json").unlink()
    (folder / "identity.json").write_text(json.dumps({"sources": [needs]}))
    begun = dict(zip(table.columns, methods(read_runs(str(folder))).rows[0], strict=True))
    assert begun["needs"] == finished["needs"] == "begins with runs/gone (1.00 h, 5e+09 operations)"

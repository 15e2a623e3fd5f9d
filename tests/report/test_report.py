"""The report: what is averaged, what is drawn, what is missing, and a page that needs nothing else."""

import csv
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import one_layer.report.writing as writing
from one_layer.report import reading
from one_layer.report.areas import areas
from one_layer.report.points import points
from one_layer.report.reading import read_runs
from one_layer.report.runs import unfinished
from one_layer.report.sizes import score_against_bytes
from one_layer.report.tables import methods
from one_layer.system.errors import UserError
from tests import ROOT, mostly_slow, user_error
from tests.report.made_runs import config, write_run


def test_methods_say_how_to_make_a_run_again(tmp_path):
    folder = write_run(tmp_path / "a b", {"model.keep": 0.3}, 30.0)
    table = methods(read_runs(str(tmp_path / "*")))
    row = dict(zip(table.columns, table.rows[0], strict=True))
    words = ["--config=configs/toy.py", "--config.model.keep=0.3", f"--workdir={folder}"]
    assert shlex.split(row["command"]) == ["python", "main.py", *words]
    assert row["search"] == "beam 5, length penalty 1" and row["commit"] == "012345678" and row["seed"] == "1"
    assert "cccc33" in row["data"] and row["checkpoint"] == "best by nll on valid: update 100"


def test_the_command_of_a_run_of_a_sweep_is_the_sweep_s(runs):
    planned = json.loads((runs / "sweep.json").read_text())["runs"]
    commands = {record.folder.name: shlex.split(record.command)[2:] for record in read_runs(str(runs / "one,*"))}
    assert commands and commands == {name: planned[name]["words"] for name in commands}


def test_every_point_is_in_a_csv_file(runs, written):
    with (written / "points.csv").open() as file:
        rows = list(csv.DictReader(file))
    every = points(read_runs(str(runs)))
    assert [row["mean"] for row in rows] == ["" if p.mean is None else str(p.mean) for p in every]
    assert sum(int(row["runs"]) for row in rows) == len(list(runs.glob("*/result.json")))
    for picture in written.glob("figure*.svg"):
        with picture.with_suffix(".csv").open() as file:
            assert {row["folders"] for row in csv.DictReader(file)} <= {row["folders"] for row in rows}


@pytest.mark.parametrize("sweep", mostly_slow(["figures", "table1", "controls", "reservoirs"], ["figures"]))
def test_the_reports_of_the_toy_language_are_what_its_runs_say(monkeypatch, sweep):
    """The stored points are those that this version makes of the stored runs."""
    monkeypatch.chdir(ROOT)
    every = points(read_runs(f"results/toy.jsonl.zst/{sweep}"))
    stored = Path(f"results/toy/report/{sweep}/points.csv").read_text("utf-8")
    assert writing.csv_of(every) == stored


def test_the_picture_of_multi30k_shows_its_stored_runs(monkeypatch):
    """docs/results.md has it: score against bytes on test2016."""
    monkeypatch.chdir(ROOT)
    found = points(read_runs("results/multi30k.jsonl.zst"))
    picture = score_against_bytes([point for point in found if point.bench == found[0].bench], 1)
    stored = Path("results/multi30k/bytes.csv").read_text("utf-8")
    assert writing.csv_of(picture.points) == stored


def test_every_picture_is_there_and_linked(written):
    names = {path.stem for path in written.glob("*.svg")}
    kinds = {name.rsplit("-", 1)[0] for name in names}
    assert kinds == {"figure2", "figure3", "figure4", "figure5", "bytes", "convergence"}
    page = (written / "index.html").read_text()
    for name in names:
        root = ElementTree.parse(written / f"{name}.svg").getroot()
        assert all(each.startswith(f"{name}-") for element in root.iter() if (each := element.get("id")))
        assert f'href="{name}.svg"' in page and f'id="{name}-' in page


def test_pictures_of_an_earlier_report_go_and_other_files_stay(written, tmp_path):
    out = tmp_path / "report"
    shutil.copytree(written, out)
    before = {path.stem for path in out.glob("*.svg")}
    (out / "bytes-77.csv").write_text("a table of the user's own, without a picture")
    write_run(tmp_path / "alone", {}, 30.0)
    writing.report(str(tmp_path / "alone"), out)
    after = {path.stem for path in out.glob("*.svg")}
    tables = {"points"}
    shown = set(re.findall(r'href="([^"/]+)\.csv"', (out / "index.html").read_text())) - tables
    assert before - after and after == shown
    assert {path.stem for path in out.glob("*.csv")} == after | tables | {"bytes-77"}


def test_the_page_shows_text_as_text_and_asks_for_nothing(written):
    page = (written / "index.html").read_text()
    assert "die katze &lt;b&gt;" in page and "<b>" not in page
    targets = re.findall(r'(?:src|href|xlink:href)="([^"]*)"', page)
    assert all(t.startswith(("#", "data:")) or (written / t).is_file() for t in targets)
    assert "<script" not in page and "@import" not in page
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(set(ids)) == len(ids) and {t[1:] for t in targets if t.startswith("#")} <= set(ids)


def test_a_report_needs_runs_that_can_be_read(tmp_path):
    with user_error("matches no folder of a run"):
        writing.report(str(tmp_path / "*"), tmp_path / "out")
    write_run(tmp_path / "a", {}, 1.0)
    (tmp_path / "a" / "result.json").write_text("{")
    with user_error(r"result\.json cannot be read"):
        writing.report(str(tmp_path / "*"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


RUN = {"config": config({})}


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("result.json", {**RUN, "test": None}, "test is None, but must be an object"),
        ("result.json", {**RUN, "test": {"test": {"nll": "low"}}}, "test.test.nll is 'low', but must be a number"),
        ("result.json", {**RUN, "test": {"test": {"nll": math.nan}}}, "nll is nan, but must be a finite number"),
        ("result.json", {**RUN, "examples": {"test": [{"source": "a"}]}}, "lacks examples.test[0].reference"),
        ("result.json", {**RUN, "overrides": 1}, "overrides is 1, but must be a list"),
        ("result.json", {**RUN, "members": [1]}, "members is [1], but must be a whole number, text or null"),
        ("config.json", config({"model.encoder_layers": [2]}), "is [2], but must be a whole number or text"),
        ("evaluation-test.json", {"split": "test", "beam": "5"}, "beam is '5', but must be a whole number or null"),
        ("metrics.jsonl", {"step": 1, "valid/nll": 2.0}, "line 1 lacks seconds"),
        ("config.json", config({}) | {"train": "long"}, "train is 'long', but must be an object"),
        ("config.json", config({"train.epochs": "6"}), "train.epochs is '6', but must be a whole number or null"),
        ("../sweep.json", {"runs": {"a": 5}}, "runs.a is 5, but must be an object"),
    ],
)
def test_a_file_with_other_content_is_named_in_one_sentence(tmp_path, file, content, said):
    folder = write_run(tmp_path / "runs" / "a", {}, 30.0)
    if file == "config.json":
        (folder / "result.json").unlink()
    (folder / file).write_text(json.dumps(content) + "\n")
    with pytest.raises(UserError) as raised:
        writing.report(str(tmp_path / "runs" / "*"), tmp_path / "out")
    assert str(raised.value).startswith(str((folder / file).parent.resolve() / Path(file).name))
    assert said in str(raised.value) and "leave the run out" in str(raised.value)


@pytest.mark.parametrize(
    "line",
    [
        {"step": 100, "seconds": 60.0, "valid/nll": "nan"},
        {"step": 100, "seconds": 60.0, "valid/nll": "inf"},
        {"step": 0, "seconds": 0.0, "valid/nll": 2.0},
    ],
)
def test_a_curve_without_an_area_is_left_out_of_the_areas(tmp_path, line):
    """Two seeds have no area, on any axis; a third run has one."""
    for seed in (1, 2):
        folder = write_run(tmp_path / "runs" / f"{seed}", {"seed": seed}, 30.0)
        (folder / "metrics.jsonl").write_text((json.dumps(line) + "\n") * 2)
    if line["step"]:
        write_run(tmp_path / "runs" / "other", {"optim.lr": 0.1}, 40.0)
    found = areas(read_runs(str(tmp_path / "runs" / "*")))
    names = {record.folder.name for each in found if each.until for record in each.records}
    assert names == ({"other"} if line["step"] else set())


def test_keys_that_a_config_lacks_are_left_out_of_the_page(tmp_path):
    values = config({})
    del values["evaluation"]["length_penalty"], values["model"]["d_model"]
    for name, layers in (("a", 2), ("b", 4)):
        values["model"]["encoder_layers"] = layers
        (write_run(tmp_path / "runs" / name, {}, 30.0) / "result.json").write_text(
            json.dumps({"config": values, "test": {"test": {"bleu_tokenized": 30.0 + layers}}})
        )
    writing.report(str(tmp_path / "runs" / "*"), tmp_path / "out")
    page = (tmp_path / "out" / "index.html").read_text()
    assert (
        "2 finished runs" in page and "beam 5" in page and "length penalty" not in page.split("Methods: every run")[1]
    )


def test_a_run_may_finish_while_it_is_read(tmp_path, monkeypatch):
    folder = write_run(tmp_path / "a", {}, 30.0)
    result = (folder / "result.json").rename(tmp_path / "result.json")
    read = reading._metrics
    monkeypatch.setattr(reading, "_metrics", lambda path: shutil.copy(result, folder) and read(path))
    (record,) = read_runs(str(folder))
    assert not record.result and unfinished([record]).rows[0][1] == "finished"


def test_a_run_may_become_longer_while_it_is_read(tmp_path, monkeypatch):
    """It removes its result, perhaps after it was found and before it is read."""
    folder = write_run(tmp_path / "a", {}, 30.0)
    read = reading.read_object
    monkeypatch.setattr(
        reading, "read_object", lambda path: (path.name == "result.json" and path.unlink()) or read(path)
    )
    (record,) = read_runs(str(folder))
    assert not record.result and record.config and unfinished([record]).rows[0][1] == "not finished"


def test_a_folder_s_name_may_be_no_text(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9 au lait")
    write_run(folder / "a", {"data.directory": str(folder)}, 30.0)
    writing.report(str(folder), tmp_path / "report")
    assert "caf\\udce9 au lait" in (tmp_path / "report" / "index.html").read_text("utf-8")
    with (tmp_path / "report" / "points.csv").open() as file:
        assert {row["folders"] for row in csv.DictReader(file)} == {f"'{tmp_path}/caf\\udce9 au lait/a'"}


def test_unfinished_runs_alone_still_give_a_page(tmp_path):
    folder = tmp_path / "runs" / "a"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config({})))
    writing.report(str(folder), tmp_path / "out")
    page = (tmp_path / "out" / "index.html").read_text()
    assert "0 finished runs" in page and "No run has a score on a test set yet" in page


def test_the_same_runs_give_the_same_report(runs, written, tmp_path):
    """In another process, which orders sets otherwise."""
    words = ["--mode=report", f"--runs={runs}", f"--workdir={tmp_path / 'out'}"]
    subprocess.run([sys.executable, "main.py", *words], cwd=ROOT, check=True)
    for path in written.iterdir():
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes(), path.name


def test_the_folder_of_a_run_takes_no_report_however_it_is_written(tmp_path, monkeypatch):
    folder = write_run(tmp_path / "a", {}, 30.0)
    monkeypatch.chdir(tmp_path)
    for out in (Path("a"), folder, tmp_path / "." / "a"):
        with user_error("holds a run"):
            writing.report("a", out)
    assert len(list(folder.iterdir())) == 3


def test_a_folder_whose_name_looks_like_a_pattern_is_a_folder(tmp_path):
    write_run(tmp_path / "a[1]", {}, 30.0)
    (record,) = read_runs(str(tmp_path / "a[1]"))
    assert record.folder.name == "a[1]"


@pytest.mark.parametrize("pattern", ["./runs/*", "runs/*/", "runs//*", "./runs/", "runs/**"])
def test_planned_runs_are_found_however_the_pattern_is_written(runs, monkeypatch, pattern):
    monkeypatch.chdir(runs.parent)
    assert read_runs(pattern) == read_runs("runs/*") and len(read_runs(pattern)) == len(read_runs(str(runs)))

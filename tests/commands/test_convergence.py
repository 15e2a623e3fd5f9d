"""The command that compares how fast runs converge: its table, its picture, and what it refuses."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from one_layer.commands import convergence
from one_layer.runs.collection import collect
from tests import ROOT
from tests.commands.called import called


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs with three evaluations each, and one without any."""
    folder = tmp_path_factory.mktemp("runs")
    for name, speed in (("plain", 1.0), ("quick", 2.0)):
        lines = [
            {"step": n * 10, "seconds": 5.0 * n, "train/flops": 1e6 * n, "valid/bleu": speed * n, "valid/nll": 9.0 - n}
            for n in (1, 2, 3)
        ]
        (folder / name).mkdir()
        (folder / name / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        (folder / name / "result.json").write_text('{"device": "cpu"}')
    (folder / "begun").mkdir()
    (folder / "begun" / "metrics.jsonl").write_text('{"step": 5}\n')
    return folder


def compare(runs: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Calls the command in this process, which need not import Matplotlib once more."""
    return called(convergence.main, f"--baseline={runs / 'plain'}", f"--runs={runs}/*", *more)


@pytest.fixture(scope="module")
def drawn(runs: Path) -> tuple[subprocess.CompletedProcess[str], Path]:
    """What the program prints, in a process of its own, and the picture that it draws."""
    picture = runs / "curves.svg"
    words = [f"--baseline={runs / 'plain'}", f"--runs={runs}/*", f"--picture={picture}", "--axis=flops"]
    words = [sys.executable, "launch/convergence.py", *words]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False), picture


def test_the_table_has_the_runs_that_were_evaluated(drawn):
    done, _ = drawn
    assert rows_of(done) == ["plain", "quick"]
    plain, quick = (line.split() for line in done.stdout.splitlines()[1:3])
    assert plain.count("0.0%") == 3 and quick.count("33.3%") == 3
    assert "begun is left out" in done.stderr


def test_the_picture_names_every_run_and_the_axis(drawn):
    _, picture = drawn
    words = {
        "".join(text.itertext()).strip() for text in ElementTree.parse(picture).iter() if text.tag.endswith("text")
    }
    assert {"plain", "quick", "operations (FLOPs)", "validation bleu"} <= words
    assert "begun" not in words


def test_the_picture_names_every_run_whatever_its_folder_is_called(runs, tmp_path, monkeypatch):
    """Two folders have the same last part; others begin with _, which Matplotlib hides, or look like its formulas."""
    names = ["a/run", "b/run", "c/_hidden", "_first", "c/$x_{", "c/$a^{2}$"]
    for name in names:
        shutil.copytree(runs / "plain", tmp_path / name)
    monkeypatch.chdir(tmp_path)
    done = called(convergence.main, "--baseline=_first", "--runs=*/*", "--picture=curves.svg")
    assert done.returncode == 0, done.stderr
    root = ElementTree.parse("curves.svg")
    words = ["".join(text.itertext()).strip() for text in root.iter() if text.tag.endswith("text")]
    expected = ["./_first", "a/run", "b/run", "$a^{2}$", "$x_{", "./_hidden"]
    assert [word for word in words if word in expected] == expected


def finished(
    folder: Path,
    runs: Path,
    ids: str = "",
    flops: bool = True,
    device: str = "cpu",
    more: dict[str, object] | None = None,
    **config: object,
) -> None:
    """A run with the metrics of `plain` and a config. Without `ids`, it is of an earlier version: no fingerprint of its text."""
    folder.mkdir(parents=True)
    lines = [json.loads(line) for line in (runs / "plain" / "metrics.jsonl").read_text().splitlines()]
    kept = [{name: value for name, value in line.items() if flops or name != "train/flops"} for line in lines]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept))
    result = {"config": {"data": {"source_language": "en"}, **config}, **({"data": {"valid": ids}} if ids else {})}
    result |= {"device": device, **(more or {})}
    (folder / "result.json").write_text(json.dumps(result))


def rows_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    """The names of the runs in the table, which a blank line ends."""
    assert done.returncode == 0, done.stderr
    _, *rows = done.stdout.partition("\n\n")[0].splitlines()
    return [Path(row.split()[0]).name for row in rows]


def test_scores_of_another_text_and_scores_that_are_measured_otherwise_are_left_out_and_named(runs, tmp_path):
    finished(tmp_path / "base", runs, "1")
    finished(tmp_path / "same", runs, "1", seed=2)
    finished(tmp_path / "other", runs, "2")
    finished(tmp_path / "early", runs, data={"source_language": "en", "max_tokens": 9, "directory": "x"})
    finished(tmp_path / "early_other", runs, data={"source_language": "de"})
    finished(tmp_path / "wider", runs, "1", evaluation={"valid_beam": 4})
    done = compare(runs, f"--baseline={tmp_path / 'base'}", f"--runs={tmp_path}/*")
    assert rows_of(done) == ["base", "early", "same"]
    said = {Path(line.split(" is left out: ")[0]).name: line for line in done.stderr.splitlines()}
    assert said.keys() == {"other", "early_other", "wider"}
    assert all("its validation bleu is of another text" in said[name] for name in ("other", "early_other"))
    assert "measured with valid_beam 4, and not with none, as the baseline's" in said["wider"]
    done = compare(runs, f"--baseline={tmp_path / 'base'}", f"--runs={tmp_path}/*", "--score=nll")
    assert rows_of(done) == ["base", "early", "same", "wider"], "the beam decides BLEU alone"


def test_an_axis_that_a_run_did_not_record_is_left_out_and_the_run_is_named(runs, tmp_path):
    finished(tmp_path / "base", runs, flops=False)
    finished(tmp_path / "new", runs)
    folders = (f"--baseline={tmp_path / 'new'}", f"--runs={tmp_path}/*")
    done = compare(runs, *folders, f"--picture={tmp_path}/x.svg")
    assert rows_of(done) == ["new", "base"] and "flops" not in done.stdout and "by updates" in done.stdout
    (sentence,) = done.stderr.splitlines()
    assert "operations (FLOPs)" in sentence and f"{tmp_path / 'base'} did not record it" in sentence
    done = compare(runs, *folders, f"--picture={tmp_path}/y.svg", "--axis=flops")
    assert done.returncode == 2 and f"{tmp_path / 'base'} did not record it" in done.stderr
    assert not (tmp_path / "y.svg").exists()


def test_what_cannot_be_compared_is_said(runs, tmp_path):
    """Seconds of two devices, a run whose training declared no areas because lines were missing, and a run that needs another one."""
    needs = {"key": "train.init_from", "path": "runs/a", "train_seconds": 7200.0, "train_flops": None}
    finished(tmp_path / "base", runs, more={"sources": [needs]})
    finished(tmp_path / "quick", runs, device="NVIDIA H100")
    finished(tmp_path / "gap", runs, more={"convergence": {}, "valid": {"select": "bleu"}})
    done = compare(runs, f"--baseline={tmp_path / 'base'}", f"--runs={tmp_path}/*")
    assert rows_of(done) == ["base", "quick"] and "by seconds" not in done.stdout and "by updates" in done.stdout
    assert "the axis of seconds of training is left out, because the runs had other devices" in done.stderr
    assert f"{tmp_path / 'gap'} is left out: it lacks lines of its metrics" in done.stderr
    assert "base begins with runs/a (2.00 h); that is not counted here" in done.stderr
    done = compare(runs, f"--baseline={tmp_path / 'gap'}", f"--runs={tmp_path}/*")
    assert done.returncode == 2 and "gap lacks lines of its metrics; give another baseline" in done.stderr


def test_a_run_that_is_named_by_two_paths_is_listed_once(runs, tmp_path):
    finished(tmp_path / "base", runs, "1")
    (tmp_path / "link").symlink_to(tmp_path / "base")
    done = compare(runs, f"--baseline={tmp_path}/link/../base", f"--runs={tmp_path}/*")
    assert rows_of(done) == ["base"]


def test_runs_are_found_where_a_report_finds_them(runs, tmp_path):
    """The folder of a sweep stands for its runs, and a collection for the runs in it, however deep they lie."""
    for name in ("a", "b"):
        finished(tmp_path / "all" / "sweep" / name, runs, "1", seed=len(name))
    (tmp_path / "all" / "sweep" / "sweep.json").write_text('{"runs": {}}')
    collect(f"{tmp_path}/all/**", tmp_path / "all.jsonl.zst")
    base = f"--baseline={tmp_path}/all/sweep/a"
    assert rows_of(compare(runs, base, f"--runs={tmp_path}/all/sweep")) == ["a", "b"]
    assert rows_of(compare(runs, base, f"--runs={tmp_path}/all/**")) == ["a", "b"]
    base = f"--baseline={tmp_path}/all.jsonl.zst/sweep/a"
    assert rows_of(compare(runs, base, f"--runs={tmp_path}/all.jsonl.zst")) == ["a", "b"]


@pytest.mark.parametrize(
    ("more", "said"), [(["--updates=20"], "by updates, T = 20 "), (["--flops=2.5e6"], "by flops, T = 2.5e+06 ")]
)
def test_t_is_given_or_the_end_of_the_shortest_run(runs, more, said):
    done = compare(runs, *more)
    assert done.returncode == 0 and said in done.stdout and "by seconds, T = 15 " in done.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"step": 1}\n{"step": 2, \n', "line 2 is damaged"),
        ("[]\n", "line 1 is damaged"),
        ('{"seconds": 1.0}\n', "it has no step"),
    ],
)
def test_a_damaged_line_is_named(runs, tmp_path, text, said):
    (tmp_path / "metrics.jsonl").write_text(text)
    done = compare(runs, f"--runs={tmp_path}")
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("more", "named"),
    [
        (["--picture=curves.pdf"], "'curves.pdf' must end in .svg"),
        (["--updates=0"], "'0' is not a number above 0"),
        (["--flops=nan"], "'nan' is not a number above 0"),
        (["--seconds=long"], "'long' is not a number above 0"),
        (["--axis=epochs"], "invalid choice: 'epochs'"),
        (["--score=f1"], "no validation score 'f1'"),
        (["--runs=/nowhere/*"], "matches no folder"),
    ],
)
def test_what_it_refuses(runs, more, named):
    done = compare(runs, *more)
    assert done.returncode == 2
    assert named in done.stderr and "Traceback" not in done.stderr

"""The command line with a run: what its modes do, and what is wrong with the run ends with one sentence and exit code 2."""

import io
import json
import os
import shutil
import signal
import sys
from types import SimpleNamespace

import pytest

from one_layer.tasks.translation.model import TranslationModel
from one_layer.training import trainer as training
from tests import tiny
from tests.training.test_train import disturbed

TOY = "--config=configs/toy.py"

pytestmark = pytest.mark.filterwarnings("ignore:coroutine")


@pytest.fixture
def workdir(tiny_run, tmp_path):
    """A copy, to be damaged."""
    shutil.copytree(tiny_run, tmp_path / "run")
    return tmp_path / "run"


def test_another_vocabulary_than_that_of_the_checkpoint_is_named(refused, workdir):
    path = workdir / "vocabulary.source.txt"
    path.write_text(path.read_text("utf-8").partition("\n")[2], "utf-8")
    assert "is not the source vocabulary that the checkpoint was trained with" in refused(*tiny.arguments(workdir))


def test_another_vocabulary_is_named_before_its_size_is_found_wrong(refused, workdir):
    """With one table for both sides, two vocabularies of other sizes would be said to need data.joined_vocabulary."""
    joined = {"data.joined_vocabulary": True, "model.shared_embedding": True}
    config = json.loads((workdir / "config.json").read_text("utf-8"))
    for key, value in joined.items():
        section, name = key.split(".")
        config[section][name] = value
    (workdir / "config.json").write_text(json.dumps(config), "utf-8")
    path = workdir / "vocabulary.source.txt"
    path.write_text(path.read_text("utf-8").partition("\n")[2], "utf-8")
    for command in (tiny.arguments(workdir, joined), ["--mode=translate", f"--workdir={workdir}"]):
        assert "restore the run's own file" in (said := refused(*command)) and "data.joined_vocabulary" not in said


@pytest.mark.slow
def test_a_run_becomes_longer_and_not_shorter_than_it_is(cli, refused, workdir, monkeypatch):
    """By updates or by epochs, of which the tiny run has 5 updates each. While it trains, it has no result, which would be an old one."""
    before = [(workdir / name).read_bytes() for name in ("config.json", "result.json")]
    for changes, end in (({"train.updates": 8}, 8), ({"train.updates": 0, "train.epochs": 2}, 10)):
        said = refused(*tiny.arguments(workdir, changes))
        assert (
            f"has done 12 updates already, but is to end after {end}; give train.updates (or train.epochs) of" in said
        )
    assert before == [(workdir / name).read_bytes() for name in ("config.json", "result.json")]
    ends = [workdir / "result.json", workdir / "ticket.safetensors"]
    there = []
    monkeypatch.setattr(training, "train_step", disturbed(lambda _: there.extend(path.exists() for path in ends)))
    epochs = tiny.arguments(workdir, {"train.updates": 0, "train.epochs": 3})
    for _ in range(2):  # the second time, nothing is left to do
        code, _, err = cli(*epochs)
        assert not code, err
        assert json.loads((workdir / "result.json").read_text("utf-8"))["steps"] == 15
    assert there == 6 * [False] and all(path.exists() for path in ends)


def test_what_a_killed_process_wrote_behind_the_last_checkpoint_is_no_part_of_a_run_that_is_over(cli, workdir):
    before = (workdir / "metrics.jsonl").read_text("utf-8"), (workdir / "result.json").read_text("utf-8")
    (workdir / "result.json").unlink()
    with (workdir / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"step": 14, "seconds": 99.0, "valid/nll": 0.1}\n')
    assert not cli(*tiny.arguments(workdir))[0]
    assert (workdir / "metrics.jsonl").read_text("utf-8") == before[0]
    ended, result = (json.loads(text) for text in (before[1], (workdir / "result.json").read_text("utf-8")))
    assert result["convergence"] == ended["convergence"]


def test_a_damaged_line_of_metrics_is_said_before_a_finished_run_is_scored_again(cli, workdir, monkeypatch):
    lines = (workdir / "metrics.jsonl").read_text("utf-8").split("\n")
    (workdir / "metrics.jsonl").write_text("\n".join([lines[0], lines[1][:9], *lines[2:]]), "utf-8")
    monkeypatch.setattr(TranslationModel, "score", lambda *_: pytest.fail("it scores"))
    code, _, err = cli(*tiny.arguments(workdir))
    assert code == 2 and "metrics.jsonl, line 2 is damaged" in err and "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mode=evaluate", "--checkpoint=average:99"], "holds 3 checkpoints"),
        (["--mode=translate", "--input=nowhere.txt"], "nowhere.txt does not exist"),
        (["--mode=evaluate", TOY, "--config.evaluation.beam=0"], "evaluation.beam is 0"),
        (["--mode=translate", TOY, "--config.model.keep=0.3"], "was trained with 0.5"),
        (["--mode=export", TOY], "--mode=export has no use for --config"),
        (["--mode=evaluate", "--n_best=2"], "--mode=evaluate has no use for --n_best"),
        (["--mode=translate", "--n_best=6", f"--input={__file__}"], "evaluation.beam=2 finds 1 to 2; give"),
        (["--mode=translate", "--n_best=0", f"--input={__file__}"], "0 translations of a line are asked for"),
    ],
)
def test_what_a_run_does_not_have(refused, workdir, arguments, message):
    assert message in refused(f"--workdir={workdir}", *arguments)


def test_overrides_are_kept_with_the_result(cli, workdir):
    """In either way of writing them; the run itself is finished, so nothing is trained."""
    code, *_ = cli(*tiny.arguments(workdir), "--config.train.patience", "9")
    assert not code
    overrides = json.loads((workdir / "result.json").read_text("utf-8"))["overrides"]
    assert {"config.train.patience=9", "config.model.d_model=16"} <= set(overrides)


def test_evaluate_uses_the_runs_search_unless_a_config_is_given(cli, workdir):
    """The files of another search have names of their own, so that the run's stay."""
    assert not cli("--mode=evaluate", f"--workdir={workdir}", "--split=valid")[0]
    assert '"beam": 2' in (workdir / "evaluation-valid.json").read_text("utf-8")
    before = tiny.contents(workdir)
    search = ["--config.evaluation.beam=1", "--config.evaluation.max_length_a=0", "--config.evaluation.max_length_b=12"]
    assert not cli("--mode=evaluate", f"--workdir={workdir}", "--split=valid", TOY, *search)[0]
    after = tiny.contents(workdir)
    (report,) = workdir.glob("evaluation-valid-best-beam-1*.json")
    assert '"beam": 1' in report.read_text("utf-8")
    assert {name: after[name] for name in before} == before


def test_translate_from_stdin(cli, workdir, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO("der hund schläft .\n\nja\n".encode())))
    code, out, _ = cli("--mode=translate", f"--workdir={workdir}")
    assert not code and len(out.split("\n")) == 4 and out.split("\n")[1] == ""


@pytest.mark.slow
def test_ctrl_c_ends_training_with_one_sentence_and_the_same_command_goes_on(cli, tiny_run, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(training, "train_step", disturbed(lambda n: n == 5 and signal.raise_signal(signal.SIGINT)))
        patched.setattr(os, "_exit", sys.exit)
        code, out, err = cli(*tiny.arguments(tmp_path))
    assert code == 128 + signal.SIGINT and out == "" and "Traceback" not in err
    assert err.endswith("interrupted after update 6, which is saved; the same command goes on from there\n")
    assert not cli(*tiny.arguments(tmp_path))[0]
    assert (tmp_path / "hypotheses-test.txt").read_bytes() == (tiny_run / "hypotheses-test.txt").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["materialized", "packed"])
def test_a_ticket_alone_scores_and_translates_as_its_checkpoint(cli, tiny_run, tmp_path, mode):
    """In a folder where there is nothing but the ticket that training left: no run, no vocabulary."""
    ticket = tmp_path / "alone" / "t.safetensors"
    ticket.parent.mkdir()
    shutil.copy(tiny_run / "ticket.safetensors", ticket)
    arguments = [f"--ticket={ticket}", f"--ticket_mode={mode}"]
    assert not cli("--mode=evaluate", *arguments, f"--workdir={tmp_path}", "--split=test")[0]
    scores = json.loads((tmp_path / "evaluation-test.json").read_text("utf-8"))
    result = json.loads((tiny_run / "result.json").read_text("utf-8"))
    assert {name: scores[name] for name in result["test"]["test"]} == result["test"]["test"]
    assert (tmp_path / "hypotheses-test.txt").read_bytes() == (tiny_run / "hypotheses-test.txt").read_bytes()
    assert scores["checkpoint"] == str(ticket) and scores["step"] == result["valid"]["step"]
    assert result["bytes"]["ticket_file"] == ticket.stat().st_size
    (tmp_path / "in.txt").write_text("der hund schläft .\n\nja\n", "utf-8")
    code, out, _ = cli("--mode=translate", *arguments, f"--input={tmp_path / 'in.txt'}")
    assert not code and len(best := out.split("\n")) == 4
    code, out, _ = cli("--mode=translate", *arguments, f"--input={tmp_path / 'in.txt'}", "--n_best=2")
    several = [line.split(" ||| ") for line in out.splitlines()]
    assert not code and [line for line, *_ in several] == ["0", "0", "1", "2", "2"]
    assert [several[place][1] for place in (0, 2, 3)] == best[:3]
    assert list(ticket.parent.iterdir()) == [ticket]


def test_a_checkpoint_is_exported_and_inspected(cli, workdir):
    path = workdir / "ticket.safetensors"
    before = path.read_bytes()
    path.unlink()
    code, *_ = cli("--mode=export", f"--workdir={workdir}", "--checkpoint=best")
    assert not code and path.read_bytes() == before
    code, out, _ = cli("--mode=inspect", f"--workdir={workdir}")
    assert not code and f"{len(before):,} bytes" in out and "decoder/cross_attention/query" in out

"""The command line with a run: what its modes do, and what is wrong with the run ends with one sentence and exit code 2."""

from __future__ import annotations

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


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return tiny.trained(tmp_path_factory)


@pytest.fixture
def workdir(finished, tmp_path):
    """A copy, to be damaged."""
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


MODES = {
    "train": lambda workdir: tiny.arguments(workdir),
    "translate": lambda workdir: ["--mode=translate", f"--workdir={workdir}", "--checkpoint=last", "--input=README.md"],
}


def cut(path):
    path.write_bytes(path.read_bytes()[:-9])


def another_vocabulary(path):
    path.write_text(path.read_text("utf-8").partition("\n")[2], "utf-8")


DAMAGE = {
    f"checkpoints/{tiny.UPDATES} cannot be restored": ("checkpoints/*/params/d/*", cut),
    "is not the source vocabulary that the checkpoint was trained with": ("vocabulary.source.txt", another_vocabulary),
    **{name: (name, cut) for name in ("config.json", "preprocessing.json", "vocabulary.target.txt")},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("said", DAMAGE)
def test_what_is_damaged_of_a_run_is_named(refused, workdir, mode, said):
    pattern, damage = DAMAGE[said]
    for path in workdir.glob(pattern):
        damage(path)
    assert said in refused(*MODES[mode](workdir))


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
        (["--mode=export", TOY, "--config.optim.lr=1"], "--mode=export has no use for --config.optim.lr"),
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
def test_ctrl_c_ends_training_with_one_sentence_and_the_same_command_goes_on(cli, finished, tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(training, "train_step", disturbed(lambda n: n == 5 and signal.raise_signal(signal.SIGINT)))
        patched.setattr(os, "_exit", sys.exit)
        code, out, err = cli(*tiny.arguments(tmp_path))
    assert code == 128 + signal.SIGINT and out == "" and "Traceback" not in err
    assert err.endswith("interrupted after update 6, which is saved; the same command goes on from there\n")
    assert not cli(*tiny.arguments(tmp_path))[0]
    assert (tmp_path / "hypotheses-test.txt").read_bytes() == (finished / "hypotheses-test.txt").read_bytes()


@pytest.mark.slow
def test_a_run_that_diverges_ends_with_one_sentence(cli, tmp_path):
    """The rate of the first update leaves weights for which no loss is finite."""
    wild = {"model.weights": "dense", "optim.lr": 1e18, "optim.warmup": 0, "train.evaluate_every": 12}
    code, out, err = cli(*tiny.arguments(tmp_path, wild))
    assert code == 2 and out == "" and "Traceback" not in err
    assert "not finite in 10 updates in a row (2 to 11), and none of these was applied" in err.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["materialized", "packed"])
def test_a_ticket_alone_scores_and_translates_as_its_checkpoint(cli, finished, tmp_path, mode):
    """In a folder where there is nothing but the ticket that training left: no run, no vocabulary."""
    ticket = tmp_path / "alone" / "t.safetensors"
    ticket.parent.mkdir()
    shutil.copy(finished / "ticket.safetensors", ticket)
    arguments = [f"--ticket={ticket}", f"--ticket_mode={mode}"]
    assert not cli("--mode=evaluate", *arguments, f"--workdir={tmp_path}", "--split=test")[0]
    scores = json.loads((tmp_path / "evaluation-test.json").read_text("utf-8"))
    result = json.loads((finished / "result.json").read_text("utf-8"))
    assert {name: scores[name] for name in result["test"]["test"]} == result["test"]["test"]
    assert (tmp_path / "hypotheses-test.txt").read_bytes() == (finished / "hypotheses-test.txt").read_bytes()
    assert scores["checkpoint"] == str(ticket) and scores["step"] == result["valid"]["step"]
    assert result["bytes"]["ticket_file"] == ticket.stat().st_size
    (tmp_path / "in.txt").write_text("der hund schläft .\n\nja\n", "utf-8")
    code, out, _ = cli("--mode=translate", *arguments, f"--input={tmp_path / 'in.txt'}")
    assert not code and len(out.split("\n")) == 4
    assert list(ticket.parent.iterdir()) == [ticket]


def test_a_checkpoint_is_exported_and_inspected(cli, workdir):
    path = workdir / "ticket.safetensors"
    before = path.read_bytes()
    path.unlink()
    code, *_ = cli("--mode=export", f"--workdir={workdir}", "--checkpoint=best")
    assert not code and path.read_bytes() == before
    code, out, _ = cli("--mode=inspect", f"--workdir={workdir}")
    assert not code and f"{len(before):,} bytes" in out and "decoder/cross_attention/query" in out


@pytest.mark.parametrize("mode", ["evaluate", "inspect"])
def test_a_ticket_that_is_cut_short_is_refused(refused, workdir, mode):
    path = workdir / "ticket.safetensors"
    path.write_bytes(path.read_bytes()[:-9])
    assert f"the ticket {path} cannot be used: " in refused(f"--mode={mode}", f"--ticket={path}")

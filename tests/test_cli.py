"""The command line: what a user gets wrong ends with one sentence and exit code 2, and nothing was touched."""

from __future__ import annotations

import io
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
from absl import flags
from absl.testing import flagsaver

import main
import one_layer
from one_layer import __main__ as command
from one_layer.errors import UserError
from one_layer.training import train as training
from one_layer.training.step import train_step
from tests import ROOT, tiny
from tests.test_docs import each_command

TOY, MULTI30K = "--config=configs/toy.py", "--config=configs/multi30k.py"
FILES = {"train.de": "ein\nzwei\ndrei\n", "train.en": "one\ntwo\nthree\n", "valid.de": "ein\n", "valid.en": "one\n"}
FILES |= {"test.de": "drei\n", "test.en": "three\n"}


# ml_collections loads a config in a way that Python is about to drop.
pytestmark = pytest.mark.filterwarnings("ignore:the load_module", "ignore:coroutine")
PARTS = ("train", "valid", "test")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return tiny.trained(tmp_path_factory)


@pytest.fixture
def workdir(finished, tmp_path):
    """A copy, to be damaged."""
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def cli(monkeypatch, capsys):
    """Calls main.py in this process. Returns its exit code and what it wrote to stdout and stderr."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)  # main.py sets its own
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", os.environ.get("JAX_COMPILATION_CACHE_DIR", ""))
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["main.py", *map(str, arguments)])
        with flagsaver.flagsaver(), pytest.raises(SystemExit) as caught:
            main.run()
        return (caught.value.code, *capsys.readouterr())

    return call


@pytest.fixture
def refused(cli, tmp_path):
    """Calls main.py, makes sure that it refuses and touches nothing, and returns the sentence."""

    def call(*arguments):
        before = tiny.contents(tmp_path)
        code, out, err = cli(*arguments)
        assert code == 2 and out == "" and "Traceback" not in err
        sentence, end = err.split("\n")
        assert sentence.startswith("error: ") and end == ""
        assert tiny.contents(tmp_path) == before
        return sentence

    return call


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--config is missing; give one of configs/"),
        (["--config.data.seed=1"], "--config.data.seed needs --config; give one of configs/"),
        ([TOY, "extra"], "unexpected argument 'extra'"),
        ([TOY, "--mdoe=train"], "Unknown command line flag 'mdoe'. Did you mean: mode"),
        (
            [TOY, "--mode=tarin"],
            "--mode=tarin is unknown; known are train, evaluate, export, inspect, report, keys, translate, classify",
        ),
        (
            ["--config=configs/toyy.py"],
            "the config cannot be loaded: [Errno 2] No such file or directory: 'configs/toyy.py'",
        ),
        ([TOY + ":sparse"], "configs/toy.py:sparse is unknown; give one of one_layer, multi_layer, dense"),
        ([MULTI30K + ":dense_huge"], "give best, table, or dense_, one_layer_ or multi_layer_ and one of tiny"),
        ([MULTI30K], "data.directory is empty: give the folder with the parallel text files"),
        ([TOY, "--config.model.kep=0.3"], "unknown config key 'kep'; did you mean 'keep'?"),
        ([TOY, "--config.modell.keep=0.3"], "unknown config key 'modell'; did you mean 'model'?"),
        ([TOY, "--config.train.zzqx=1"], "unknown config key 'zzqx'; configs/common.py declares all keys"),
        ([TOY, "--config.train.updates=many"], "--config.train.updates=many: invalid literal for int()"),
        (
            [TOY, "--config.model.keep=0"],
            "model.keep is 0.0; it must lie in (0, 1]",
        ),
        (
            [TOY, "--config.model.keep=1.5"],
            "model.keep is 1.5; it must lie in (0, 1]",
        ),
        ([TOY, "--config.model.heads=3"], "model.heads is 3, which does not divide model.d_model"),
        ([TOY, "--config.seed=-1"], "seed is -1"),
        (
            [TOY, "--config.model.embedding_path=nowhere.txt", *(f"--config.data.toy_{part}=9" for part in PARTS)],
            "nowhere.txt does not exist",
        ),
        (["--mode=evaluate"], "holds no run: there is no config.json"),
        (["--mode=report"], "--runs is missing; give the folders of runs, as a pattern"),
        ([TOY, "--process=1"], "--processes and --process need --distributed=HOST:PORT"),
        (["--mode=translate"], "holds no run: there is no config.json"),
    ],
)
def test_what_cannot_be_asked_for(refused, tmp_path, arguments, message):
    assert message in refused(f"--workdir={tmp_path / 'new'}", *arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "needs --processes, the number of processes (2 or more)"),
        (["--processes=2", "--mode=translate"], "--mode=translate has no use for --distributed; leave it out"),
    ],
)
def test_one_of_several_processes_ends_at_once(refused, monkeypatch, tmp_path, arguments, message):
    monkeypatch.setattr(os, "_exit", sys.exit)  # the test's process goes on, and so does its log
    monkeypatch.setattr(logging, "shutdown", lambda: None)
    assert message in refused(f"--workdir={tmp_path / 'new'}", TOY, "--distributed=localhost:1", *arguments)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def get_config(:", "SyntaxError: invalid syntax (own.py, line 1)"),
        ("1/0", "ZeroDivisionError: division by zero (own.py, line 1)"),
        ("def get_config():\n    raise RuntimeError('a\\nb')", "RuntimeError: a b (own.py, line 2)"),
        ("def get_config():\n    return {}['lr']", "KeyError: 'lr' (own.py, line 2)"),
        ("import nowhere_else", "ModuleNotFoundError: No module named 'nowhere_else' (own.py, line 1)"),
        ("def get_config():\n    return [].lr", "AttributeError: 'list' object has no attribute 'lr' (own.py, line 2)"),
    ],
)
def test_an_own_config_that_cannot_be_loaded(refused, tmp_path, source, message):
    """`--config FILE` and `--config=FILE` are the same flag."""
    path = tmp_path / "own.py"
    path.write_text(f"{source}\n")
    for words in ([f"--config={path}"], ["--config", path]):
        assert refused(*words, "--mode=keys") == f"error: the config {path} cannot be loaded: {message}"


@pytest.mark.parametrize(("returned", "shown"), [("None", "None"), ("{'seed': 1}", "{'seed': 1}")])
def test_an_own_config_returns_a_config(refused, tmp_path, returned, shown):
    path = tmp_path / "own.py"
    path.write_text(f"def get_config():\n    return {returned}\n")
    assert f"get_config of {path} returns {shown}, which is no ConfigDict" in refused(f"--config={path}", "--mode=keys")


def test_an_error_of_types_in_an_own_config_says_where(refused, tmp_path):
    path = tmp_path / "own.py"
    path.write_text("def get_config():\n    return 'a' + 1\n")
    assert refused(f"--config={path}", "--mode=keys").endswith('(not "int") to str (own.py, line 2)')


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mode=inspect", "--ticket=nowhere"], "the ticket nowhere cannot be used: there is no such file"),
        ([TOY, "--mode=train", "--ticket=x"], "--mode=train has no use for --ticket; leave it out"),
        (["--mode=export", "--ticket=x"], "--mode=export has no use for --ticket; leave it out"),
        (["--mode=keys", "--runs=x"], "--mode=keys has no use for --runs; leave it out"),
        (
            ["--mode=classify", "--ticket=x", "--precision=int4"],
            "--mode=classify has no use for --precision; leave it out",
        ),
        (["--mode=translate", "--ticket=x", "--split=test"], "--mode=translate has no use for --split; leave it out"),
        (["--mode=translate", "--ticket=x", "--checkpoint=best"], "--checkpoint has no effect beside --ticket"),
        (["--mode=inspect", "--ticket=x", "--workdir=x"], "--workdir has no effect beside --ticket"),
        (["--mode=translate", "--workdir=x", "--ticket_mode=packed"], "--ticket_mode needs --ticket"),
        (
            ["--mode=evaluate", "--ticket=x", TOY, "--config.mesh.model=3"],
            "--config.mesh.model has no effect beside --ticket",
        ),
    ],
)
def test_an_option_without_effect_is_refused(refused, arguments, message):
    assert message in refused(*arguments)


def test_every_flag_is_used_by_a_mode():
    own = {flag.name for flag in flags.FLAGS.flags_by_module_dict()["one_layer.__main__"]} - {"mode"}
    assert own - {name for name in own if name.startswith("config.")} == set(command._FLAGS)


def test_no_command_of_the_documents_has_an_option_without_effect():
    for words in each_command():
        if any(word.endswith(("main.py", "one_layer")) for word in words):
            given = dict(word[2:].partition("=")[::2] for word in words if word.startswith("--"))
            command._check_flags(given.pop("mode", "train"), [name for name in given if not name.startswith("config.")])


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("ticket.safetensors", {"checkpoint": "best"}, "checkpoint='best' is for the folders of runs"),
        ("", {"packed": True}, "packed=True is for tickets"),
    ],
)
def test_an_argument_of_load_without_effect_is_refused(tmp_path, name, arguments, message):
    with pytest.raises(UserError, match=message):
        one_layer.load(tmp_path / name, **arguments)


def test_a_folder_is_needed(refused, tmp_path):
    assert "--workdir is missing" in refused(TOY)
    (tmp_path / "file").write_text("")
    assert "is a file" in refused(TOY, f"--workdir={tmp_path / 'file'}")
    for place, reason in (("file/sub", "Not a directory"), ("x" * 300, "File name too long")):
        assert f"{place}: {reason}; give a folder" in refused(*tiny.arguments(tmp_path / place))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train.en", None, "train.en does not exist"),
        ("test.de", None, "test.de does not exist"),
        ("valid.de", b"", "valid.de is empty"),
        ("train.en", b"one\ntwo\n", "train.de has 3 lines, but"),
        ("train.en", b"one\ntwo\n", "train.en has 2; give parallel files"),
        ("valid.en", b"one\ntwo\n", "valid.en has 2"),
        ("train.de", b"ein\nzw\xe4i\ndrei\n", "train.de, line 2: the byte 0xe4 is not UTF-8"),
        ("train.de.gz", b"\x1f\x8b\x08", "train.de.gz is not a whole gzip file"),
        ("train.en", b"\n\n\n", "no token occurs"),
    ],
)
def test_text_that_cannot_be_trained_on(refused, tmp_path, name, content, message):
    """The folder of the run is not even made, so that the mended command finds it free."""
    for file, text in FILES.items():
        (tmp_path / file).write_text(text)
    if name == "train.de.gz" or content is None:
        (tmp_path / name.removesuffix(".gz")).unlink()
    if content is not None:
        (tmp_path / name).write_bytes(content)
    text = [f"--config.data.{key}={value}" for key, value in {"source": "text", "directory": tmp_path}.items()]
    assert message in refused(TOY, f"--workdir={tmp_path / 'new'}", *text)
    assert not (tmp_path / "new").exists()


def test_vocabularies_that_cannot_be_shared(refused, tmp_path):
    shared = {"model.shared_embedding": True}
    assert "set data.joined_vocabulary" in refused(*tiny.arguments(tmp_path / "new", shared))


def test_another_configs_folder(refused, workdir):
    sentence = refused(*tiny.arguments(workdir, {"model.keep": 0.3, "optim.lr": 0.02}))
    assert "model.keep: 0.5 there, 0.3 here; optim.lr: 0.01 there, 0.02 here" in sentence


MODES = {
    "train": lambda workdir: tiny.arguments(workdir),
    "evaluate": lambda workdir: ["--mode=evaluate", f"--workdir={workdir}", "--checkpoint=last"],
    "translate": lambda workdir: ["--mode=translate", f"--workdir={workdir}", "--checkpoint=last", "--input=README.md"],
}


@pytest.mark.parametrize("mode", MODES)
def test_a_checkpoint_cut_short(refused, workdir, mode):
    for data in (workdir / "checkpoints").glob("*/params/d"):
        for path in data.iterdir():
            path.write_bytes(path.read_bytes()[:100])
    assert f"checkpoints/{tiny.UPDATES} cannot be restored" in refused(*MODES[mode](workdir))


@pytest.mark.parametrize("mode", MODES)
def test_a_vocabulary_that_does_not_fit(refused, workdir, mode):
    path = workdir / "vocabulary.source.txt"
    path.write_text(path.read_text("utf-8").partition("\n")[2], "utf-8")
    assert "is not the source vocabulary that the checkpoint was trained with" in refused(*MODES[mode](workdir))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["config.json", "preprocessing.json", "vocabulary.target.txt"])
def test_a_damaged_file_of_the_run(refused, workdir, mode, name):
    path = workdir / name
    path.write_bytes(path.read_bytes()[:-9])
    assert name in refused(*MODES[mode](workdir))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mode=evaluate", "--checkpoint=newest"], "--checkpoint='newest' is unknown"),
        (["--mode=evaluate", "--checkpoint=7"], "there is no checkpoint of step 7"),
        (["--mode=evaluate", "--checkpoint=average:99"], "holds 3 checkpoints"),
        (["--mode=evaluate", "--split=tset"], "--split='tset' is unknown; this run has valid, test"),
        (["--mode=translate", "--input=nowhere.txt"], "nowhere.txt does not exist"),
        (["--mode=evaluate", TOY, "--config.evaluation.beam=0"], "evaluation.beam is 0"),
        (["--mode=translate", TOY, "--config.model.keep=0.3"], "was trained with 0.5"),
        (["--mode=export", TOY, "--config.optim.lr=1"], "--mode=export has no use for --config.optim.lr"),
    ],
)
def test_what_a_run_does_not_have(refused, workdir, arguments, message):
    assert message in refused(f"--workdir={workdir}", *arguments)


def test_the_keys_of_a_config_are_printed(cli):
    code, out, _ = cli("--mode=keys", f"{TOY}:dense")
    assert not code and "--config.model.weights=dense\n" in out and "--config.mesh.model=1\n" in out


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


@pytest.mark.parametrize("mode", ["inspect", "translate"])
def test_a_reader_that_stops_reading_ends_it_in_silence(cli, finished, monkeypatch, mode):
    """As `| head -1` does."""
    reading, writing = os.pipe()
    os.close(reading)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"ja\n")))
    monkeypatch.setattr(sys, "stdout", os.fdopen(writing, "w"))
    code, _, err = cli(f"--mode={mode}", f"--ticket={finished / 'ticket.safetensors'}")
    assert code == 128 + signal.SIGPIPE and err == ""
    sys.stdout.close()


@pytest.mark.slow
def test_ctrl_c_ends_training_with_one_sentence_and_the_same_command_goes_on(cli, finished, tmp_path, monkeypatch):
    def made(*given):
        step = train_step(*given)

        def pressed(params, moments, fixed, batch, number):
            if number == 5:
                signal.raise_signal(signal.SIGINT)
            return step(params, moments, fixed, batch, number)

        return pressed

    with monkeypatch.context() as patched:
        patched.setattr(training, "train_step", made)
        patched.setattr(os, "_exit", sys.exit)
        code, out, err = cli(*tiny.arguments(tmp_path))
    assert code == 128 + signal.SIGINT and out == "" and "Traceback" not in err
    assert err.endswith("interrupted after update 6, which is saved; the same command goes on from there\n")
    assert not cli(*tiny.arguments(tmp_path))[0]
    assert (tmp_path / "hypotheses-test.txt").read_bytes() == (finished / "hypotheses-test.txt").read_bytes()


@pytest.mark.slow
def test_a_run_that_diverges_ends_with_the_command_that_repeats_it(cli, tmp_path):
    """The rate of the first update leaves weights for which no loss is finite."""
    wild = {"model.weights": "dense", "optim.lr": 1e18, "optim.warmup": 0, "train.max_nonfinite": 2}
    for _ in range(2):
        code, out, err = cli(*tiny.arguments(tmp_path, wild))
        assert code == 2 and out == "" and "Traceback" not in err
        sentence = err.rstrip("\n").rpartition("\n")[2]
        assert "not finite in 2 updates in a row (2 to 3), and none of these was applied" in sentence
        assert "The checkpoint of update 1 is kept, and repeats them: " in sentence
        assert sentence.endswith(f"--workdir={tmp_path} " + " ".join(tiny.arguments(tmp_path, wild)[2:]))


@pytest.mark.slow
@pytest.mark.parametrize("damaged", [False, True])
def test_a_process_of_its_own(workdir, damaged):
    """Translating through a pipe, in a locale that knows no umlauts; and a damaged checkpoint."""
    if damaged:
        shutil.rmtree(workdir / "checkpoints" / str(tiny.UPDATES) / "params" / "d")
    command = [sys.executable, "main.py", "--mode=translate", f"--workdir={workdir}", "--checkpoint=last"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "JAX_PLATFORMS": "cpu"}
    text = "der hund schläft .\n\nja\n".encode()
    done = subprocess.run(command, cwd=ROOT, env=environment, input=text, capture_output=True, timeout=300)
    if damaged:
        assert done.returncode == 2 and done.stdout == b""
        assert done.stderr.startswith(b"error: ") and done.stderr.count(b"\n") == 1
    else:
        assert done.returncode == 0 and done.stdout.count(b"\n") == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--mode=inspect", "--ticket={}/ticket.safetensors"], 0, "decoder/ffn/in"),
        (["--mode=inspect", "--ticket={}/nïcht"], 2, "rün/nïcht cannot be used: there is no such file"),
        (["--mode=translate", "--workdir={}", "--input={}/eingäbe", "--output={}/aüs"], 0, ""),
    ],
)
def test_paths_with_umlauts_in_a_locale_without(workdir, tmp_path, arguments, code, said):
    """Python then has ASCII for paths and for stdout."""
    folder = workdir.rename(tmp_path / "rün")
    (folder / "eingäbe").write_text("ja\n", "utf-8")
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "main.py", *(argument.format(folder) for argument in arguments)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=300, encoding="utf-8")
    assert done.returncode == code and "Traceback" not in done.stderr, done.stderr
    assert said in done.stdout + done.stderr
    assert (folder / "aüs").exists() == (code == 0 and not said)


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


@pytest.mark.parametrize("mode", ["evaluate", "translate", "inspect"])
def test_a_ticket_that_is_cut_short_is_refused(refused, workdir, mode):
    path = workdir / "ticket.safetensors"
    path.write_bytes(path.read_bytes()[:-9])
    assert f"the ticket {path} cannot be used: " in refused(f"--mode={mode}", f"--ticket={path}")

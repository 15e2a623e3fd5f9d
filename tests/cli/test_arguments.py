"""What a user gets wrong before there is a run ends with one sentence and exit code 2, and nothing was touched."""

import logging
import os
import sys

import pytest

import one_layer
import one_layer.__main__
from configs import common
from one_layer.cli import modes
from one_layer.cli.given import Given
from one_layer.cli.overrides import keys_given
from one_layer.commands import COMMANDS
from one_layer.data.config import DataConfig
from one_layer.runs.paths import RunPaths
from one_layer.runs.records import flatten, record
from tests import ROOT, tiny, user_error
from tests.documents import each_command

TOY = "--config=configs/toy.py"
PARTS = ("train", "valid", "test")

pytestmark = pytest.mark.filterwarnings("ignore:coroutine")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "--config is missing; give one of configs/"),
        (["--config.data.seed=1"], "--config.data.seed=1 needs --config; give one of configs/"),
        ([TOY, "extra"], "unexpected argument 'extra'"),
        ([TOY, TOY], "--config is given more than once; give it once"),
        (
            ["--runs=a", "--mode=report", "--runs=b"],
            "--runs is given more than once; give it once; a folder, or a pattern",
        ),
        ([TOY, "--mdoe=train"], "--mdoe is unknown; did you mean --mode?"),
        ([TOY, "-mode=train"], "-mode is unknown; did you mean --mode?"),
        (["--mode=keys", "--config="], "--config is empty, as an unset variable of the shell is; give its value, or"),
        (["--mode=evaluate", "--ticket="], "--ticket is empty"),
        (["--mode=evaluate", "--split", ""], "--split is empty"),
        (
            [TOY, "--mode=tarin"],
            "--mode=tarin is unknown; known are train, evaluate, export, page, inspect, report, collect, keys, translate, classify",
        ),
        (["--config=configs/toyy.py"], "--config=configs/toyy.py does not exist; did you mean configs/toy.py?"),
        ([TOY + ":sparse"], "configs/toy.py:sparse is unknown; give one of one_layer, multi_layer, dense"),
        ([TOY, "--config.model.kep=0.3"], "unknown key model.kep in the config; did you mean model.keep?"),
        ([TOY, "--config.data.dir=here"], "unknown key data.dir in the config; did you mean data.directory?"),
        ([TOY, "--config.seed"], "--config.seed has no value; give it as --config.seed=VALUE"),
        ([TOY, "--gpu"], "--gpu is unknown, and not needed: what JAX finds is used"),
        ([TOY, "--device=cuda"], "--device is unknown, and not needed: what JAX finds is used"),
        ([TOY, "--config.model.pruned=0.3"], "the key model.pruned is gone; version 0.3.0 is the last that reads it"),
        ([TOY, "--config.modell.keep=0.3"], "unknown key modell.keep in the config; did you mean model.keep?"),
        ([TOY, "--config.train.zzqx=1"], "unknown key train.zzqx in the config; configs/common.py declares all keys"),
        ([TOY, "--config.train.updates=many"], "--config.train.updates=many: it takes a whole number"),
        ([TOY, "--config.train.updates=2.5"], "--config.train.updates=2.5: it takes a whole number"),
        ([TOY, "--config.optim.lr=fast"], "--config.optim.lr=fast: it takes a number"),
        ([TOY, "--config.data.lowercase=yes"], "--config.data.lowercase=yes: it takes True or False"),
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
        (
            ["--processes=2", "--mode=evaluate", "--engine=ctranslate2"],
            "--engine=ctranslate2 searches on the cores of one machine, and not in several processes; leave --distributed out",
        ),
    ],
)
def test_one_of_several_processes_ends_at_once(refused, monkeypatch, tmp_path, arguments, message):
    monkeypatch.setattr(os, "_exit", sys.exit)  # the test's process goes on, and so does its log
    monkeypatch.setattr(logging, "shutdown", lambda: None)
    assert message in refused(f"--workdir={tmp_path / 'new'}", TOY, "--distributed=localhost:1", *arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["swep", TOY], "unexpected argument 'swep'; did you mean sweep?"),
        (["train", TOY], "unexpected argument 'train'; did you mean --mode=train?"),
        (["x", TOY], "'x'; give every option as --name=value, and a command, if any, as the first word: sweep,"),
        (["--mode=keys", "extra"], "unexpected argument 'extra'"),
        (["--mode=inspect", "--ticket=nowhere"], "the ticket nowhere cannot be used: there is no such file"),
        ([TOY, "--mode=train", "--ticket=x"], "--mode=train has no use for --ticket; leave it out"),
        (
            ["--mode=export", "--ticket=x"],
            "--ticket is for --format=ctranslate2 and huggingface; without --format, the ticket of a run is",
        ),
        (
            ["--mode=export", "--workdir=x", "--output=y"],
            "--output is for --format=ctranslate2 and huggingface; without --format",
        ),
        (
            ["--mode=export", "--workdir=x", "--format=ctranslate2"],
            "--output is missing; give a new folder for --format",
        ),
        (
            ["--mode=export", "--format=ctranslate2", "--output=y"],
            "--workdir is missing; give the folder of the run, or a ticket",
        ),
        (["--mode=page", "--ticket=x"], "--output is missing; give the file of the page"),
        (["--mode=page", "--output=x"], "--workdir is missing; give the folder of the run, or a ticket"),
        (["--mode=keys", "--runs=x"], "--mode=keys has no use for --runs; leave it out"),
        (["--mode=collect", "--runs=x"], "--output is missing; --mode=collect needs --runs=PATTERN"),
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


@pytest.mark.parametrize(
    ("stream", "arguments", "message"),
    [
        ("stdin", ["--mode=translate"], "stdin is closed; pipe lines into it"),
        ("stdout", ["--mode=translate"], "stdout is closed; leave it open"),
        ("stdout", ["--mode=keys"], "stdout is closed; leave it open"),
    ],
)
def test_a_closed_stream_is_one_sentence(cli, monkeypatch, stream, arguments, message):
    monkeypatch.setattr(sys, stream, None)
    ticket = [f"--ticket={ROOT / 'tickets' / 'multi30k-en-de.safetensors'}"] * ("--mode=translate" in arguments)
    code, _, err = cli(*arguments, *ticket)
    assert code == 2 and message in err and "Traceback" not in err


@pytest.mark.parametrize(
    ("output", "reason"), [("nowhere/x.txt", "there is no folder"), (".", "is a folder; give a file")]
)
def test_an_output_that_cannot_be_written_is_refused_before_anything_else(refused, output, reason):
    assert reason in refused("--mode=translate", "--ticket=not-even-read", f"--output={output}")


def test_scores_that_cannot_be_written_are_refused_before_anything_else(refused, tmp_path):
    (tmp_path / "file").touch()
    said = refused("--mode=evaluate", "--ticket=not-even-read", f"--workdir={tmp_path / 'file'}")
    assert f"--workdir={tmp_path / 'file'} is a file; give the name of a folder" in said


def test_a_ticket_whose_text_is_not_there_says_which_keys_give_another(refused):
    said = refused("--mode=evaluate", f"--ticket={ROOT / 'tickets' / 'multi30k-en-de.safetensors'}")
    assert "test2016.en does not exist" in said
    assert "give the run's --config, --config.data.directory=FOLDER, and the names" in said
    assert "as --config.data.tests=NAME,NAME" in said


def test_a_folder_and_a_device_are_no_tickets(refused, tmp_path):
    assert "it is a folder; give the ticket in it" in refused("--mode=inspect", f"--ticket={tmp_path}")
    assert "a pipe or a device" in refused("--mode=inspect", "--ticket=/dev/null")


def test_a_setting_that_a_ticket_could_not_hold_is_refused_before_training(refused, tmp_path):
    said = refused(TOY, f"--workdir={tmp_path / 'new'}", f"--config.model.encoder_layers={'S' * 1001}")
    assert "no ticket could be written of this run: model.encoder_layers is 'SSS" in said
    assert (
        "; a ticket's settings are numbers up to 2**40, texts of at most 1,000 characters" in said and len(said) < 600
    )
    assert "copy it again" not in said


def test_the_help_names_every_command():
    assert all(f" {name}" in one_layer.__main__.__doc__.replace("\n", " ") for name in COMMANDS)


def test_every_option_is_used_by_a_mode():
    assert sorted(vars(Given.by([]).options).keys() - {"mode", "version"}) == modes.NAMES


def test_every_path_of_the_command_and_of_a_config_may_begin_in_the_home_folder(cli, monkeypatch, tmp_path):
    """No folder called ~ is made, whichever flag or key has the path, and whether it is from the command line or the config's file."""
    monkeypatch.setenv("HOME", str(tmp_path))
    here = common.get_config().to_dict()
    keys = [name for name, value in flatten(here).items() if isinstance(value, str) and name != "data.delimiter"]
    names = ["workdir", "ticket", "note", "checkpoint", "split", "input", "output", "runs"]
    found = {}

    def look(words):
        given = Given.by(words)
        found.update(vars(given.options) | {"ticket": given.ticket} | flatten(given.config))
        sys.exit(0)

    monkeypatch.setattr(one_layer.__main__, "main", look)
    assert {"data.directory", "train.init_from"} <= set(keys)
    words = [f"--{name}=~/x" for name in names] + [f"--config.{name}=~/x" for name in keys]
    assert cli("--config=configs/common.py", *words, "--config.data.tests=('~/x',)")[0] == 0
    assert {name: found[name] for name in (*names, *keys)} == dict.fromkeys((*names, *keys), f"{tmp_path}/x")
    own = {"directory": "~/corpora", "train": "a", "tests": ("~/b", "c"), "source": "plain", "store": "~root/x"}
    data = record(DataConfig, "data", own)
    assert (data.directory, data.tests) == (f"{tmp_path}/corpora", (f"{tmp_path}/b", "c")) and data.store[0] == "/"
    assert RunPaths("~/run").path == tmp_path / "run" and RunPaths("~").path == tmp_path and str(RunPaths("")) == "."
    with user_error(f"{tmp_path}/none"):
        one_layer.load("~/none")


def test_no_command_of_the_documents_has_an_option_without_effect():
    for words in each_command():
        if any(word.endswith(("main.py", "one_layer")) for word in words) and not set(words) & set(COMMANDS):
            options = [TOY if word.startswith("--config=") else word for word in words if word.startswith("--")]
            modes.chosen(Given.by([word for word in options if not keys_given([word])]))


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("ticket.safetensors", {"checkpoint": "best"}, "checkpoint='best' is for the folders of runs"),
        ("", {"packed": True}, "packed=True is for tickets"),
    ],
)
def test_an_argument_of_load_without_effect_is_refused(tmp_path, name, arguments, message):
    with user_error(message):
        one_layer.load(tmp_path / name, **arguments)


def test_a_folder_is_needed(refused, tmp_path):
    for words in (["--mode=train", TOY], ["--mode=export"]):
        assert "--workdir is missing; give the folder of the run\n" in refused(*words) + "\n"
    assert "--workdir is missing" in refused("--mode=report", "--runs=x")
    for mode in ("inspect", "translate", "evaluate"):
        assert "give the folder of the run, or a ticket as --ticket=FILE" in refused(f"--mode={mode}")
    (tmp_path / "file").write_text("")
    assert "is a file" in refused(TOY, f"--workdir={tmp_path / 'file'}")
    for place, reason in (("file/sub", "Not a directory"), ("x" * 300, "File name too long")):
        assert f"{place}: {reason}; give a folder" in refused(*tiny.arguments(tmp_path / place))


def test_text_that_cannot_be_trained_on_leaves_no_folder(refused, tmp_path):
    """The mended command finds it free."""
    text = ["--config.data.source=text", f"--config.data.directory={tmp_path}"]
    assert "train.de does not exist" in refused(TOY, f"--workdir={tmp_path / 'new'}", *text)
    assert not (tmp_path / "new").exists()


def test_the_version_is_printed(cli):
    code, out, err = cli("--version")
    assert not code and out == f"{one_layer.__version__}\n" and not err

"""The command that converts a fairseq checkpoint into a run folder."""

import argparse
import json
import os
import sys

import numpy as np
import pytest

from one_layer.commands import import_fairseq
from one_layer.importers.fairseq import convert
from one_layer.models import ModelConfig
from one_layer.runs.evaluate import evaluate
from one_layer.runs.folder import RunFolder
from one_layer.runs.restore import restore_run
from tests import tiny, user_error
from tests.fairseq_states import MASKED, OPTIONS, state_of
from tests.trees import same_bits

WORDS = {"de": ["ein", "hund", "schl@@", "äft"], "en": ["a", "dog", "sleeps", "cat", "the"]}
SMALL = {"d_model": 8, "ffn": 12, "heads": 2, "encoder_layers": 2, "decoder_layers": 2}
CONFIG = ModelConfig(4 + 4 + 1, 4 + 5 + 1, **SMALL, dropout=0.3)
DENSE = CONFIG.replace(weights="dense")
STATES = {config: state_of(config) for config in (CONFIG, DENSE)}
TEXT = {"valid": [("ein hund", "a dog")], "test": [("ein hund schl@@ äft", "a dog sleeps"), ("hund ein", "dog a")]}


@pytest.fixture
def files(tmp_path):
    """Writes dictionaries and text as fairseq's preprocessing does."""
    for language, words in WORDS.items():
        lines = [f"{word} {9 - place}\n" for place, word in enumerate(words)]
        (tmp_path / f"dict.{language}.txt").write_text("".join(lines) + "madeupword0000 0\n", "utf-8")
    for name, pairs in TEXT.items():
        for language, lines in zip(WORDS, zip(*pairs, strict=True), strict=True):
            (tmp_path / f"{name}.{language}").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return tmp_path


@pytest.fixture
def command(files):
    """Returns a function that imports into `run`; its arguments are added to the command line."""

    def call(*arguments, workdir="run", checkpoint="model.pt"):
        names = {"checkpoint": checkpoint, "workdir": workdir}
        names |= {"source_dict": "dict.de.txt", "target_dict": "dict.en.txt"}
        import_fairseq.main([*(f"--{name}={files / file}" for name, file in names.items()), *arguments])
        return files / workdir

    return call


@pytest.fixture
def holding(monkeypatch):
    """Makes every checkpoint hold the given model, without torch."""

    def set_to(config):
        options = dict(MASKED if config.masked else OPTIONS)
        monkeypatch.setattr(import_fairseq, "read_checkpoint", lambda path: (STATES[config], options))
        return options

    return set_to


@pytest.mark.slow
def test_an_imported_model_is_evaluated_like_a_trained_one(command, holding, files):
    holding(CONFIG)
    search = ["--config.evaluation.beam=1", "--config.evaluation.max_length_b=3"]
    workdir = command(f"--config.data.directory={files}", *search)
    restored = restore_run(workdir, "best")
    assert restored.config == CONFIG and restored.assets.languages == ("de", "en")
    same_bits(restored.variables, convert(STATES[CONFIG], CONFIG))
    scores = evaluate(restore_run(workdir, "best"), "test", RunFolder(workdir))["test"]
    assert scores["sentences"] == 2 and scores["beam"] == 1
    assert json.loads((workdir / "evaluation-test.json").read_text("utf-8")) == scores


def test_a_dense_model_needs_no_arrays_beside_its_checkpoint(command, holding):
    holding(DENSE)
    workdir = command()
    assert not (workdir / "frozen.npz").exists()
    same_bits(restore_run(workdir, "last").variables, convert(STATES[DENSE], DENSE))


def test_missing_values_are_asked_for(command, holding):
    options = holding(CONFIG)
    for name, flag in {"encoder_attention_heads": "heads", "prune_ratio": "keep"}.items():
        del options[name]
        with user_error(rf"does not say .*; give --config\.model\.{flag}"):
            command(*(["--config.model.heads=2"] if flag == "keep" else []))
    with user_error(r"does not say .*; give --config\.model\.keep"):
        command("--config.model.heads=2", "--config.model.threshold=0.3")
    workdir = command("--config.model.heads=2", "--config.model.keep=0.25")
    restored = restore_run(workdir, "best").config
    assert (restored.heads, restored.keep, restored.d_model) == (2, 0.25, 8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config.model.heads=4"], r"--config\.model\.heads=4, but the checkpoint's model has 2"),
        (["--config.model.haeds=4"], "^unknown key model.haeds in the config; did you mean model.heads"),
        (["--config.data.directory=nowhere"], r"nowhere/valid\.de does not exist"),
        (["extra"], "unexpected argument 'extra'"),
        (["--chekpoint=x"], "chekpoint"),
    ],
)
def test_invalid_options_are_refused(command, holding, files, arguments, message):
    holding(CONFIG)
    with user_error(message):
        command(*arguments)
    assert not (files / "run").exists()


def test_missing_options_are_named(files):
    with user_error("the following arguments are required: --source_dict, --target_dict"):
        import_fairseq.main([f"--workdir={files / 'run'}", "--checkpoint=model.pt"])


def test_a_dictionary_of_another_length_is_refused(command, holding, files):
    holding(CONFIG)
    (files / "dict.en.txt").write_text("a 1\n", "utf-8")
    with user_error(r"dict\.en\.txt has 5 types .* decoder\.embed_tokens\.weight has 10 rows"):
        command()
    assert not (files / "run").exists()


def test_a_folder_that_holds_a_run_is_refused(command, holding):
    holding(CONFIG)
    workdir = command()
    before = tiny.contents(workdir)
    with user_error("already holds a run; give a new folder"):
        command()
    assert tiny.contents(workdir) == before
    (workdir / "config.json").unlink()
    with user_error("holds what an import that was cut off has left; delete it, or give a new folder"):
        command()


def test_a_folder_in_which_a_run_begins_is_left_to_it(command, holding, files):
    holding(CONFIG)
    with RunFolder(files / "run").locked(), user_error(r"is in use: process .* trains in it"):
        command()
    assert not (files / "run").exists()


@pytest.mark.parametrize("damage", ["shape", "name"])
def test_fixed_arrays_of_another_model_are_refused(command, holding, damage):
    holding(CONFIG)
    workdir = command()
    path = workdir / "frozen.npz"
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    if damage == "shape":
        arrays["random/source_embedding/kernel"] = np.zeros((3, 8), np.float32)
    else:
        arrays["random/decoder/layers/ffn_up/kernel"] = np.zeros((8, 12), np.float32)
    np.savez(path, **arrays)
    messages = {"shape": r"float32 \[3, 8\] as random/source", "name": "ffn_up/kernel.*no such"}
    with user_error(messages[damage]):
        restore_run(workdir, "best")


def test_without_torch_the_install_command_is_given(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with user_error(r"torch, which is not installed; .*requirements-torch\.txt"):
        command()


@pytest.mark.parametrize(("config", "form"), [(CONFIG, "args"), (DENSE, "cfg")])
def test_a_torch_file_is_imported(command, files, config, form):
    """In half precision, as fairseq trains, and with options in the older and in the newer form."""
    torch = pytest.importorskip("torch")
    model = {name: torch.tensor(array).half() for name, array in STATES[config].items()}
    options = argparse.Namespace(**(MASKED if config.masked else OPTIONS))
    newer = {"args": None, "cfg": {"task": {"source_lang": "de"}, "model": options}}
    said = {"args": options} if form == "args" else newer
    torch.save({"model": model, **said, "extra_state": {"epoch": 3}}, files / "model.pt")
    restored = restore_run(command(), "best")
    assert restored.config == config
    same_bits(restored.variables, convert({name: tensor.numpy() for name, tensor in model.items()}, config))


class Malicious:
    """Runs a command when pickle loads it."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


@pytest.mark.parametrize("place", ["model", "args", "extra_state"])
@pytest.mark.parametrize("zipped", [True, False])
def test_a_file_with_code_is_refused_and_runs_nothing(command, files, place, zipped):
    torch = pytest.importorskip("torch")
    state = {name: torch.tensor(array) for name, array in STATES[CONFIG].items()}
    content = {"model": state, "args": argparse.Namespace(**MASKED)}
    content[place] = Malicious(f"touch {files / 'harm'}")
    torch.save(content, files / "model.pt", _use_new_zipfile_serialization=zipped)
    with user_error(r"model\.pt holds an object of type \S*system, .* can run any program") as caught:
        command()
    assert "\n" not in str(caught.value)
    assert not (files / "harm").exists() and not (files / "run").exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"model\.pt cannot be read: No such file"),
        (b"", r"model\.pt is not a whole file of torch\.save"),
        (b"PK\x03\x04 and no more", r"model\.pt is not a whole file of torch\.save"),
        (b"something else", r"model\.pt is not a whole file of torch\.save"),
    ],
)
def test_files_that_torch_cannot_read_are_refused(command, files, content, message):
    pytest.importorskip("torch")
    if content is not None:
        (files / "model.pt").write_bytes(content)
    with user_error(message) as caught:
        command()
    assert "\n" not in str(caught.value) and not (files / "run").exists()


@pytest.mark.parametrize("content", [{}, {"model": {"encoder.version": 3}}, [1, 2]])
def test_torch_files_without_a_model_are_refused(command, files, content):
    torch = pytest.importorskip("torch")
    torch.save(content, files / "model.pt")
    with user_error(r"has no tensors under the name 'model'"):
        command()

"""A tiny RoBERTa folder, and the command that imports it."""

import json

import pytest
from safetensors.numpy import save_file

from one_layer.commands import import_roberta
from tests.tiny_roberta import MERGES, OPTIONS, TOKENS, tensors


@pytest.fixture
def roberta(tmp_path):
    """Returns a function that writes a RoBERTa folder."""

    def write(options=None, head="lm_head", state=None, tokens=TOKENS):
        folder = tmp_path / "roberta"
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps({**OPTIONS, **(options or {})}), "utf-8")
        save_file(tensors(head) if state is None else state, folder / "model.safetensors", {"format": "pt"})
        (folder / "vocab.json").write_text(json.dumps({token: n for n, token in enumerate(tokens)}), "utf-8")
        (folder / "merges.txt").write_text(MERGES, "utf-8")
        return folder

    return write


@pytest.fixture
def command(tmp_path):
    """Returns a function that imports a folder; other arguments are added to the command line."""

    def call(folder, *arguments):
        import_roberta.main([f"--folder={folder}", f"--workdir={tmp_path / 'run'}", *arguments])
        return tmp_path / "run"

    return call

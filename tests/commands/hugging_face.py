"""Folders in Hugging Face's format with a tiny tokenizer, and runs that are imported from them."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from one_layer.commands import import_llama
from one_layer.data.text import byte_level
from one_layer.models import build
from one_layer.runs.restore import restore_run
from one_layer.tasks.model import prepared

MERGES = "#version: 0.2\nĠ t\nĠt h\nĠth e\n"
END = "<|endoftext|>"
TOKENS = (*byte_level.pieces(MERGES), END)  # the ids are not those of this program
DENSE = ("--config.model.weights=dense", "--config.model.embedding=trained")


def ones(*shape):
    return np.ones(shape, np.float32)


def write(folder, options, state, tokens=TOKENS, parts=1):
    """The folder of a model, whose tensors are in one file or in several."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(options), "utf-8")
    (folder / "vocab.json").write_text(json.dumps({token: n for n, token in enumerate(tokens)}), "utf-8")
    (folder / "merges.txt").write_text(MERGES, "utf-8")
    if parts == 1:
        save_file(state, folder / "model.safetensors")
        return folder
    places = {name: f"model-{number % parts}.safetensors" for number, name in enumerate(state)}
    for file in set(places.values()):
        save_file({name: state[name] for name in state if places[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}), "utf-8")
    return folder


def imported(folder, tmp_path, *arguments):
    import_llama.main([f"--folder={folder}", f"--workdir={tmp_path / 'run'}", *arguments])
    return restore_run(tmp_path / "run")


def same_logits(kind, folder, tmp_path, text):
    """Imports a folder, and checks the logits of a text of this program's ids against those of transformers' class `kind`."""
    torch = pytest.importorskip("torch", reason="torch is not installed (requirements-torch.txt)")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed (requirements-torch.txt)")
    model = imported(folder, tmp_path, *DENSE)
    reader = getattr(transformers, kind).from_pretrained(folder).eval()
    logits = np.asarray(build(model.config).apply(prepared(model.config, model.variables), text))[0]
    ours = model.assets.target_vocabulary.tokens[4:]
    theirs = {2: TOKENS.index(END), **{4 + number: TOKENS.index(token) for number, token in enumerate(ours)}}
    their = reader(torch.tensor([[theirs[int(each)] for each in text[0]]])).logits.detach().numpy()[0]
    np.testing.assert_allclose(logits[:, list(theirs)], their[:, list(theirs.values())], rtol=1e-5, atol=1e-5)

"""`--mode=export` for another engine, from the command line."""

from __future__ import annotations

import json

from one_layer.data.text.assets import load_text_assets
from tests import ROOT


def test_a_ticket_becomes_a_folder(cli, tmp_path):
    ticket, folder = ROOT / "tickets" / "multi30k-en-de.safetensors", tmp_path / "out"
    code, out, _ = cli("--mode=export", f"--ticket={ticket}", "--format=huggingface", f"--output={folder}")
    assert not code and not out
    assert json.loads((folder / "config.json").read_text("utf-8"))["architectures"] == ["FSMTForConditionalGeneration"]
    assert load_text_assets(folder).languages == ("en", "de")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_what_cannot_be_written_leaves_nothing(refused, tmp_path):
    ticket = ROOT / "tickets" / "sst2.safetensors"
    sentence = refused("--mode=export", f"--ticket={ticket}", "--format=huggingface", f"--output={tmp_path / 'out'}")
    assert "reads text in another way than RoBERTa" in sentence
    sentence = refused("--mode=export", f"--ticket={ticket}", "--format=huggingface", f"--output={tmp_path}")
    assert f"--output={tmp_path} is there already; give the name of a new folder" in sentence

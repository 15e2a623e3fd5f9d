"""The command that compiles ahead: what it prints and writes, and what it refuses."""

from __future__ import annotations

import json

import pytest

from one_layer.ahead.chips import Target
from one_layer.commands import compile as command
from one_layer.system.errors import UserError
from tests import ROOT
from tests.ahead.targets import HERE

CONFIG = f"--config={ROOT / 'configs' / 'toy.py'}"
SMALL = [
    "--config.model.d_model=16",
    "--config.model.ffn=16",
    "--config.model.heads=2",
    "--vocabularies=30,30",
    "--length=8",
]


def test_the_table_and_the_file_say_the_same(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(Target, "of", lambda name: HERE)
    command.main([CONFIG, "--target=here", *SMALL, f"--output={tmp_path / 'found.json'}"])
    (found,) = json.loads((tmp_path / "found.json").read_text())
    shown = capsys.readouterr().out
    assert found["fits"] and f"{found['kernels']:,}" in shown and "nothing was run" in shown
    terms = found["predicted_seconds"]
    assert terms["update"] == pytest.approx(
        max(terms["products"], terms["memory"]) + terms["wire"] + terms["launches"] + terms["host"]
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target=h101"], r"--target=h101 is unknown; give one of a100, h100"),
        (
            ["--target=h100", "--vocabularies=5"],
            r"--vocabularies=5 is no pair of numbers; give for instance 32768,32768",
        ),
        (["--target=h100", "--config.modle.ffn=3"], "modle"),
        (["--target=h100", "--config.mesh.data=3"], r"mesh\.data=3 and mesh\.model=1 do not arrange"),
    ],
)
def test_bad_input_is_one_sentence(words, message, monkeypatch):
    monkeypatch.setattr(Target, "devices", lambda self: HERE.devices())
    with pytest.raises(UserError, match=message):
        command.main([CONFIG, *words])

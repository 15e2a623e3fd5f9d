"""The command that compiles ahead: what it prints and writes, and what it refuses."""

import io
import json
from contextlib import redirect_stdout
from dataclasses import replace

import pytest

from one_layer.ahead.chips import Target
from one_layer.commands import compile as command
from tests import ROOT, user_error
from tests.ahead.targets import HERE

CONFIG = f"--config={ROOT / 'configs' / 'toy.py'}"
SMALL = [*(f"--config.model.{size}" for size in ("d_model=16", "ffn=16", "heads=2"))]
SMALL += ["--vocabularies=30,30", "--length=8"]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What the command finds and prints for one update."""
    output = tmp_path_factory.mktemp("alone") / "found.json"
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(io.StringIO()) as shown:
        patched.setattr(Target, "of", lambda name: HERE)
        command.main([CONFIG, "--target=here", *SMALL, f"--output={output}", "--top=3"])
    (found,) = json.loads(output.read_text())
    return found, shown.getvalue()


def test_the_table_and_the_file_say_the_same(alone):
    found, shown = alone
    assert found["fits"] and f"{found['kernels']:,}" in shown and "nothing was run" in shown


def test_a_program_that_does_not_fit_is_said_with_what_to_change(alone, monkeypatch, capsys):
    one, _ = alone
    small = replace(HERE, chip=replace(HERE.chip, memory=0.9 * one["peak_bytes"]))
    monkeypatch.setattr(Target, "of", lambda name: small)
    command.main([CONFIG, "--target=here", *SMALL])
    assert "too much; lower data.max_tokens" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target=h101"], r"--target=h101 is unknown; give one of a100, h100"),
        (
            ["--target=h100", "--vocabularies=5"],
            r"--vocabularies=5 is no pair of numbers; give for instance 32768,32768",
        ),
        (["--target=h100", "--program=search"], "--program is unknown; --help tells of all options"),
        (["--target=h100", "--config.modle.ffn=3"], "modle"),
        (["--target=h100", "--config.mesh.data=3"], r"mesh\.data=3 and mesh\.model=1 do not arrange"),
        (["--target=h101", "--output=nope/found.json"], "--output=nope/found.json: there is no folder .*; make it"),
        (["--target=h101", f"--output={ROOT}"], "is a folder; give a file"),
    ],
)
def test_bad_input_is_one_sentence(words, message, monkeypatch):
    monkeypatch.setattr(Target, "devices", lambda self: HERE.devices())
    with user_error(message):
        command.main([CONFIG, *words])


def test_the_largest_operations_are_listed_on_request(alone):
    found, shown = alone
    sizes = [each["bytes"] for each in found["largest"]]
    assert len(sizes) == 3 and sizes == sorted(sizes, reverse=True) and sum(sizes) < found["bytes"]
    assert all(f"{size / 1e6:,.0f}" in shown for size in sizes) and "made by" in shown

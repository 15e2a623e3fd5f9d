"""Peers of the benchmarks: programs in processes of their own. A stand-in speaks as launch/torch_peer.py does."""

import json
import os
import sys

import numpy as np
import pytest

from launch.benchmarks import accelerator, peers, train
from launch.benchmarks.peers import Peer
from tests import user_error

_STAND_IN = """
import json, os, sys
task = json.loads(sys.stdin.readline())
print(json.dumps({"pid": os.getpid(), "waits": os.environ["OMP_WAIT_POLICY"], "task": task}), flush=True)
for line in sys.stdin:
    with open(sys.argv[1], "a") as file:
        file.write(line)
    print("0.5", flush=True)
"""


@pytest.fixture
def stand_in(tmp_path):
    """The command of a peer that writes down what it is asked, and the file in which it does."""
    program = tmp_path / "peer.py"
    program.write_text(_STAND_IN)
    return [sys.executable, str(program), str(tmp_path / "asked")], tmp_path / "asked"


def test_a_peer_has_its_own_process_and_computes_only_when_asked(stand_in):
    command, asked = stand_in
    with Peer(command, {"size": 3}) as peer:
        assert peer.about["pid"] != os.getpid()
        assert peer.about["task"] == {"size": 3} and peer.about["waits"] == "passive"
        assert not asked.exists()
        assert [peer("masked"), peer("dense")] == [0.5, 0.5]
        assert [json.loads(line) for line in asked.read_text().splitlines()] == ["masked", "dense"]
        assert os.path.exists(f"/proc/{peer.about['pid']}") or sys.platform != "linux"
    assert not os.path.exists(f"/proc/{peer.about['pid']}")


@pytest.mark.parametrize(
    "code", ["raise SystemExit(3)", "print('no JSON')", "import json; input(); print('{}'); input()"]
)
def test_a_peer_that_gives_no_answer_is_reported(tmp_path, code):
    (tmp_path / "peer.py").write_text(code)
    with (
        user_error(r"the peer .*peer\.py gave no answer"),
        Peer([sys.executable, str(tmp_path / "peer.py")], {}) as peer,
    ):
        peer("masked")


@pytest.mark.slow
def test_updates_of_a_peer_stand_in_the_table_of_ours(small, stand_in, monkeypatch):
    command, asked = stand_in
    monkeypatch.setattr(accelerator, "torch_command", lambda: command)
    monkeypatch.setattr(accelerator, "_QUICK", ((48, "float32", 0.3),))
    measured = accelerator.measure("tiny", True, "torch")
    task = measured["peers"]["torch"]["task"]
    assert (task["sizes"], task["dropout"], task["dtype"]) == ([16, 32, 2, 4], 0.3, "float32")
    assert np.shape(task["batch"]["source"]) == (1, 2, 24)
    sides = {row["side"]: row for row in measured["steps"]}
    assert list(sides) == [*accelerator._WEIGHTS, *(f"torch: {what}" for what in accelerator._PEER_SIDES.values())]
    assert len({tuple(row) for row in measured["steps"]}) == 1, "the rows of a table have the same columns"
    for row in sides.values():
        assert row["of_peer"] == row["seconds"] / sides["torch: dense"]["seconds"]
    assert [json.loads(line) for line in asked.read_text().splitlines()] == 3 * [
        [side, 1] for side in accelerator._PEER_SIDES
    ]


def test_a_peer_that_is_not_there_is_one_sentence(monkeypatch):
    monkeypatch.delenv("ONE_LAYER_TORCH", raising=False)
    monkeypatch.setattr(peers.importlib.util, "find_spec", lambda name: None)
    with user_error(r"no PyTorch here; pip install -r requirements-torch\.txt, or let ONE_LAYER_TORCH"):
        peers.torch_command()
    assert train.peer_commands() == {}


def test_the_python_of_the_torch_peer_can_be_chosen(monkeypatch):
    monkeypatch.setenv("ONE_LAYER_TORCH", "/somewhere/python")
    assert train.peer_commands() == {"torch": ["/somewhere/python", "launch/torch_peer.py"]}


@pytest.mark.slow
def test_the_benchmark_asks_in_turn_and_records_what_the_peer_is(small, stand_in, monkeypatch):
    (command, asked), before = stand_in, set(sys.modules)  # other tests may have imported it
    monkeypatch.setattr(train, "peer_commands", lambda: {"other": command})
    measured = train.measure("tiny", True)
    assert "torch" not in sys.modules.keys() - before
    assert measured["peers"]["other"]["task"]["sizes"] == [16, 32, 2, 4]
    assert measured["other_masked_seconds"] > 0 and measured["other_dense_seconds"] > 0
    assert [json.loads(line) for line in asked.read_text().splitlines()] == ["masked", "dense"] * 3

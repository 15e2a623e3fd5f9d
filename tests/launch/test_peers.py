"""Peers of the benchmarks: programs in processes of their own. A stand-in speaks as launch/torch_peer.py does."""

from __future__ import annotations

import json
import os
import sys

import pytest

from configs.common import SIZES
from launch.benchmarks import train
from launch.benchmarks.peers import Peer
from one_layer.system.errors import UserError

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
        pytest.raises(UserError, match=r"the peer .*peer\.py gave no answer"),
        Peer([sys.executable, str(tmp_path / "peer.py")], {}) as peer,
    ):
        peer("masked")


def test_the_python_of_the_torch_peer_can_be_chosen(monkeypatch):
    monkeypatch.setenv("ONE_LAYER_TORCH", "/somewhere/python")
    assert train.peer_commands() == {"torch": ["/somewhere/python", "launch/torch_peer.py"]}


@pytest.mark.slow
def test_the_benchmark_asks_in_turn_and_records_what_the_peer_is(stand_in, monkeypatch):
    command, asked = stand_in
    monkeypatch.setitem(SIZES, "tiny", (16, 32, 2, 1))
    monkeypatch.setattr(train, "peer_commands", lambda: {"other": command})
    measured = train.measure("tiny", True)
    assert "torch" not in sys.modules
    assert measured["peers"]["other"]["task"]["sizes"] == [16, 32, 2, 1]
    assert measured["other_masked_seconds"] > 0 and measured["other_dense_seconds"] > 0
    assert [json.loads(line) for line in asked.read_text().splitlines()] == ["masked", "dense"] * 3

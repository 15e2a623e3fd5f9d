"""The script that measures on an accelerator: every command in it is one that this repository has, and what is done is not done again."""

import os
import subprocess

import pytest

from tests import ROOT, documents

PYTHON = '#!/bin/bash\necho "$@" >> "$SAID"\nexit "${CODE:-0}"\n'


@pytest.fixture
def started(tmp_path):
    """Runs the script with a stand-in for Python, in a copy of its folder. Returns the commands that it called."""
    (tmp_path / "launch").mkdir()
    script = tmp_path / "launch" / "gpu.sh"
    script.write_bytes((ROOT / "launch" / "gpu.sh").read_bytes())
    script.chmod(0o755)
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    (tmp_path / "data").mkdir()

    def call(*words: str) -> list[list[str]]:
        said = tmp_path / "said"
        said.write_text("")
        environment = os.environ | {"PYTHON": str(tmp_path / "python"), "SAID": str(said)}
        done = subprocess.run([script, *words], env=environment, capture_output=True, text=True, timeout=60)
        assert not done.stderr, done.stderr
        return [line.split() for line in said.read_text().splitlines()]

    return call


def test_its_commands_exist_and_a_second_call_leaves_out_what_is_there(started, tmp_path):
    first = started(str(tmp_path / "data"))
    assert len(first) > 10
    for words in first:
        if words[0] != "-m":
            documents.check_script(words)
    again = started(str(tmp_path / "data"))
    assert {tuple(words) for words in again} < {tuple(words) for words in first}
    assert not any(words[0] in ("-m", "launch/benchmark.py") for words in again)


def test_it_stops_when_its_time_is_over_and_says_what_it_needs(started, tmp_path):
    assert started(str(tmp_path / "data"), "0") == []
    assert len(started(str(tmp_path / "data"))) > 10  # nothing counts as done
    done = subprocess.run([ROOT / "launch" / "gpu.sh"], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("error: give the folder with the corpora")


def test_what_has_failed_is_done_again_but_tests_that_failed_are_a_result(started, tmp_path, monkeypatch):
    monkeypatch.setenv("CODE", "1")
    first = [words for words in started(str(tmp_path / "data")) if words[0] in ("-m", "launch/benchmark.py")]
    monkeypatch.setenv("CODE", "0")
    again = [words for words in started(str(tmp_path / "data")) if words[0] in ("-m", "launch/benchmark.py")]
    assert again == [words for words in first if words[0] != "-m"] != first

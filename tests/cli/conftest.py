"""The command line, called in the process of the tests."""

import os
import sys

import pytest

import main
from tests import ROOT, tiny


@pytest.fixture
def cli(monkeypatch, capsys):
    """Calls main.py in this process. Returns its exit code and what it wrote to stdout and stderr."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)  # main.py sets its own
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", os.environ.get("JAX_COMPILATION_CACHE_DIR", ""))
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["main.py", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main.run()
        return (caught.value.code, *capsys.readouterr())

    return call


@pytest.fixture
def refused(cli, tmp_path):
    """Calls main.py, makes sure that it refuses and touches nothing, and returns the sentence."""

    def call(*arguments):
        before = tiny.contents(tmp_path)
        code, out, err = cli(*arguments)
        assert code == 2 and out == "" and "Traceback" not in err
        sentence, end = err.split("\n")
        assert sentence.startswith("error: ") and end == ""
        assert tiny.contents(tmp_path) == before
        return sentence

    return call

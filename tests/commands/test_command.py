"""What all commands of launch/, and the library, do in a locale whose encoding has no umlauts."""

import os
import signal
import subprocess
import sys

import pytest

import one_layer.__main__
from one_layer.commands import main_of
from tests import ROOT, user_error

ASCII = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
UTF8 = os.environ | {"PYTHONUTF8": "1"}


def program(source: str, *arguments: str, environment: dict[str, str] = ASCII) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", source, *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, encoding="utf-8", timeout=120)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        ("MemoryError('no 9 bytes')", 1, "error: there is too little memory (no 9 bytes); where a model is at work"),
        ("FileNotFoundError(2, 'No such file', 'x')", 2, "error: x: No such file; give a folder"),
        ("UserError('give y')", 2, "error: give y\n"),
    ],
)
def test_an_error_that_the_user_can_mend_is_one_sentence(error, code, said):
    source = "from one_layer.cli import command\nfrom one_layer.system.errors import UserError\n"
    source += f"def main(): raise {error}\ncommand.run(main)"
    done = program(source, environment=UTF8)
    assert done.returncode == code and done.stderr.startswith(said) and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["-c", "from one_layer.cli import command\ncommand.run(lambda: print('a line'))"], 128 + signal.SIGPIPE),
        (
            ["-c", "from one_layer.cli import command\ncommand.run(lambda: print(100_000 * 'a\\n'))"],
            128 + signal.SIGPIPE,
        ),
        (["main.py"], 128 + signal.SIGPIPE),
        (["main.py", "--mode=keys"], 128 + signal.SIGPIPE),
        (["main.py", "--help"], 0),  # argparse itself passes over it
    ],
)
def test_output_that_nobody_reads_ends_a_command_silently(words, code):
    """As in `| head`: whether the pipe is found closed while the command prints, or when the rest is written at its end."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, *words], cwd=ROOT, env=UTF8, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert done.returncode == code and done.stderr == b""


def test_without_words_the_command_says_what_it_does(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["main.py"])
    with pytest.raises(SystemExit) as ended:
        one_layer.__main__.run()
    said = capsys.readouterr().out
    assert not ended.value.code and said.startswith("one_layer trains Transformers") and said.count("\n    ") == 2


def test_the_library_says_how_to_start_python_for_a_path_that_it_cannot_open():
    done = program("import one_layer; one_layer.load('r\\u00fcn')")
    assert "UserError: the path 'r\\xfcn' has other letters than ascii" in done.stderr
    assert "python -X utf8 or PYTHONUTF8=1" in done.stderr


@pytest.mark.parametrize("words", ["compare a b --he", "prepare_iwslt14 --out=a --arch=b", "prepare_wmt14 --ou=a"])
def test_a_part_of_an_option_s_name_is_no_option(words):
    """A later version may have an option whose name begins like another one."""
    name, *rest = words.split()
    with user_error(r"unrecognized arguments|are required"):
        main_of(name)(rest)

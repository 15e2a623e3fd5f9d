"""The wheel has everything: the installed package works in any folder, without the repository."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from one_layer.commands import COMMANDS
from tests import ROOT, tiny

pytestmark = pytest.mark.slow

HELP = """
import sys
from one_layer.__main__ import run
for name in sys.argv[1:]:
    sys.argv = ["__main__.py", name, "--help"]
    try:
        run()
    except SystemExit as ended:
        assert not ended.code
"""
TICKET = ROOT / "tickets" / "multi30k-en-de.safetensors"
_PARTS = ("one_layer", "configs", "pyproject.toml", "setup.py", "requirements.txt", "README.md", "LICENSE")


def pip(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True)


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The folder into which the wheel was installed, without its requirements: those of the tests serve it."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in _PARTS:
        source = ROOT / name
        ignored = shutil.ignore_patterns("__pycache__")
        _ = shutil.copytree(source, folder / name, ignore=ignored) if source.is_dir() else shutil.copy(source, folder)
    built = pip("wheel", "--no-deps", "--wheel-dir", str(folder / "wheels"), str(folder))
    if "No matching distribution found for setuptools" in built.stderr:
        pytest.skip("pip cannot download setuptools, which builds the wheel")
    assert built.returncode == 0, built.stderr
    (wheel,) = (folder / "wheels").glob("*.whl")
    assert pip("install", "--no-deps", "--target", str(folder / "site"), str(wheel)).returncode == 0
    return folder / "site"


def run(installed: Path, folder: Path, *words: str, lines: str = "") -> str:
    surroundings = os.environ | {"PYTHONPATH": str(installed), "HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, *words], input=lines, capture_output=True, text=True, cwd=folder, env=surroundings
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_installed_package_translates_and_knows_its_configs(installed, tmp_path):
    where = run(installed, tmp_path, "-c", "import one_layer; print(one_layer.__file__, one_layer.__version__)").split()
    assert Path(where[0]).is_relative_to(installed) and where[1][0].isdigit()
    assert (installed / "one_layer" / "py.typed").is_file()
    keys = run(installed, tmp_path, "-m", "one_layer", "--mode=keys", "--config=configs/text.py:dense_mini")
    assert "--config.model.weights=dense\n" in keys
    command = "-m", "one_layer", "--mode=translate", f"--ticket={TICKET}"
    translated = run(installed, tmp_path, *command, lines="two dogs run .\n")
    assert translated.startswith("zwei hunde")
    begun = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules)); from one_layer.__main__ import run; run()"
    )
    again, modules = run(installed, tmp_path, "-c", begun, *command[2:], lines="two dogs run .\n").splitlines()
    assert f"{again}\n" == translated
    needless = {"optax", "orbax", "sacrebleu", "one_layer.data.loading"}
    assert "jax" in modules.split() and not needless & set(modules.split()), "one line is translated without these"
    run(installed, tmp_path, "-m", "one_layer", "--mode=page", f"--ticket={TICKET}", "--output=page.html")
    assert (tmp_path / "page.html").stat().st_size > TICKET.stat().st_size


def test_an_installed_package_has_the_commands_of_launch(installed, tmp_path):
    """The whole sweep of a config of one's own, whose runs are started as `python -m one_layer`; of the others, that they are there."""
    (tmp_path / "mine.py").write_text(
        "from configs import toy\nfrom configs.sweeps import vary\n\n"
        "def get_config():\n    config = toy.get_config()\n"
        f"    config.update_from_flattened_dict({ {**tiny.CHANGES, 'train.updates': 4} })\n    return config\n\n"
        "def sweep():\n    return vary('seed', 1)\n"
    )
    run(installed, tmp_path, "-m", "one_layer", "sweep", "--config=mine.py", "--workdir=~/runs")
    assert (tmp_path / "runs" / "default" / "result.json").is_file()
    told = run(installed, tmp_path, "-c", HELP, *COMMANDS)
    assert all(f"usage: python -m one_layer {name} " in told for name in COMMANDS)

"""What the program must never do is not in its sources: run code out of files, or build commands as text."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ROOT

SOURCES = [ROOT / "main.py", *sorted((ROOT / "one_layer").rglob("*.py")), *sorted((ROOT / "launch").rglob("*.py"))]
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "code", "codeop"}
CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen"}
CALLS |= {"yaml.load", "yaml.unsafe_load", "yaml.full_load"}
CALLS |= {"subprocess.getoutput", "subprocess.getstatusoutput", "tempfile.mktemp"}
NETWORK = {"socket", "urllib", "http", "requests", "ftplib", "aiohttp", "httpx"}
# The name of the machine, for the message about a folder in use. Nothing is connected.
MAY_IMPORT = {("one_layer/runs/lock.py", "socket")}
# A corpus is downloaded only by a command of launch/ that is told to.
MAY_IMPORT |= {
    ("one_layer/data/preparation/archives.py", each) for each in ("http.client", "urllib.error", "urllib.request")
}


def findings(source: str) -> Iterator[str]:
    """What a source has of the forbidden things."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (f"import {each.name}" for each in node.names if each.name.split(".")[0] in MODULES | NETWORK)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in MODULES | NETWORK:
            yield f"import {node.module}"
        elif isinstance(node, ast.Call):
            yield from call_findings(node)


def call_findings(node: ast.Call) -> Iterator[str]:
    called = ast.unparse(node.func)
    if called in CALLS:
        yield called
    if called.startswith("os.exec") and called != "os.execv":
        yield called
    for each in node.keywords:
        given = ast.unparse(each.value)
        if each.arg == "shell" and given != "False":
            yield f"shell={given}"
        if each.arg == "allow_pickle" and given != "False":
            yield f"allow_pickle={given}"
        if each.arg == "weights_only" and given != "True":
            yield f"weights_only={given}"
    given = {each.arg: ast.unparse(each.value) for each in node.keywords}
    if called in ("np.load", "numpy.load") and given.get("allow_pickle") != "False":
        yield "np.load without allow_pickle=False"
    if called == "torch.load" and given.get("weights_only") != "True":
        yield "torch.load without weights_only=True"
    if called.endswith((".extractall", ".extract")):
        yield called


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_source_runs_code_out_of_data(path: Path):
    name = str(path.relative_to(ROOT))
    found = [
        each for each in findings(path.read_text("utf-8")) if (name, each.removeprefix("import ")) not in MAY_IMPORT
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import urllib.request",
        "eval('1')",
        "exec(code)",
        "import os; os.system('ls')",
        "subprocess.run('ls', shell=True)",
        "yaml.load(file)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "torch.load(path)",
        "archive.extractall(folder)",
    ],
)
def test_the_search_finds_what_it_looks_for(source):
    assert list(findings(source))

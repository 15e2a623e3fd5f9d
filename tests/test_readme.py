"""The README's Python lines run as they stand, in a folder where `make demo` has left its ticket; and those on the parts of a model."""

import re
import shutil

from tests import ROOT, tiny


def test_the_python_lines_run(tmp_path_factory, tmp_path, monkeypatch, capsys):
    (tmp_path / "runs" / "demo").mkdir(parents=True)
    ticket = tiny.trained(tmp_path_factory) / "ticket.safetensors"
    shutil.copy(ticket, tmp_path / "runs" / "demo" / "ticket.safetensors")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    before, after, *translations = capsys.readouterr().out.splitlines()
    assert float(after) < 0.5 * float(before), "the ten lines of the idea learn"
    assert len(translations) == 2  # a line for each sentence


def test_the_parts_of_a_shipped_model_can_be_changed_as_documented(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "running.md").read_text("utf-8")
    (block,) = (
        each for each in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL) if "with_masks" in each
    )
    exec(compile(block, "running.md", "exec"), {})
    shown = capsys.readouterr().out.splitlines()
    (size,) = re.findall(r"[\d,]+ bytes", block)
    assert size in shown[0], "the comment in the page is what is printed"
    assert re.fullmatch(r"\['.+'\]", shown[-1]), "one flipped sign in a hundred leaves a translation"

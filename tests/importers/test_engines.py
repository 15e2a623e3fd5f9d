"""The door to other engines: what is wrong is said in a sentence, and a folder is there whole or not at all."""

from __future__ import annotations

import sys

import pytest

from one_layer import tickets
from one_layer.importers import ctranslate2, engines
from one_layer.system.errors import UserError
from tests.tiny_tickets import TINY, ticket_of


@pytest.fixture
def model(tmp_path):
    tickets.save(tmp_path / "t.safetensors", ticket_of(TINY))
    return tickets.restore_ticket(tmp_path / "t.safetensors")


def names(folder):
    return sorted(path.name for path in folder.rglob("*"))


def test_a_missing_package(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(
        UserError, match=r"needs the package ctranslate2, which is not installed; run .* requirements-engines.txt"
    ):
        engines.check("ctranslate2", tmp_path / "out", "float32")


@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_something_in_the_way(tmp_path, kind):
    path = tmp_path / "out"
    {"file": path.touch, "folder": path.mkdir, "dangling link": lambda: path.symlink_to("nowhere")}[kind]()
    with pytest.raises(UserError, match=r"--output=.*out is there already; give the name of a new folder"):
        engines.check("ctranslate2", path, "float32")


def test_a_precision_that_the_format_lacks(tmp_path):
    with pytest.raises(
        UserError, match="--precision=int4 does not fit --format=ctranslate2, which has float32 and int8"
    ):
        engines.check("ctranslate2", tmp_path / "out", "int4")


@pytest.mark.parametrize("error", [UserError("no"), KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_half_written_folder_does_not_stay(model, tmp_path, monkeypatch, error):
    def write(model, folder, precision):
        (folder / "model.bin").write_bytes(b"half")
        raise error

    monkeypatch.setattr(ctranslate2, "import_package", lambda: None)
    monkeypatch.setattr(ctranslate2, "write", write)
    with pytest.raises(UserError if isinstance(error, OSError) else type(error)):
        engines.export(model, "ctranslate2", tmp_path / "out")
    assert names(tmp_path) == ["t.safetensors"]


def test_a_killed_writer_leaves_nothing_for_good(model, tmp_path, monkeypatch):
    left = tmp_path / ".out.abcdefgh.unfinished"
    left.mkdir()
    (left / "model.bin").touch()
    monkeypatch.setattr(ctranslate2, "import_package", lambda: None)
    monkeypatch.setattr(ctranslate2, "write", lambda model, folder, precision: (folder / "model.bin").touch())
    engines.export(model, "ctranslate2", tmp_path / "out")
    assert names(tmp_path) == ["model.bin", "out", "t.safetensors"]

"""The configs are found from any folder, and every key of theirs is listed with its comment."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from configs import common, text
from one_layer.cli import config_files
from one_layer.runs.records import flatten
from tests import ROOT


@pytest.mark.parametrize(
    "word", ["--config=configs/toy.py:dense", "-config=configs/toy.py", "configs/toy.py:one_layer"]
)
def test_a_config_of_the_project_is_found_from_any_folder(word, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = config_files.resolved(word)
    assert found.endswith(word.partition("configs/")[2]) and found.startswith(word.partition("configs/")[0])
    assert str(ROOT / "configs" / "toy.py") in found
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "toy.py").write_text("")
    assert config_files.resolved(word) == word  # a file of the user's own comes first


@pytest.mark.parametrize(
    "word", ["--config=configs/nothing.py", "--config.a=configs/toy.py", "--workdir=configs", "lines"]
)
def test_other_words_stay(word, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert config_files.resolved(word) == word


def test_configs_import_each_other_where_no_folder_holds_them(monkeypatch):
    for name in [name for name in importlib.sys.modules if name.split(".")[0] == "configs"]:
        monkeypatch.delitem(importlib.sys.modules, name)
    config_files.make_importable()
    monkeypatch.setattr(
        importlib.sys, "path", [each for each in importlib.sys.path if Path(each or ".").resolve() != ROOT]
    )
    assert importlib.import_module("configs.iwslt14").get_config("dense_small").model.weights == "dense"


def test_every_key_is_listed_with_its_comment_and_value():
    declared = flatten(common.get_config().to_dict())
    lines = config_files.keys().split("\n")
    assert {line.partition("=")[0] for line in lines if line.startswith("--")} == {
        f"--config.{key}" for key in declared
    }
    assert (
        lines[lines.index("--config.model.keep=0.5") + 1]
        == "    the fraction of the random weights that every mask keeps"
    )
    changed = config_files.keys(text.get_config("dense_mini").to_dict())
    assert "--config.model.weights=dense\n    dense: fully weighted; one_layer: one random layer" in changed
    assert (
        changed.index("--config.data.source=")
        < changed.index("--config.data.tests=")
        < changed.index("--config.optim.lr=")
    )


def test_of_a_config_without_one_of_the_sections_the_others_are_listed():
    values = common.get_config().to_dict()
    del values["optim"]
    whole, found = config_files.keys().split("\n"), config_files.keys(values).split("\n")
    lacking = [line for line in whole if line.startswith("--") and line not in found]
    assert lacking and all(line.startswith("--config.optim.") for line in lacking)


def test_no_comment_of_a_key_is_lost():
    source = (ROOT / "configs" / "common.py").read_text("utf-8")
    declarations = source[source.index("def get_config") : source.index("def set_size")]
    listed = " ".join(config_files.keys().split())
    comments = re.findall(r"# (.*)", declarations)
    assert len(comments) > 100
    assert [comment for comment in comments if comment not in listed] == []

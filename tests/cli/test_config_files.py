"""The configs are found from any folder, and every key of theirs is listed with its comment."""

import importlib
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


def test_the_keys_of_a_config_have_its_values_and_without_one_the_comments_of_all():
    declared = flatten(common.get_config().to_dict())
    source = config_files.keys()
    assert (
        all(f"{key.rpartition('.')[2]}" in source for key in declared)
        and "# the fraction of the random weights" in source
    )
    lines = config_files.keys(text.get_config("dense_mini").to_dict()).splitlines()
    assert {line.partition("=")[0] for line in lines} == {f"--config.{key}" for key in declared}
    assert "--config.model.weights=dense" in lines and "--config.optim.lr=" in lines

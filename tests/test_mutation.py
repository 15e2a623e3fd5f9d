"""The mutation run sees what it should: the mutant in place of the file, its change, and only explanations that still fit the source."""

from __future__ import annotations

import importlib
import signal
import sys
from importlib.machinery import SourceFileLoader

import pytest

from tests import mutation

FILES = [file for target in mutation.TARGETS.values() for file in target]


def test_every_file_and_every_test_of_a_target_exists():
    assert all(mutation.path_of(file).is_file() for file in FILES)
    tests = {test for target in mutation.TARGETS.values() for chosen in target.values() for test in chosen}
    assert all((mutation.ROOT / "tests" / f"{test}.py").is_file() for test in tests)


@pytest.mark.parametrize("file", FILES)
def test_every_explained_change_is_one_of_a_line_that_is_still_there(file):
    lines = {mutation.code_of(line) for line in mutation.path_of(file).read_text("utf-8").split("\n")}
    for (old, new), why in mutation.explanations(file).items():
        assert old in lines and new != old and why.endswith("."), (old, new)


def test_explanations_are_of_files_that_are_mutated():
    assert mutation.explained_files() <= set(FILES)


def test_the_change_is_the_first_line_that_differs():
    assert mutation.difference("a\n  b  # why\nc\n", "a\n  d  # why\nc\n") == (2, ("b", "d"))
    assert mutation.difference("a\n@b\nc\n", "a\nc\n") == (2, ("@b", "c"))


def test_a_planted_source_is_imported_in_place_of_its_file_and_leaves_no_bytecode(tmp_path, monkeypatch):
    for name in ("get_data", "path_stats"):
        monkeypatch.setattr(SourceFileLoader, name, getattr(SourceFileLoader, name))
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("planted", "beside"):
        (tmp_path / f"{name}_module.py").write_text("value = 'file'\n")
    mutation.plant(tmp_path / "planted_module.py", "value = 'mutant'\n")
    found = [importlib.import_module(f"{name}_module").value for name in ("planted", "beside")]
    assert found == ["mutant", "file"]
    assert not list(tmp_path.glob("__pycache__/planted_module*"))


@pytest.mark.parametrize(
    ("status", "end"),
    [
        (0, "survived"),
        (1 << 8, "killed"),
        (2 << 8, "killed"),
        (signal.SIGXCPU, "killed by time"),
        (signal.SIGALRM, "killed by time"),
        (signal.SIGSEGV, "killed by a crash"),
    ],
)
def test_only_tests_that_pass_let_a_mutant_survive(status, end):
    assert mutation.outcome(int(status)) == end


def test_without_cosmic_ray_one_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "cosmic_ray.ast", None)
    with pytest.raises(SystemExit, match=r"not installed; run pip install cosmic-ray==\d"):
        mutation.places("supermask")


def test_mutants_are_different_programs_and_not_of_annotations():
    pytest.importorskip("cosmic_ray")
    made = [mutation.mutated("tickets/limits", *place) for place in mutation.places("tickets/limits")]
    assert made and len({mutant.source for mutant in made}) == len(made)
    for mutant in made:
        compile(mutant.source, mutant.file, "exec")
        assert "import" not in mutant.change[0] and not mutant.change[0].startswith("def ")

"""The mutation run sees what it should: the mutant in place of the file, and the tests that no mutant needs."""

from __future__ import annotations

import importlib
from importlib.machinery import SourceFileLoader

from tests import mutation

SOURCE = '''
def f(a: int, b=1) -> bool:
    """Text."""
    for each in a:
        if each < b and not each:
            return -each + 2
    return True
'''


def test_each_place_of_the_code_is_changed_once():
    made = list(mutation.mutants(SOURCE))
    changed = {each.source for each in made}
    assert len(changed) == len(made) == 11
    for part in (
        "b=2",
        "each <= b",
        "each != b",
        "or not each",
        "in []",
        "if not (",
        "and +each",
        "+each + 2",
        "- 2",
        "+ 3",
    ):
        assert any(part in each for each in changed), part
    assert any("return False" in each for each in changed) and all("a: int" in each for each in changed)


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


def test_a_test_is_needless_where_another_fails_of_each_of_its_mutants():
    assert mutation.needless([{"a", "b"}, {"b", "c"}, {"b"}, set()]) == ["a", "c"]
    assert mutation.needless([{"a"}, {"b"}]) == []

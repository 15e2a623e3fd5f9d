"""A user's own config that is none ends with one sentence, which says where in the file."""

from __future__ import annotations

import sys

import pytest

# ml_collections loads a config in a way that Python is about to drop.
pytestmark = pytest.mark.filterwarnings("ignore:the load_module", "ignore:coroutine")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def get_config(:", "SyntaxError: invalid syntax (own.py, line 1)"),
        ("1/0", "ZeroDivisionError: division by zero (own.py, line 1)"),
        ("def get_config():\n    raise RuntimeError('a\\nb')", "RuntimeError: a b (own.py, line 2)"),
        ("def get_config():\n    return {}['lr']", "KeyError: 'lr' (own.py, line 2)"),
        ("import nowhere_else", "ModuleNotFoundError: No module named 'nowhere_else' (own.py, line 1)"),
        ("def get_config():\n    return [].lr", "AttributeError: 'list' object has no attribute 'lr' (own.py, line 2)"),
    ],
)
def test_an_own_config_that_cannot_be_loaded(refused, tmp_path, source, message):
    """`--config FILE` and `--config=FILE` are the same flag."""
    path = tmp_path / "own.py"
    path.write_text(f"{source}\n")
    for words in ([f"--config={path}"], ["--config", path]):
        assert refused(*words, "--mode=keys") == f"error: the config {path} cannot be loaded: {message}"


@pytest.mark.parametrize(
    ("source", "argument", "message"),
    [
        ("x = 1", "", "the config has no function get_config()"),
        ("def get_config():\n    return 1", ":dense", "takes 0 positional arguments but 1 was given"),
        (None, "", "the config cannot be loaded: [Errno 21] Is a directory"),
    ],
)
def test_what_is_no_config(refused, tmp_path, monkeypatch, source, argument, message):
    monkeypatch.delitem(sys.modules, "config_config", raising=False)  # that of an earlier test has a get_config
    path = tmp_path / "own.py"
    path.mkdir() if source is None else path.write_text(source)
    sentence = refused(f"--config={path}{argument}", "--mode=keys")
    assert message in sentence and "config_flags" not in sentence


@pytest.mark.parametrize(("returned", "shown"), [("None", "None"), ("{'seed': 1}", "{'seed': 1}")])
def test_an_own_config_returns_a_config(refused, tmp_path, returned, shown):
    path = tmp_path / "own.py"
    path.write_text(f"def get_config():\n    return {returned}\n")
    assert f"get_config of {path} returns {shown}, which is no ConfigDict" in refused(f"--config={path}", "--mode=keys")


def test_an_error_of_types_in_an_own_config_says_where(refused, tmp_path):
    path = tmp_path / "own.py"
    path.write_text("def get_config():\n    return 'a' + 1\n")
    assert refused(f"--config={path}", "--mode=keys").endswith('(not "int") to str (own.py, line 2)')

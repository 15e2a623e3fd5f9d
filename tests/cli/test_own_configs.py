"""A user's own config that is none ends with one sentence, which says where in the file."""

import pytest

from one_layer.cli.config_files import config_of
from one_layer.system.errors import UserError


@pytest.mark.parametrize(
    ("source", "argument", "message"),
    [
        ("def get_config(:", "", "the config {} cannot be loaded: SyntaxError: invalid syntax (own.py, line 1)"),
        ("1/0", "", "the config {} cannot be loaded: ZeroDivisionError: division by zero (own.py, line 1)"),
        ("raise RuntimeError('a\\nb')", "", "the config {} cannot be loaded: RuntimeError: a b (own.py, line 1)"),
        ("def get_config():\n    return {{}}['lr']", "", "cannot be loaded: KeyError: 'lr' (own.py, line 2)"),
        ("import nowhere_else", "", "ModuleNotFoundError: No module named 'nowhere_else' (own.py, line 1)"),
        ("def get_config():\n    return 'a' + 1", "", '(not "int") to str (own.py, line 2)'),
        ("def get_config():\n    return 1", ":dense", "takes 0 positional arguments but 1 was given"),
        ("def get_config(arg):\n    raise ValueError('give sparse')", ":dense", "give sparse"),
        (
            "def get_config():\n    return None",
            "",
            "get_config of {} returns None, which is no ConfigDict; return what",
        ),
        ("x = 1", "", "{} has no function get_config(); configs/toy.py shows how it is written"),
        (None, "", "--config={} is no Python file; known in configs/ are europarl.py, "),
    ],
)
def test_an_own_config_that_is_none(tmp_path, source, argument, message):
    path = tmp_path / "own.py"
    path.mkdir() if source is None else path.write_text(f"{source.format()}\n")
    with pytest.raises(UserError) as caught:
        config_of(f"{path}{argument}", [])
    assert message.format(path) in str(caught.value) and "\n" not in str(caught.value)


def test_an_own_config_may_have_dataclasses_with_late_annotations(tmp_path):
    """dataclasses look up the module of such a class."""
    path = tmp_path / "own.py"
    path.write_text(
        "from __future__ import annotations\nimport dataclasses\nfrom configs import toy\n\n"
        "@dataclasses.dataclass\nclass Kind:\n    keep: float\n\n"
        "def get_config():\n    config = toy.get_config()\n    config.model.keep = Kind(0.25).keep\n    return config\n"
    )
    assert config_of(str(path), [])[0].model.keep == 0.25

"""Finds the project's configs from any folder, loads a config's file, and lists its keys."""

import difflib
import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ml_collections import ConfigDict

from one_layer.cli.overrides import override
from one_layer.runs.records import flatten
from one_layer.system.errors import UserError

_PACKAGE = Path(__file__).resolve().parents[1]
# The files of `configs` that are parts of the others.
_SHARED = ("__init__.py", "classification.py", "common.py", "paper.py", "sweeps.py")


def folder() -> Path:
    """The folder `configs`: in an installed package it is inside it, in a clone of the repository beside it."""
    inside = _PACKAGE / "configs"
    return inside if inside.is_dir() else _PACKAGE.parent / "configs"


def make_importable() -> None:
    """Makes `configs` a package that configs can import from, wherever it lies, unless it is one already."""
    if "configs" not in sys.modules:
        place = folder()
        spec = importlib.util.spec_from_file_location(
            "configs", place / "__init__.py", submodule_search_locations=[str(place)]
        )
        assert spec is not None
        sys.modules["configs"] = importlib.util.module_from_spec(spec)


def resolved(argument: str) -> str:
    """A word of the command line; where it names a config `configs/NAME.py` that the current folder lacks, with the project's own."""
    flag, path = re.fullmatch(r"(--?config=)?(.*)", argument, re.DOTALL).groups("")  # type: ignore[union-attr]
    name, colon, rest = path.partition(":")
    if not re.fullmatch(r"configs/\w+\.py", name) or Path(name).exists():
        return argument
    own = folder() / Path(name).name
    return f"{flag}{own}{colon}{rest}" if own.is_file() else argument


def config_of(config: str, words: Sequence[str]) -> tuple[ConfigDict, dict[str, Any]]:
    """The config FILE or FILE:ARGUMENT with the values that `words` (`--config.a.b=VALUE`) give, and these values by dotted names.

    Raises: UserError for a config that cannot be loaded, for unknown keys and for values of another type.
    """
    file, _, argument = config.partition(":")
    made = plain_config(loaded(file, "get_config"), file, argument)
    return made, override(made, words)


def loaded(file: str, *functions: str) -> ModuleType:
    """The module of a config file, which has these functions. Raises: UserError if it cannot be loaded, or lacks one."""
    path = Path(file)
    if path.suffix != ".py" or not path.is_file():
        names = [each.name for each in sorted(folder().glob("*.py")) if each.name not in _SHARED]
        near = difflib.get_close_matches(path.name, names, 1, 0.8)
        meant = f"did you mean configs/{near[0]}?" if near else f"known in configs/ are {', '.join(names)}"
        raise UserError(f"--config={file} {'is no Python file' if path.exists() else 'does not exist'}; {meant}")
    spec = importlib.util.spec_from_file_location(f"_config_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise _unloadable(file, error) from None
    for name in functions:
        if not callable(getattr(module, name, None)):
            raise UserError(f"{file} has no function {name}(); configs/toy.py shows how it is written")
    return module


def called(file: str, function: Callable[..., Any], argument: str) -> Any:
    """What `get_config` or `sweep` of a config file returns. Raises: UserError for whatever it raises."""
    try:
        return function(argument) if argument else function()
    except ValueError as error:  # a sentence for users
        raise UserError(" ".join(str(error).split())) from None
    except Exception as error:
        raise _unloadable(file, error) from None


def plain_config(module: ModuleType, file: str, argument: str) -> ConfigDict:
    """The config that the module of a file makes. Raises: UserError if it makes none."""
    plain = called(file, module.get_config, argument)
    if not isinstance(plain, ConfigDict):
        raise UserError(
            f"get_config of {file} returns {plain!r:.100}, which is no ConfigDict; return what configs/common.py makes"
        )
    return plain


def _unloadable(config: str, error: Exception) -> UserError:
    """The user's mistake behind an error of any kind that a config file raised: what a config raises is its writer's mistake."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = "" if isinstance(error, SyntaxError) else f" ({Path(last.filename).name}, line {last.lineno})"
    said = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return UserError(f"the config {config} cannot be loaded: {said}{where}")


def defaults() -> ConfigDict:
    """The config with the default of every key."""
    return importlib.import_module("configs.common").get_config()


def keys(values: dict[str, Any] | None = None) -> str:
    """The keys with their `values` (nested plain values); by default configs/common.py, where each has its default and a comment."""
    if values is None:
        return (folder() / "common.py").read_text("utf-8")
    return "\n".join(f"--config.{key}={'' if value is None else value}" for key, value in flatten(values).items())

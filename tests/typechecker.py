"""What checks the package's type hints while the tests run: beartype, with whole numbers taken for floats (PEP 484).

A check is made when its function is first called, because a test calls few of the functions that it imports. Only a function whose hints
name arrays gets a check by jaxtyping, which binds the sizes of a call to their letters, and takes much longer than beartype alone.
"""

import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from typing import Any, get_args, get_type_hints

import jaxtyping
from beartype import BeartypeConf, beartype

# A TypeError is what the call would raise without a check.
check = beartype(conf=BeartypeConf(is_pep484_tower=True, violation_type=TypeError))
_jaxtyped = jaxtyping.jaxtyped


def install() -> None:
    """Checks every module of the package that is imported after this."""
    jaxtyping.jaxtyped = _checked  # which jaxtyping's hook writes above every function and class
    jaxtyping.install_import_hook("one_layer", "tests.typechecker.check")


def _checked(*, typechecker: Callable[..., Any]) -> Callable[[Any], Any]:
    def decorate(target: Any) -> Any:
        if inspect.isfunction(target):
            return _later(target, typechecker)
        if "__init__" in vars(target) and is_dataclass(target):
            target.__init__ = _later(target.__init__, typechecker)
        return target

    return decorate


def _later(function: Callable[..., Any], typechecker: Callable[..., Any]) -> Callable[..., Any]:
    checked: Callable[..., Any] | None = None

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        nonlocal checked
        if jaxtyping.config.jaxtyping_disable:  # as a user's program, which checks no type hints
            return function(*arguments, **named)
        if checked is None:
            checked = _jaxtyped(function, typechecker=typechecker) if _of_arrays(function) else check(function)
        return checked(*arguments, **named)

    return call


def _of_arrays(function: Callable[..., Any]) -> bool:
    try:
        return any(map(_names_arrays, get_type_hints(function).values()))
    except (AttributeError, NameError):  # of a name that only a type checker has
        return True


def _names_arrays(hint: Any) -> bool:
    if isinstance(hint, list):  # the arguments of a Callable
        return any(map(_names_arrays, hint))
    return (inspect.isclass(hint) and issubclass(hint, jaxtyping.AbstractArray)) or any(
        map(_names_arrays, get_args(hint))
    )

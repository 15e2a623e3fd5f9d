"""Checks that several groups of keys have in common. Errors name a key as users type it: `model.keep`."""

from __future__ import annotations

from collections.abc import Mapping

from one_layer.system.errors import UserError


def check_known(keys: object, choices: Mapping[str, tuple[str, ...]]) -> None:
    """Raises: UserError for a key whose value is none of its choices."""
    for key, known in choices.items():
        value = getattr(keys, key)
        refuse_if(value not in known, f"model.{key} is {value!r:.200}; known are {', '.join(filter(None, known))}")


def check_rates(keys: object, *names: str) -> None:
    """Raises: UserError for a key that is no probability below 1."""
    for name in names:
        value = getattr(keys, name)
        refuse_if(not 0.0 <= value < 1.0, f"model.{name} is {value}; it must lie in [0, 1)")


def refuse_if(wrong: object, problem: str) -> None:
    """Raises: UserError with the sentence `problem` if something is wrong."""
    if wrong:
        raise UserError(problem)

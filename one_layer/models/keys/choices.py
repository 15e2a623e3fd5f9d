"""Keys that have one of some values, and their checks. Errors name a key as users type it: `model.keep`."""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any

from one_layer.system.errors import UserError


def one_of(*known: str, **default: str | None) -> Any:
    """A key with one of these values; by default the first, or `default`."""
    return field(default=default.get("default", known[0]), metadata={"known": known})


def rate() -> Any:
    """A key that is a probability below 1, by default 0."""
    return field(default=0.0, metadata={"rate": True})


def check_values(keys: Any) -> None:
    """Raises: UserError for a key whose value is not as `one_of` or `rate` says."""
    for each in fields(keys):
        value, known = getattr(keys, each.name), each.metadata.get("known")
        shown = f"model.{each.name} is {value!r:.200}"
        refuse_if(known and value not in known, f"{shown}; known are {', '.join(filter(None, known or ()))}")
        refuse_if("rate" in each.metadata and not 0.0 <= value < 1.0, f"{shown}; it must lie in [0, 1)")


def refuse_if(wrong: object, problem: str) -> None:
    """Raises: UserError with the sentence `problem` if something is wrong."""
    if wrong:
        raise UserError(problem)

"""Turns plain values (from a ConfigDict or JSON) into frozen records, with errors that name the key."""

import difflib
from collections.abc import Iterable
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from one_layer.system.errors import UserError
from one_layer.system.files import at_home
from one_layer.system.removed import IDLE, refuse_removed

Record = TypeVar("Record")

_LARGEST = 10**18  # of any number: larger ones mean nothing, and do not fit what computes with them
_hints = cache(get_type_hints)

# Where files of the text lie. A run recognises its text by the content.
PLACES_OF_TEXT = ("data.directory", "data.bpe_codes", "data.vocabulary", "data.translations")
# What is logged, stored and given up, and when.
_WITHOUT_EFFECT = (
    *("data.store", "evaluation.max_tokens", "evaluation.buckets"),
    *(
        f"train.{name}"
        for name in ("log_every", "checkpoint_minutes", "check_memory", "keep_last", "keep_best", "unroll")
    ),
)
# Keys that a later version added or took away, with the value for what the program does without them. Keys that were off
# (False, 0 or empty) are not here.
LATER = {
    **{"data.block": 512, "data.delimiter": ",", "data.mask_share": 0.15, "data.unit": "bytes"},
    **{**IDLE, "data.teacher_mix": "translations"},
    **{"model.block": "paper", "model.norm_position": "post", "model.norm_epsilon": 1e-5, "model.rotary_base": 10000.0},
    **{"model.reservoir": "transformer"},
    **{"model.gains": "none"},
    **{"model.score_constant": 0.5, "model.reservoir_direction": "auto", "model.init_qk_gain": 1.0},
    **{"model.trained_precision": "float32", "model.vector_precision": "float32", "optim.moments": "float32"},
    **{"train.backskip": "off", "train.init_scores": "drawn"},
}


def record(kind: type[Record], section: str, values: dict[str, Any], ignored: Iterable[str] = ()) -> Record:
    """The record of a config's section; unknown keys that are in `ignored` are left out.

    Raises: UserError for an unknown key (it suggests the nearest known one), and for a value of another type or out of range.
    """
    hints = _hints(kind)  # type: ignore[arg-type]  # mypy takes the class for one of its records, which may not be hashable
    values = {
        name: _meant(value, hints.get(name)) for name, value in values.items() if name in hints or name not in ignored
    }
    refuse_unknown(f"{section}.", values, set(hints))
    for name, value in values.items():
        if not fits(value, hints[name]):
            expected = str(hints[name]) if get_args(hints[name]) else hints[name].__name__
            raise UserError(f"{section}.{name} is {value!r:.200}; it takes a value of type {expected}")
        if isinstance(value, str) and "\0" in value:
            raise UserError(f"{section}.{name} is {value!r:.200}; it takes text without the character NUL")
        if isinstance(value, (int, float)) and not abs(value) <= _LARGEST:  # also refuses nan
            shown = f"{value!r}" if isinstance(value, float) else "a number of more than 18 digits"
            raise UserError(f"{section}.{name} is {shown}; it takes a number from -10**18 to 10**18")
    return kind(**values)


def _meant(value: Any, hint: Any) -> Any:
    """A value with `~/` at its start replaced (see `at_home`). In a list of texts, a whole number is the text of its digits: a test set
    may be called 2014, which the command line takes for a number. There, a comma stands between two texts. A key that is one text takes
    no number.
    """
    if isinstance(value, tuple) and str in get_args(hint):
        several = (each.split(",") if isinstance(each, str) else [each] for each in value)
        value = tuple(str(each) if type(each) is int else each for texts in several for each in texts)
    if isinstance(value, tuple):
        return tuple(_meant(each, None) for each in value)
    return at_home(value) if isinstance(value, str) else value


def fits(value: Any, hint: Any) -> bool:
    """Whether a plain value has a field's type. A whole number counts as a float; true and false do not count as numbers."""
    if isinstance(hint, UnionType):
        return any(fits(value, each) for each in get_args(hint))
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(fits(each, get_args(hint)[0]) for each in value)
    if hint in (int, float):
        return isinstance(value, (int, hint)) and not isinstance(value, bool)
    return isinstance(value, hint)


def refuse_unknown(prefix: str, values: Iterable[str], known: set[str]) -> None:
    """Raises: UserError for a name that is not in `known`; it suggests the nearest known name, or says that this key is gone."""
    for name in values:
        if name not in known:
            refuse_removed([f"{prefix}{name}"])
            near = difflib.get_close_matches(name, known, 1, 0.8) or sorted(
                each for each in known if each.startswith(name)
            )
            near = near or difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {prefix}{near[0]}?" if near else "configs/common.py declares all keys"
            raise UserError(f"unknown key {prefix}{name} in the config; {hint}")


def changes_scores(name: str) -> bool:
    """Whether a key of the config (by its dotted name) can change a score of a run that ends, by more than the order of additions."""
    return not name.startswith("mesh.") and name not in _WITHOUT_EFFECT


def replaced(config: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """The nested plain values of a config with other values of some keys, by dotted names."""
    new = {name: dict(value) if isinstance(value, dict) else value for name, value in config.items()}
    for name, value in values.items():
        section, _, key = name.rpartition(".")
        (new[section] if section else new)[key] = value
    return new


def flatten(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Joins nested keys by dots and turns tuples into lists, so that a config read from JSON compares equal."""
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = list(value) if isinstance(value, tuple) else value
    return flat

"""The keys in which the config of a run differs from that of another run, or from its own of before, and what may differ."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from one_layer.runs.records import flatten
from one_layer.runs.settings import RunConfig, left_open
from one_layer.runs.sources import WORDS
from one_layer.system.errors import UserError

# The keys of `data` by which raw text becomes pieces, but for the codes.
STEPS = ("tokenize", "normalize", "split_hyphens", "lowercase", "bpe_kind")


def changes(before: dict[str, Any], run: RunConfig) -> dict[str, tuple[Any, Any]]:
    """The keys (by dotted names) whose values are others in `run` than in `before`, a resolved config, with both values.

    Keys that `run` leaves open are left out, because a resumed run takes the old values. So are keys that only one of the two has, because
    their tasks differ.
    """
    now, open_ = flatten(run.raw), left_open(run)
    differing = [name for name in sorted(before.keys() & now.keys()) if before[name] != now[name]]
    return {name: (before[name], now[name]) for name in differing if name not in open_}


def may_change(name: str, values: tuple[Any, Any], run: RunConfig) -> bool:
    """Whether a key (by its dotted name) may change when a run is resumed: from the first of two values to the second, that of `run`.

    Keys that only say how long to train, how to score test sets or where files lie may change: a run recognises its text by its content.
    Keys that decide the validation score may not, because that score selects the best checkpoint. The number of updates may change only
    if neither the schedule nor the softness of signs depends on it.
    """
    if name in ("train.updates", "train.epochs"):
        return run.optim.schedule == "inverse_sqrt" and not run.optim.softness
    section, _, key = name.partition(".")
    if name in ("data.bpe_codes", "data.vocabulary", "data.translations"):  # another place; there must be one
        return all(values)
    if name in WORDS:
        return _moved(*values)
    if section == "mesh":  # results differ by the order of additions alone
        return True
    if section == "evaluation":
        return key not in run.task.validated_by
    free = ("patience", "log_every", "checkpoint_minutes", "check_memory")
    return name in ("data.store", "data.directory", *(f"train.{each}" for each in free))


def _moved(before: str, now: str) -> bool:
    """Whether a run, or a ticket in its folder, has the same name in another place, or is there by another path."""
    if not (before and now) or "{" in before:  # of a sweep, whose folder may move, or of files by language
        return False
    one, other = Path(before), Path(now)
    last = 2 if one.suffix == ".safetensors" else 1
    return one.resolve() == other.resolve() or (one.parts[-last:] == other.parts[-last:] and not one.exists())


def refuse_others(pairs: Iterable[tuple[str, Any, Any]], why: str) -> None:
    """Raises: UserError that begins with `why` and names all keys whose two values, here and in another run, differ."""
    different = [(key, here, there) for key, here, there in pairs if here != there]
    if different:
        listed = ", ".join(f"{key} is {here!r}, but it is {there!r} there" for key, here, there in different)
        raise UserError(f"{why}: {listed}; give {' '.join(f'--config.{key}={there}' for key, _, there in different)}")

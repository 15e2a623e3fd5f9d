"""A selection of one's own: `model.selection=module:Class` names a class that extends `one_layer.supermask.Supermask`."""

import importlib
from functools import lru_cache

import numpy as np

from one_layer.supermask import SELECTIONS, Supermask
from one_layer.system.errors import UserError

_TRIED = (16, 32)  # the shape of the scores that a new class is tried with


def is_own(selection: str) -> bool:
    """Whether the name of a selection is that of a class and not one of `SELECTIONS`."""
    return ":" in selection


@lru_cache(maxsize=64)
def own_class(selection: str) -> type[Supermask]:
    """The class that `selection`, `module:Class`, names. Its code runs: only a user's own config may name it, never a ticket.

    Raises: UserError if there is no such class, if it does not extend Supermask, or if its masks are none.
    """
    module, _, name = selection.partition(":")
    how = f"model.selection is {selection!r:.200}: "
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:  # whatever the user's module raises
        raise UserError(
            f"{how}{error}; give module:Class, and the folder of the module in PYTHONPATH if it is not the current one"
        ) from None
    if not (isinstance(found, type) and issubclass(found, Supermask)):
        raise UserError(
            f"{how}it is no class that extends one_layer.supermask.Supermask; see examples/own_selection.py"
        )
    if found.temperature is not None:  # the class's own, whether a field or not
        raise UserError(
            f"{how}its `temperature` is {found.temperature!r:.60}, but by the field of this name Supermask softens signs; rename it"
        )
    scores = np.random.default_rng(1).normal(size=_TRIED).astype(np.float32)
    try:
        mask = found(selection=selection)
        entries = np.asarray(mask.select(scores))
    except Exception as error:  # whatever the user's class raises
        raise UserError(
            f"{how}it cannot make a mask of scores {list(scores.shape)} ({type(error).__name__}: {error}); mend the class, which is "
            "made with the fields of Supermask alone"
        ) from error
    if entries.shape != scores.shape or entries.dtype != np.int8 or not np.isin(entries, mask.values).all():
        raise UserError(
            f"{how}of scores {list(scores.shape)}, its `select` makes {entries.dtype} {list(entries.shape)} with values from "
            f"{entries.min()} to {entries.max()}; it must make int8 of the same shape, with the values {', '.join(map(str, mask.values))}"
        )
    if found.stored_as and found.stored_as not in SELECTIONS:
        raise UserError(f"{how}its stored_as is {found.stored_as!r:.60}; give one of {', '.join(SELECTIONS)}")
    return found


def stored_as(mask: Supermask) -> str:
    """The selection by which a ticket stores the bits of a mask. Raises: UserError for a class that does not say it."""
    if not is_own(mask.selection):
        return mask.selection
    if not mask.stored_as:
        raise UserError(
            f"model.selection is {mask.selection}, which does not say how its bits are stored, so there are no tickets and pages of it; "
            "give the class stored_as='threshold' for masks of 0 and 1, 'signed_threshold' for -1, 0 and 1, or 'sign' for -1 and 1"
        )
    stored = Supermask(mask.keep, mask.stored_as)
    if (stored.values, stored.mean_square) != (mask.values, mask.mean_square) or stored.exact:
        raise UserError(
            f"model.selection is {mask.selection}, which is stored as {mask.stored_as}, whose masks have other values, or whose "
            "scores do not decide how many weights are kept; give another stored_as, or model.keep=1 for sign"
        )
    return mask.stored_as

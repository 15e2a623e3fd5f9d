"""Limits on the memory and time that a ticket may take, checked from its settings before any array is made.

A file of a few kilobytes can describe a model of any depth and a search of any width. Settings far beyond any honest ticket are refused.
Limits that depend on the size of the file are in `one_layer.tickets.content`.
"""

import math
from collections.abc import Iterable

from one_layer.initializers import ORTHOGONAL, Recipe
from one_layer.layers.freezing import STACKS
from one_layer.system.errors import UserError
from one_layer.tickets.settings import Settings

_MOST_LAYERS = 256  # in a stack: each layer may have random matrices of its own, and a cache
_MOST_TYPES = 2**20  # in a vocabulary, whose tokens are Python objects
_LONG_LINE, _SHORT_LINE = 256, 16  # tokens
# Of a long line; of as many short lines as a batch has, which the user must give; and of the context of a language model.
_MOST_BYTES = {"line": 2**31, "batch": 2**39, "context": 2**33}
_MOST_OPERATIONS = 2**43  # of a long line
_MOST_ORTHOGONAL = 2**37  # multiplications; ten layers of RoBERTa_large (d 1024, ffn 4096) take less


def check_drawing(recipes: Iterable[Recipe]) -> None:
    """Raises: UserError for orthogonal matrices that would take long to draw: the time grows with rows · columns²."""
    work = sum(math.prod(recipe.whole_shape) * min(recipe.shape) for recipe in recipes if recipe.scheme == ORTHOGONAL)
    if work > _MOST_ORTHOGONAL:
        raise UserError(
            f"its orthogonal matrices would take {work:,} multiplications to draw; a ticket's may take at most {_MOST_ORTHOGONAL:,}"
        )


def check_work(settings: Settings) -> None:
    """Raises: UserError, which names the setting that is too large."""
    config, evaluation, task = settings.config, settings.evaluation, settings.task
    sizes = {f"{stack}_layers": (config.depth(stack), _MOST_LAYERS) for stack in STACKS}
    sizes |= {f"{side}_vocab": (getattr(config, f"{side}_vocab"), _MOST_TYPES) for side in ("source", "target")}
    for name, (value, most) in sizes.items():
        if value > most:
            raise UserError(f"model.{name} is {value:,}; a ticket's is at most {most:,}")
    long, short = (task.line_work(config, evaluation, tokens) for tokens in (_LONG_LINE, _SHORT_LINE))
    lines = max(1, evaluation.max_tokens // _SHORT_LINE)
    shown = ", ".join(f"evaluation.{name} {value}" for name, value in vars(evaluation).items())
    taken = {"line": long.bytes, "batch": lines * short.bytes}
    if settings.data.streamed:  # it keeps the keys and values of a whole context when it writes, and scores one at once
        shown = f"data.block {settings.data.block}, {shown}"
        taken["context"] = task.line_work(config, evaluation, settings.data.block).bytes
    for what, size in taken.items():
        if size > _MOST_BYTES[what]:
            raise UserError(
                f"its model, with {shown}, would take {size:,} bytes for a {what}; a ticket may take at most {_MOST_BYTES[what]:,}"
            )
    if long.operations > _MOST_OPERATIONS:
        raise UserError(
            f"its model, with {shown}, would take {long.operations:,} operations for a line; a ticket may take at most "
            f"{_MOST_OPERATIONS:,}"
        )

"""Layer strings: one letter for each layer of a stack, from the input to the output.

`L` is an updatable layer, `R` a reservoir (random, never updated) and `S` the shared random layer under a Supermask of its own.
Reservoirs alternate with updatable layers (Shen et al. 2021, arXiv 2012.15045, section 2).
"""

import re

from one_layer.system.errors import UserError

LETTERS = {"L": "updatable layer", "R": "reservoir", "S": "shared random layer under a mask"}

_SHORT = re.compile(r"(\d{1,4})([LS])\+(\d{1,4})R")
_FORMS = (
    "give a number of layers, a string of the letters L (updatable), R (reservoir) and S (shared random layer under a mask), for "
    "instance LRLRL, or a number of layers with a number of reservoirs between them, for instance 4L+3R"
)


def expand(key: str, value: int | str, letter: str) -> str:
    """The letters of a stack. `value` is a number of layers of the kind `letter`, a string of letters, or a short form such as `4L+3R`.

    The short form is the placement of arXiv 2012.15045: reservoirs alternate with the other layers from the middle outward, so that
    `4L+3R` is LRLRLRL and `5L+2R` is LLRLRLL. Where the middle lies between two places, the reservoirs are nearer to the input.

    Raises: UserError, which names `key`, for any other string, and for more reservoirs than the places before, between and after the
    other layers.
    """
    if isinstance(value, int):
        return letter * value
    if short := _SHORT.fullmatch(value):
        return _alternating(key, value, short[2], int(short[1]), int(short[3]))
    if not value or set(value) - set(LETTERS):
        raise UserError(f"model.{key} is {value!r:.200}; {_FORMS}")
    return value


def _alternating(key: str, value: str, letter: str, layers: int, reservoirs: int) -> str:
    if reservoirs > layers + 1:
        raise UserError(
            f"model.{key} is {value!r:.200}, but {layers} layers have only {layers + 1} places for reservoirs: before, between and after "
            "them; give fewer reservoirs"
        )
    span = max(2 * reservoirs - 1, 0)
    before = (layers + reservoirs - span) // 2
    middle = letter.join("R" * reservoirs)
    return letter * before + middle + letter * (layers + reservoirs - span - before)


def segments(pattern: str) -> list[tuple[str, int]]:
    """The pattern as a list of (unit, repetitions), for instance LLRLRLL as L·2, RL·2, L·1.

    A scan over the repetitions compiles each unit once. Of all ways to cut the pattern, this is one with the fewest layers to compile,
    so the time to compile does not grow with the depth of a periodic pattern.
    """
    best: list[tuple[int, list[tuple[str, int]]]] = [(0, [])]
    for end in range(1, len(pattern) + 1):
        found: list[tuple[int, list[tuple[str, int]]]] = []
        for start in range(end):
            cost, before = best[start]
            text = pattern[start:end]
            unit = text[: (text + text).index(text, 1)]  # the shortest one that gives the text when it is repeated
            found.append((cost + len(unit), [*before, (unit, len(text) // len(unit))]))
        best.append(min(found, key=lambda each: (each[0], len(each[1]))))
    return best[-1][1]

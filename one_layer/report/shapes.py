"""What a report reads of the files of runs, and whether a file has it.

A shape is a type (`int | None`; a `float` must be finite), a list of one shape, or an object: its keys with a shape for each, of which
those that end in `?` may be missing, or `EACH` with the shape of all its values. An object may have further keys.
"""

import math
from typing import Any

from one_layer.report.naming import MEASURES
from one_layer.runs.records import fits
from one_layer.system.errors import UserError

EACH = ""
_MEND = "restore the file, or leave the run out"
NUMBER = int | float  # also one that is not finite
_SEARCH = {"beam?": int | None, "stride?": int | None}
_SEARCH |= {f"{name}?": NUMBER | None for name in ("length_penalty", "max_length_a", "max_length_b")}
_SCORES = {f"{name}?": float for name in MEASURES} | _SEARCH
_COST = {"train_seconds": float | None, "train_flops": float | None}
_SOURCES = [{"key": str, "path": str, **_COST, "parts?": {EACH: _COST}}]
CONFIG = {
    "seed?": int,
    "model?": {
        **{"keep?": float, "d_model?": int, "ffn?": int, "layerdrop?": float},
        **{"encoder_layers?": int | str, "decoder_layers?": int | str},
    },
    "data?": {"tests?": [str], "mask_share?": float},
    "evaluation?": _SEARCH,
    "train?": {"updates?": int | None, "epochs?": int | None},
}
RESULT = {
    "config?": CONFIG,
    "overrides?": [str],
    "test?": {EACH: _SCORES},
    "examples?": {EACH: [{"source": str, "reference": str, "hypothesis": str}]},
    "data?": {EACH: str},
    "valid?": {"select?": str, "score?": NUMBER},
    "train_seconds?": float,
    "bytes?": {EACH: int},
    "steps?": int,
    "skipped_updates?": int,
    "train_flops?": float | None,
    "sources?": _SOURCES,
    "device?": str | None,
    "members?": int | str | None,
}
EVALUATION = {"split": str, "step?": int, "layers?": {EACH: str}, "fingerprint?": str, "file_bytes?": int}
EVALUATION |= {"ticket_checkpoint?": str, "engine?": str, **_SCORES}
VALIDATED = {"seconds": float, "train/flops?": float}  # a line of metrics with a validation
IDENTITY = {"text?": {EACH: str}, "sources?": _SOURCES}
SWEEP = {"runs?": {EACH: {"config?": CONFIG, "words?": [str]}}}

_WORDS = {
    **{int: "a whole number", float: "a number", str: "text", int | str: "a whole number or text"},
    **{NUMBER: "a number", NUMBER | None: "a number or null", int | None: "a whole number or null"},
    **{float | None: "a number or null", str | None: "text or null", int | str | None: "a whole number, text or null"},
}


def check(place: object, value: Any, shape: Any, name: str = "") -> None:
    """Raises: UserError, which begins with `place` and names the key, if `value` does not have the shape."""
    if isinstance(shape, dict):
        _expect(isinstance(value, dict), place, name, value, "an object")
        every = shape.get(EACH)
        wanted = dict.fromkeys(value, every) if every is not None else shape
        for key, inner in wanted.items():
            known = key.removesuffix("?") if every is None else key
            inside = f"{name}.{known}" if name else known
            if known in value:
                check(place, value[known], inner, inside)
            elif not key.endswith("?"):
                raise UserError(f"{place} lacks {inside}; {_MEND}")
    elif isinstance(shape, list):
        _expect(isinstance(value, list | tuple), place, name, value, "a list")
        for number, each in enumerate(value):
            check(place, each, shape[0], f"{name}[{number}]")
    else:
        _expect(fits(value, shape), place, name, value, _WORDS[shape])
        finite = shape is not float or isinstance(value, int) or math.isfinite(value)
        _expect(finite, place, name, value, "a finite number")


def _expect(holds: bool, place: object, name: str, value: Any, words: str) -> None:
    if not holds:
        raise UserError(f"{place}: {name} is {value!r:.100}, but must be {words}; {_MEND}")

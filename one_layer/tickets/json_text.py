"""JSON from strangers, as docs/ticket-format.md has it: `one_layer/page/engine/json.js` reads the same texts."""

import sys
from typing import Any

from one_layer.data.sources.table import Twice, json_value
from one_layer.system.errors import UserError

_DEEPEST = 100  # lists and objects in each other


def damaged(problem: str) -> UserError:
    """The error for a damaged file; `problem` says what is wrong with it."""
    return UserError(f"{problem}; the file is damaged or not a ticket: copy it again, or export it again from its run")


def parse(text: str | bytes, what: str) -> Any:
    """The value of a JSON text in UTF-8 (RFC 8259) without a byte order mark. Errors call the text `what`.

    Raises: UserError for another text, a name twice in one object, a number that float64 does not hold, and lists or objects more than
    `_DEEPEST` deep.
    """
    try:
        value = json_value(text if isinstance(text, str) else text.decode())
        _check_values(value, _DEEPEST)
    except Twice as error:
        raise damaged(f"{what} is not valid JSON ({error})") from None
    except (ValueError, RecursionError):  # also for invalid UTF-8, and integers of thousands of digits
        raise damaged(f"{what} is not valid JSON") from None
    return value


def _check_values(value: Any, deepest: int) -> None:
    """Raises: ValueError for half a character in a text, a number beyond float64, and what is nested more than `deepest` deep."""
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, (int, float)) and not abs(value) <= sys.float_info.max:
        raise ValueError("neither infinity nor nan is JSON")
    elif isinstance(value, (dict, list)):
        if not deepest:
            raise ValueError("too deep")
        for each in (*value.keys(), *value.values()) if isinstance(value, dict) else value:
            _check_values(each, deepest - 1)

"""The values of `data.columns` and `data.mix`: which columns of a table are read, and what shares several corpora have."""

import re
from collections.abc import Sequence

from one_layer.system.errors import UserError

_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")


def column_names(columns: str) -> tuple[str, ...]:
    """The columns in a text such as `premise,hypothesis,label` or `1,2,3`."""
    return tuple(each.strip() for each in columns.split(",")) if columns else ()


def check_columns(source: str, columns: str, delimiter: str, languages: tuple[str, str]) -> None:
    """Raises: UserError for columns that a table cannot have, and for a delimiter that is not one character."""
    names = column_names(columns)
    if source == "tsv" and len(names) != 2:
        raise UserError(
            f"data.columns={columns!r:.200} must name two columns, the {languages[0]!r:.200} text and then the {languages[1]!r:.200} "
            "text: give their names in the header, or numbers if there is none, for instance 1,2"
        )
    numbers = [name.lstrip("0") for name in names if name.isdecimal()]
    twice = len(set(names)) < len(names) or len(set(numbers)) < len(numbers)
    if twice or "" in numbers or 0 < len(numbers) < len(names):
        raise UserError(
            f"data.columns={columns!r:.200} must be different names, or, for files without a header, numbers from 1"
        )
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise UserError(f"data.delimiter={delimiter!r:.200} must be one character, for instance , or ;")


def grouped(columns: str, corpora: int) -> list[str]:
    """The columns of each of several corpora. Raises: UserError if there are neither one group of them nor one for each corpus."""
    groups = [each.strip() for each in columns.split(";")]
    if len(groups) not in (1, corpora):
        raise UserError(
            f"data.columns={columns!r:.200} has {len(groups)} groups for {corpora} corpora: give one group of columns for all, or one for "
            "each, with ; between them; an empty group is a pair of files, NAME.LANGUAGE"
        )
    return groups * (corpora // len(groups))


def shares_of(mix: str, names: Sequence[str]) -> list[float]:
    """The shares that `data.mix` gives to the corpora of these names; none if it is empty.

    Raises: UserError for names that are empty or equal, and for anything but a number above 0 for each of several.
    """
    if len(names) > 1 and ("" in names or len(set(names)) < len(names)):
        raise UserError(f"data.train={','.join(names)!r:.200} must be different names with commas between them")
    if not mix:
        return []
    shares = [float(share) for share in mix.split(":") if _NUMBER.fullmatch(share)]
    if not mix.count(":") + 1 == len(shares) == len(names) > 1 or not all(0 < share < 1e9 for share in shares):
        raise UserError(
            f"data.mix={mix!r:.200} must have a number above 0 for each of several corpora in data.train, for instance data.mix=2:1 with "
            "data.train=one,two (and data.source=text or tsv)"
        )
    return shares

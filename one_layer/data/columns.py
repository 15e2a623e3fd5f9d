"""The value of `data.columns`: which columns of a table are read."""

from __future__ import annotations

from one_layer.system.errors import UserError


def check_columns(source: str, columns: str, delimiter: str, languages: tuple[str, str]) -> None:
    """Raises: UserError for columns that a source of this kind cannot have, and for a delimiter that is not one character."""
    names = [column.strip() for column in columns.split(",")] if columns else []
    if columns and source not in ("tsv", "labelled"):
        raise UserError(f"data.columns is for tables only: leave it out with data.source={source!r:.200}")
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

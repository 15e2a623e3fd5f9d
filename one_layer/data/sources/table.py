"""Reads tables of text, row by row: tab-separated text, CSV, and JSON lines, each plain or .gz.

The name of the file says its kind, in small letters or capitals: `.csv`; `.jsonl`, `.ndjson` or `.json`; every other file has tabs between
its columns. Only CSV has quotation marks around values; in tab-separated text they are part of the text.
"""

import csv
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from one_layer.data.text.lines import existing_file, stream_lines
from one_layer.system.errors import UserError, counted

_JSON = (".jsonl", ".ndjson", ".json")
# Characters of a CSV value: a quotation mark that is not closed must not read a huge file into memory.
_LONGEST = 1 << 24
Row = tuple[int, list[str]]  # the number of a line of the file, from 1, and the values of its columns


def table_kind(path: Path) -> str:
    """`csv`, `json` or `tsv`: what the name of a file says about its table."""
    name = path.name.lower().removesuffix(".gz")
    return "json" if name.endswith(_JSON) else "csv" if name.endswith(".csv") else "tsv"


class Twice(ValueError):
    """An object that has a name twice."""


def json_value(text: str) -> Any:
    """What a JSON text says. Raises: ValueError or RecursionError for what is no JSON, and `Twice`."""
    return json.loads(text, object_pairs_hook=_each_once)


def _each_once(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(entries)
    if len(found) < len(entries):
        twice = next(name for name, count in Counter(name for name, _ in entries).items() if count > 1)
        raise Twice(f"it has {twice!r:.60} twice")
    return found


@dataclass(frozen=True)
class Table:
    """The rows of a file, read anew by every iteration. Empty lines are left out.

    `columns` are names, which the first line (or every JSON object) has, or numbers from 1, where the file has no header. `delimiter`
    stands between the values of a CSV file. Every row has as many values as the first one: with more or fewer, nobody knows which of
    them belong to which column. With a list `broken`, other lines are left out, and the numbers of those that
    are not blank are added to it.

    Raises, while it is read: UserError that names the file and the line, for a row of another width, a column that is missing or there
    twice, and a value that is no text.
    """

    path: Path
    columns: tuple[str, ...]
    delimiter: str = ","
    broken: list[int] | None = None

    def first(self) -> list[str]:
        """The values of the first line, or the names in the first JSON object."""
        return [*self._first(self._objects() if table_kind(existing_file(self.path)) == "json" else self._rows())[1]]

    def __iter__(self) -> Iterator[Row]:
        kind = table_kind(existing_file(self.path))
        if kind == "json":
            for number, record in self._objects():
                yield number, [self._text(number, record, name) for name in self.columns]
            return
        rows = self._rows()
        first = self._first(rows)
        places = [int(name) - 1 for name in self.columns] if self.numbered else self._header(*first)
        for number, cells in chain([first] if self.numbered else [], rows):
            if self.broken is not None and len(cells) != len(first[1]):
                self.broken.extend([number] if "".join(cells).strip() else [])
                continue
            shown = f"{'|'.join(cells)[:60]!r} has {counted(len(cells), 'column')}"
            if len(cells) <= max(places):
                raise self._error(number, f"{shown}, too few for {self._asked}")
            if len(cells) != len(first[1]):
                hint = (
                    f"write a value that contains {self.delimiter!r} in quotation marks"
                    if kind == "csv"
                    else "a value cannot contain a tab"
                )
                raise self._error(number, f"{shown}, but line {first[0]} has {len(first[1]):,}; {hint}")
            yield number, [cells[place] for place in places]

    @property
    def numbered(self) -> bool:
        """Whether the columns are numbers, so that the file has no header."""
        return all(name.isdecimal() for name in self.columns)

    @property
    def _asked(self) -> str:
        return f"data.columns={','.join(self.columns)}"

    def _rows(self) -> Iterator[Row]:
        if table_kind(self.path) == "csv":
            return self._quoted()
        return ((number, line.split("\t")) for number, line in enumerate(stream_lines(self.path), start=1) if line)

    def _first(self, rows: Iterator[tuple[int, Any]]) -> tuple[int, Any]:
        first = next(rows, None)
        if first is None:
            raise UserError(f"{self.path} has only empty lines; give a table with at least one row")
        return first

    def _quoted(self) -> Iterator[Row]:
        csv.field_size_limit(_LONGEST)  # of the process; the default, 2^17, is too few for documents
        # A value in quotation marks may contain line ends, which stream_lines has removed.
        row: list[str] = []  # the lines of a row, as they are

        def lines() -> Iterator[str]:
            for line in stream_lines(self.path):
                row.append(line)
                yield line + "\n"

        reader = csv.reader(lines(), delimiter=self.delimiter, strict=True)
        first = 1  # line of the row, which may end in a later one
        try:
            for cells in reader:
                self._check_marks(first, cells, "\n".join(row))
                if cells:
                    yield first, cells
                row.clear()
                first = reader.line_num + 1
        except csv.Error as error:
            hint = f"close the quotation marks, or write one in a value as two; a value has at most {_LONGEST:,} characters"
            raise self._error(first, f"it is not valid CSV ({error}); {hint}") from None

    def _check_marks(self, number: int, cells: list[str], row: str) -> None:
        """Raises: UserError for a value after a space whose quotation marks would be taken for text. `row`: the row as it is."""
        for cell in cells:
            if cell.lstrip(" ")[:1] == '"' != cell[:1] and f"{self.delimiter}{cell}" in f"{self.delimiter}{row}":
                hint = f"write its quotation mark directly after the {self.delimiter!r}"
                raise self._error(number, f"the value {cell[:60]!r} begins with a space; {hint}")

    def _header(self, number: int, cells: list[str]) -> list[int]:
        """The places of the columns. `number`, `cells`: the first row."""
        known = [cell.strip() for cell in cells]
        for name in self.columns:
            if known.count(name) > 1:
                raise self._error(
                    number,
                    f"the column {name!r} of {self._asked} is there {known.count(name)} times; give each its own name",
                )
            if name not in known:
                hint = (
                    "set data.delimiter"
                    if len(known) == 1 and table_kind(self.path) == "csv"
                    else ("give names of the first line; in a file without a header, give numbers, for instance 1,2")
                )
                raise self._error(
                    number, f"there is no column {name!r} of {self._asked} among {', '.join(known)[:200]!r}; {hint}"
                )
        return [known.index(name) for name in self.columns]

    def _objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in enumerate(stream_lines(self.path), start=1):
            if not line.strip():
                continue
            try:
                record = json_value(line)
            except (ValueError, RecursionError) as error:
                raise self._error(number, f"{error}; each line needs a whole JSON object") from None
            if not isinstance(record, dict):
                raise self._error(number, f"{line[:60]!r} is not a JSON object; write one object on each line")
            yield number, record

    def _text(self, number: int, record: dict[str, Any], name: str) -> str:
        if name not in record:
            raise self._error(number, f"there is no {name!r} of {self._asked} among {', '.join(record)[:200]!r}")
        value = record[name]
        if isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value):
            return value
        if isinstance(value, (bool, int)):  # for instance a label that is a number
            return json.dumps(value)
        raise self._error(number, f"{name!r} is {value!r:.60}; it must be a text")

    def _error(self, number: int, what: str) -> UserError:
        return UserError(f"{self.path}, line {number}: {what}")

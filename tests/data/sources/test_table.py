"""Tables of every kind give the same rows, and what does not fit is named with its line."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from one_layer.data.columns import column_names
from one_layer.data.sources import table
from one_layer.data.sources.table import Table
from tests import user_error

ROWS = [("Ein „Haus“.", "a; house, here"), ('Er sagt "ja".', "he says: 'yes'"), ("1\u20282", "null")]


def quoted(text: str, delimiter: str = ",") -> str:
    return delimiter.join(f'"{cell}"' for cell in (each.replace('"', '""') for each in text.split("\t")))


TABBED = "".join(f"{a}\tx\t{b}\n" for a, b in ROWS)
KINDS = {
    "header.tsv": "de\tid\ten\n" + TABBED,
    "crlf.txt": ("de\tid\ten\n" + TABBED).replace("\n", "\r\n"),
    "header.csv": "de,id,en\n" + "".join(quoted(f"{a}\tx\t{b}") + "\n" for a, b in ROWS),
    "objects.jsonl": "".join(json.dumps({"en": b, "id": 3, "de": a}) + "\n\n" for a, b in ROWS),
}


def read(path: Path, columns: str, delimiter: str = ",") -> list[tuple[str, ...]]:
    return [tuple(cells) for _, cells in Table(path, column_names(columns), delimiter)]


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_gives_the_same_rows(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(KINDS[name].encode())
    assert read(tmp_path / name, "de,en") == ROWS
    (tmp_path / f"zipped_{name}.gz").write_bytes(gzip.compress(KINDS[name].encode()))
    found = Table(tmp_path / f"zipped_{name}", ("en", "de"))
    assert [cells for _, cells in found] == [cells for _, cells in found] == [[b, a] for a, b in ROWS]


def test_a_space_before_a_quotation_mark_of_the_text_itself_is_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('de,en\n" ""x"" y", z\n')
    assert read(tmp_path / "a.csv", "de,en") == [(' "x" y', " z")]


def test_without_a_header_columns_have_numbers(tmp_path: Path) -> None:
    (tmp_path / "bare.tsv").write_text(TABBED)
    assert read(tmp_path / "bare.tsv", "1,3") == ROWS
    (tmp_path / "bare.csv").write_text(quoted("a\tb", ";") + "\n" + '"two\nlines";c\n')
    assert read(tmp_path / "bare.csv", "2,1", ";") == [("b", "a"), ("c", "two\nlines")]


def test_a_value_may_be_a_whole_document_but_not_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = "two words\n" * 40_000
    (tmp_path / "a.csv").write_text(f'de,en\n"{long}",y\n')
    assert read(tmp_path / "a.csv", "de,en") == [(long, "y")]
    monkeypatch.setattr(table, "_LONGEST", len(long) - 1)
    with user_error(r"line \d+: it is not valid CSV .*; a value has at most 399,999 characters"):
        read(tmp_path / "a.csv", "de,en")


@pytest.mark.parametrize(
    ("name", "text", "columns", "message"),
    [
        ("a.tsv", "de\ten\nx\ty\nz\n", "de,en", r"a.tsv, line 3: 'z' has 1 column, too few for data.columns=de,en"),
        ("a.tsv", "x\ty\n", "de,en", r"line 1: there is no column 'de' .* among 'x, y'; .* numbers, for instance 1,2"),
        ("a.csv", "de;en\n", "de,en", r"line 1: there is no column 'de' .* among 'de;en'; set data.delimiter"),
        ("a.csv", 'de,en\n"x,y\n', "de,en", r"line 2: it is not valid CSV .*close the quotation marks"),
        ("a.csv", 'de,en\na,b\n"x,y\nc,d\n', "de,en", r"line 3: it is not valid CSV"),  # where it is to be mended
        ("a.csv", 'de,en\na,b\n"x\ny"\n', "de,en", r"line 3: .* has 1 column"),
        ("a.csv", 'de,en\n"a", "b"\n', "de,en", r"line 2: the value ' \"b\"' begins with a space; write its quotation"),
        ("a.json", '[{"de": "x"}]\n', "de", r"line 1: .* is not a JSON object; write one object on each line"),
        ("a.jsonl", '{"de": "x"}\n{"de"\n', "de", r"line 2: .*each line needs a whole JSON object"),
        ("a.jsonl", '{"en": "x"}\n', "de", r"line 1: there is no 'de' .* among 'en'"),
        ("a.jsonl", '{"de": null}\n', "de", r"line 1: 'de' is None; it must be a text"),
        ("a.jsonl", '{"de": "\\ud800"}\n', "de", r"line 1: 'de' is .* it must be a text"),
        ("a.tsv", "", "de", r"a.tsv is empty"),
        ("a.tsv", "\n\n", "de", r"a.tsv has only empty lines; give a table with at least one row"),
        ("a.csv", "\n", "de", r"a.csv has only empty lines"),
        ("a.tsv", "\nde\ten\tde\n", "de,en", r"line 2: the column 'de' of data.columns=de,en is there 2 times"),
        (
            "a.jsonl",
            '{"de": "x", "de": "y"}\n',
            "de",
            r"line 1: it has 'de' twice; each line needs a whole JSON object",
        ),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, name: str, text: str, columns: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with user_error(message):
        read(tmp_path / name, columns)


@pytest.mark.parametrize("kind", ["csv", "tsv", "CSV"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(widths=st.lists(st.integers(1, 6), min_size=1, max_size=8), header=st.booleans(), data=st.data())
def test_a_row_of_another_width_is_never_read(
    tmp_path: Path, kind: str, widths: list[int], header: bool, data: st.DataObject
) -> None:
    """Rows have the width of the first, or are refused by a line number: none shifts, and none gives a pair."""
    delimiter = "\t" if kind == "tsv" else ","
    rows = [
        [f"c{column}" if header and not number else f"{number}:{column}" for column in range(width)]
        for number, width in enumerate(widths)
    ]
    path = tmp_path / f"a.{kind}"
    path.write_text("".join(delimiter.join(row) + "\n" for row in rows))
    wanted = data.draw(st.lists(st.integers(0, widths[0] - 1), min_size=1, max_size=3, unique=True))
    columns = ",".join(f"c{column}" if header else str(column + 1) for column in wanted)
    wrong = next((number for number, width in enumerate(widths, 1) if width != widths[0]), None)
    if wrong is None:
        first = 1 if header else 0
        assert read(path, columns) == [tuple(row[column] for column in wanted) for row in rows[first:]]
    else:
        with user_error(rf"a\.{kind}, line {wrong}: .* (too few|but line 1 has {widths[0]})"):
            read(path, columns)

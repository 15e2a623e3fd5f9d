"""The tables of scores in the documents are those of the stored runs; a wrong number, name or comparison is seen."""

import re
import statistics
from pathlib import Path

import pytest

from launch import tables
from tests import ROOT

HEAD = "| run | valid nll | test2016 |\n|---|---|---|\n"
WITH_TABLES = [page for page in tables.PAGES if "<!-- scores -->" in page.read_text("utf-8")]


@pytest.mark.parametrize("page", tables.PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_scores_in_a_page_are_those_of_the_store(page: Path) -> None:
    text = page.read_text("utf-8")
    assert tables.page(text) == text, "python -m launch.tables writes them again"


def test_the_picture_is_that_of_the_store() -> None:
    assert tables.PICTURE.read_text("utf-8") == tables.crossing()


def test_some_pages_have_such_tables_and_each_table_ends() -> None:
    assert {"findings.md", "README.md"} <= {page.name for page in WITH_TABLES}
    for page in WITH_TABLES:
        text = page.read_text("utf-8")
        assert text.count("<!-- scores -->") == text.count("<!-- end -->") == len(tables._TABLE.findall(text))


def test_a_number_that_was_changed_is_written_again() -> None:
    page = ROOT / "docs" / "results.md"
    text = page.read_text("utf-8")
    wrong = text.replace("| 13.75 |", "| 14.75 |")
    assert wrong != text and tables.page(wrong) == text


def test_seeds_have_a_mean_and_a_difference_has_its_interval() -> None:
    row = "| `gpu/multi30k_best/small`, `_seed2` |  | - |"
    (nll,) = re.findall(r"\| ([\d.]+) \(([\d.]+), ([\d.]+)\) \| - \|", tables.table(HEAD + row))
    assert float(nll[0]) == pytest.approx(statistics.mean(map(float, nll[1:])), abs=1e-3)
    less = tables.Measure(1).difference([3.0, 4.0, 5.0], [1.0, 1.0, 1.0])
    assert less == "+3.0 ± 2.5"  # 4.303 / √3
    assert tables.Measure(1).difference([3.0], [1.0]) == "+2.0 (one pair)"


def test_a_file_an_average_and_an_engine_have_their_own_scores() -> None:
    names = (
        "multi30k/best@ticket-int4",
        "multi30k/dense_published@average-10",
        "tickets/multi30k-en-de@ticket",
        "tickets/multi30k-en-de@ticket@ctranslate2-int8",
    )
    rows = "\n".join(f"| `{name}` | - |  |" for name in names)
    found = re.findall(r"\d+\.\d+(?= \|$)", tables.table(HEAD + rows), re.MULTILINE)
    assert found == ["37.99", "41.14", "41.38", "41.32"]


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ("| `multi30k/nothing` |  |  |", KeyError),
        ("| `nothing/best` |  |  |", KeyError),
        ("| `everyday/en_de@ticket-int4` | - |  |", KeyError),
        ("| `gpu/multi30k_best/best` against `signs_by_ticket` |  |  |", ValueError),  # other pieces
    ],
)
def test_what_cannot_be_said_is_refused(row: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        tables.table(HEAD + row)

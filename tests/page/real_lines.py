"""Compares the page's engine with the program on real lines, one after the other:

    python -m tests.page.real_lines --ticket=tickets/multi30k-en-de.safetensors --lines=LINES.txt [--first=N] [--plain]

A translation that differs must do so at a tie: the scores of the two are within 1e-4.
"""

import argparse
import gzip
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import one_layer
from one_layer.data.text.moses_tables import moses_tables
from one_layer.tasks.translation.generate import search_program
from tests.page.engine import run

TIE = 1e-4
_PART, _SECONDS = 100, 3600  # lines in one process, and how long it may take

_ANSWERS = """
    const model = opened(given.path), start = process.cpuUsage();
    const answers = given.lines.map((line) => model.run(line));
    const short = answers.map((answer) => answer.map(({ text, score, label, probability }) => [text ?? label, score ?? probability]));
    return { answers: short, seconds: process.cpuUsage(start).user / 1e6 };
"""
_READY = """
    const bytes = read(given.path), start = process.cpuUsage();
    open(bytes, (assets) => textOf(assets, given.tables));
    return process.cpuUsage(start).user / 1e6;
"""


class Compared(NamedTuple):
    """How many lines have the same translation, and the others: the line, both translations, and both scores."""

    same: int
    others: list[tuple[str, str, str, float, float]]
    words_a_second: float  # of one processor, source words

    @property
    def beyond_a_tie(self) -> list[Any]:
        return [each for each in self.others if abs(each[3] - each[4]) > TIE]


def compare(ticket: Path, lines: list[str], simd: bool = True) -> Compared:
    """Translates lines in Python and in the page's engine, which computes with or without WebAssembly."""
    model = one_layer.load(ticket)
    tables = moses_tables(model.assets.steps)
    parts = [
        run(_ANSWERS, _SECONDS, simd, path=str(ticket), lines=lines[first : first + _PART], tables=tables)
        for first in range(0, len(lines), _PART)
    ]
    answers = [answer for part in parts for answer in part["answers"]]
    prepared = model.assets.source_preprocessing.apply(lines)
    ids = [model.assets.source_vocabulary.encode(line) for line in prepared]
    theirs = model.assets.target_preprocessing.undo(
        model._subwords([best.tokens for best, *_ in model._search(ids, "translating")])
    )
    others = []
    for line, (best, *_), text, source in zip(lines, answers, theirs, ids, strict=True):
        if best[0] != text:
            others.append((line, best[0], text, best[1], _score(model, source)))
    words = sum(len(line.split()) for line in lines)
    return Compared(len(lines) - len(others), others, words / sum(part["seconds"] for part in parts))


def _score(model: Any, source: np.ndarray) -> float:
    """That of the best translation of one line."""
    limits = np.array([model.settings.longest(len(source))], np.int32)
    search = search_program(model.config, model.settings)
    return float(search(model.prepared, source[None], limits, np.array([True])).scores[0, 0])


def labels(ticket: Path, lines: list[str]) -> tuple[list[Any], list[Any]]:
    """The page's best label of each line with its probability, and the program's."""
    ours = run(_ANSWERS, path=str(ticket), lines=lines)["answers"]
    best = [max(each, key=lambda label: label[1]) for each in ours]
    return best, [list(each) for each in one_layer.load(ticket).classify(lines)]


def seconds_to_ready(ticket: Path) -> float:
    """Seconds of a processor from a ticket's bytes to a model that is ready, with Moses' tables."""
    return float(run(_READY, path=str(ticket)))


def read(path: Path) -> list[str]:
    """The lines of a file, which may be compressed."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="\n") as file:
        return [line.rstrip("\n") for line in file]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ticket", type=Path, required=True)
    parser.add_argument("--lines", type=Path, required=True)
    parser.add_argument("--first", type=int)
    parser.add_argument("--plain", action="store_true", help="without WebAssembly")
    arguments = parser.parse_args()
    print(f"ready in {seconds_to_ready(arguments.ticket):.2f} seconds of a processor")
    result = compare(arguments.ticket, read(arguments.lines)[: arguments.first], not arguments.plain)
    total = result.same + len(result.others)
    print(f"{result.same:,} of {total:,} lines are the same; {len(result.beyond_a_tie)} differ beyond a tie")
    for each in result.others:
        print(each)
    print(f"{result.words_a_second:.1f} words a second of one processor")

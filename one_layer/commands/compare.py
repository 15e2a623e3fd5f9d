"""Compares two runs, or two folders of runs. A collection (FILE.jsonl.zst) is a folder of runs, and FILE.jsonl.zst/RUN is a run.

    python -m one_layer compare runs/short/keep=0.3 runs/short/keep=0.5

Of two runs, it shows the keys that differ, the scores, the cost, and the lines of each test set that one of them has better, with a test
whether the difference could be chance: for translations sacreBLEU's paired bootstrap, for labels McNemar's test.

    python -m one_layer compare runs/short runs/short-vmap

Of two folders, it shows test scores, validation losses, mask bits in common, and seconds of training, run by run.
Runs belong together by the names of their folders. So a sweep can be compared with the same sweep by --vmap, on another machine, or with
another version of this program. The two runs of a name have one config, but for keys that change no score, for the folder of the sweep
in the paths of other runs, and for places of the text if its fingerprints are the same.
"""

import math
import os
import shlex
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from one_layer.cli.command import parser_of, positive
from one_layer.report.plain_text import aligned
from one_layer.report.reading import Record, found_runs
from one_layer.runs.collection import opened
from one_layer.runs.convergence import merit
from one_layer.runs.paths import RunPaths
from one_layer.runs.records import PLACES_OF_TEXT, changes_scores
from one_layer.sweeps.places import homes, in_sweep
from one_layer.sweeps.scores import first_score
from one_layer.system.errors import UserError


class Pair(NamedTuple):
    """A run in both folders: its name, and for each of the two the test score, the best validation score and the seconds of training.

    `common`: the share of mask bits that are equal, in [0, 1]; None without masks.
    """

    name: str
    scores: list[float]
    valid: list[float]
    seconds: list[float]
    common: float | None


def named(word: str) -> list[Record]:
    """The run, or the runs in the folder, that `word` names. Raises: UserError if there is none."""
    if not (found := found_runs(word)):
        raise UserError(
            f"{word} is no folder of runs; give the folder of a run or of a sweep, a collection, or COLLECTION/RUN"
        )
    return found


def compare(first: list[Record], second: list[Record]) -> list[Pair]:
    """All runs that have ended in both folders. Raises: UserError if there is none, or if the two runs of a name have unlike configs."""
    one, other = map(_by_name, (first, second))
    names = sorted(one.keys() & other.keys())
    if not names:
        raise UserError(
            f"no run of {first[0].folder.parent} has ended in {second[0].folder.parent} too; give two folders of one sweep, or two runs"
        )
    return [_pair(name, (one[name], other[name])) for name in names]


def _by_name(records: list[Record]) -> dict[str, Record]:
    """The runs that have ended, by their folders below the one that has all of them."""
    top = os.path.commonpath([record.folder.parent for record in records])
    return {str(record.folder.relative_to(top)): record for record in records if record.result}


def _pair(name: str, runs: tuple[Record, Record]) -> Pair:
    one, other = (
        in_sweep(run.config, {run.folder.parent, *homes([{"words": shlex.split(run.command)}])}) for run in runs
    )
    # A key that only one of them has came with another version of the program, where it has its default value.
    differing = [key for key in sorted(one.keys() & other.keys()) if one[key] != other[key] and changes_scores(key)]
    if runs[0].texts and runs[0].texts == runs[1].texts:
        differing = [key for key in differing if key not in PLACES_OF_TEXT]
    if differing:
        raise UserError(
            f"the configs of the two runs {name} differ in {', '.join(differing)}; compare runs of one config, on the same text"
        )
    results = [run.result for run in runs]
    seconds = [result.get("train_seconds", math.nan) for result in results]
    return Pair(name, [*map(first_score, results)], [*map(_on_valid, results)], seconds, _common(runs))


def _on_valid(result: dict[str, Any]) -> float:
    """The best validation score as people read it: results have losses with a minus sign, so that more is better."""
    best = result.get("valid", {})
    return merit(best.get("select", ""), float(best.get("score", math.nan)))


def _common(runs: tuple[Record, Record]) -> float | None:
    """The share of equal bits of all masks; None for runs of a collection. Padding bits are 0 in both, and do not count."""
    from one_layer import tickets
    from one_layer.models import weights

    files = [RunPaths(run.folder).ticket_file for run in runs]
    if any(run.collected for run in runs) or not all(file.is_file() for file in files):
        return None
    drawn: dict[Any, Any] = {}
    one, other = (tickets.load(file, drawn) for file in files)
    if not one.masks:
        return None
    known = weights.shapes(one.config)
    if known != weights.shapes(other.config):
        raise UserError(
            f"{runs[0].folder} and {runs[1].folder} have vocabularies of different sizes; compare runs on the same text"
        )
    flips = sum(int(np.bitwise_count(one.masks[path] ^ other.masks[path]).sum()) for path in one.masks)
    return 1 - flips / sum(int(np.prod(known["params", *path[:-1], "scores"])) for path in one.masks)


def table(pairs: list[Pair]) -> str:
    """A row for each pair, and one for all of them: the mean differences without their signs, the range of `common`, and sums."""
    head = ["run", "score", "score", "validation", "validation", "equal mask bits", "seconds", "seconds"]
    rows = [
        [p.name, *map("{:.4g}".format, (*p.scores, *p.valid)), _percent(p.common), *map("{:.0f}".format, p.seconds)]
        for p in pairs
    ]
    shares = [pair.common for pair in pairs if pair.common is not None]
    bits = f"{_percent(min(shares))} to {_percent(max(shares))}" if shares else ""
    means = [_apart([pair.scores for pair in pairs]), "", _apart([pair.valid for pair in pairs]), ""]
    sums = map(sum, zip(*(pair.seconds for pair in pairs), strict=True))
    rows.append([f"all {len(pairs)}", *means, bits, *map("{:.0f}".format, sums)])
    return aligned([head, *rows], right=True)


def _apart(both: list[list[float]]) -> str:
    """The mean difference without its sign. A run without test sets has no score."""
    known = [abs(one - other) for one, other in both if not math.isnan(one - other)]
    return f"apart {statistics.mean(known):.3g}" if known else ""


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def main(argv: list[str]) -> None:
    """Runs the command line."""
    parser = parser_of(__doc__)
    parser.add_argument("first", help="a run, or a folder with folders of runs, for instance that of a sweep")
    parser.add_argument("second", help="another run, or another folder, with runs of the same names")
    parser.add_argument(
        "--lines", type=positive, default=3, help="of two runs: lines in each list (default: %(default)s)"
    )
    parser.add_argument("--text", help="of two runs: the folder where their text lies now (data.directory)")
    arguments = parser.parse_args(argv)
    first, second = named(arguments.first), named(arguments.second)
    if len(first) == len(second) == 1:
        from one_layer.commands.compare_two import compare_two  # late: it imports JAX

        runs = first[0], second[0]
        if runs[0].place == runs[1].place:
            raise UserError(f"{runs[0].folder} and {runs[1].folder} are the same run; give two runs")
        with _folder(arguments.first, runs[0]) as one, _folder(arguments.second, runs[1]) as other:
            print(compare_two(runs, (one, other), arguments.text, arguments.lines))
    elif arguments.text:
        raise UserError(f"--text={arguments.text} is for the lines of two runs; leave it out, or give two runs")
    else:
        print(table(compare(first, second)))


@contextmanager
def _folder(word: str, record: Record) -> Iterator[Path]:
    """The folder of a run; of one in a collection, while it is unpacked."""
    with opened(word) as places:
        inside = [place for place in places if place.root != Path() and place.shown in record.folder.parents]
        yield inside[0].root / record.folder.relative_to(inside[0].shown) if inside else record.folder

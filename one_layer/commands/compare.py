"""Compares two runs, or two folders of runs. A collection (FILE.jsonl.zst) is a folder of runs, and FILE.jsonl.zst/RUN is a run.

    python -m one_layer compare runs/short/keep=0.3 runs/short/keep=0.5 --csv=lines.csv

Of two runs, it shows the keys that differ, the scores, the cost, and the lines of each test set that one of them has better, with a test
whether the difference could be chance: for translations sacreBLEU's paired bootstrap, for labels McNemar's test.

    python -m one_layer compare runs/short runs/short-vmap

Of two folders, it shows test scores, validation losses, mask bits in common, and seconds of training, run by run.
Runs belong together by the names of their folders. So a sweep can be compared with the same sweep by --vmap, on another machine, or with
another version of this program. The two runs of a name have one config, but for keys that change no score, for the folder of the sweep
in the paths of other runs, and for places of the text if its fingerprints are the same.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from one_layer.cli.command import parser_of, positive
from one_layer.report import shapes
from one_layer.report.plain_text import aligned
from one_layer.report.reading import planned_runs, read_runs
from one_layer.runs.collection import opened
from one_layer.runs.convergence import LESS_IS_BETTER
from one_layer.runs.paths import SWEEP_FILE, RunPaths, read_object
from one_layer.runs.records import PLACES_OF_TEXT, changes_scores, flatten
from one_layer.sweeps.places import homes, in_sweep
from one_layer.sweeps.scores import first_score
from one_layer.system.errors import UserError
from one_layer.system.files import write_atomically

_COMPARED = {"config": {}, "test": shapes.RESULT["test?"], "valid": {"score": float}, "train_seconds": float}


@dataclass(frozen=True)
class Pair:
    """A run in both folders: its name, and for each of the two the test score, the best validation score and the seconds of training.

    `common`: the share of mask bits that are equal, in [0, 1]; None without masks.
    """

    name: str
    scores: tuple[float, float]
    valid: tuple[float, float]
    seconds: tuple[float, float]
    common: float | None


@dataclass(frozen=True)
class Runs:
    """What a word of the command line names: a folder, and the name of it for people. It is that of one run, or has runs in it."""

    folder: Path
    shown: Path

    @property
    def one(self) -> bool:
        """Whether the folder is that of a run."""
        return RunPaths(self.folder).holds_run or RunPaths(self.folder).result_file.is_file()

    @property
    def ended(self) -> set[str]:
        """The names of the runs in the folder that have ended."""
        return {path.parent.name for path in self.folder.glob("*/result.json")}


@contextmanager
def named(word: str) -> Iterator[Runs]:
    """The folder that `word` names, or the folder of a collection while it is unpacked. Raises: UserError if there is none."""
    with opened(word) as places:
        place = places[0]
        folder = Path(place.pattern.removesuffix("/**") if place.root != Path() else place.pattern)
        if len(places) != 1 or not folder.is_dir():
            raise UserError(
                f"{word} is no folder; give the folder of a run or of a sweep, a collection, or COLLECTION/RUN"
            )
        yield Runs(folder, place.named(folder))


def compare(first: Runs, second: Runs) -> list[Pair]:
    """All runs that have ended in both folders. Raises: UserError if there is none, or if the two runs of a name have unlike configs."""
    names = sorted(first.ended & second.ended)
    if not names:
        raise UserError(
            f"no run of {first.shown} has ended in {second.shown} too; give two folders of the same sweep, or two runs"
        )
    homes = [(each.folder, *_homes(each.folder)) for each in (first, second)]
    return [_pair(name, (RunPaths(first.folder / name), RunPaths(second.folder / name)), homes) for name in names]


def _homes(folder: Path) -> set[Path]:
    """Where the sweep in `folder` lay when it was made, perhaps on another machine."""
    return homes(planned_runs(folder).values()) if (folder / SWEEP_FILE).is_file() else set()


def _pair(name: str, runs: tuple[RunPaths, RunPaths], homes: list[tuple[Path, ...]]) -> Pair:
    results = [_result(run) for run in runs]
    one, other = (in_sweep(flatten(result["config"]), each) for result, each in zip(results, homes, strict=True))
    # A key that only one of them has came with another version of the program, where it has its default value.
    differing = [key for key in sorted(one.keys() & other.keys()) if one[key] != other[key] and changes_scores(key)]
    texts = [result.get("data") for result in results]
    if texts[0] and texts[0] == texts[1]:
        differing = [key for key in differing if key not in PLACES_OF_TEXT]
    if differing:
        raise UserError(
            f"the configs of the two runs {name} differ in {', '.join(differing)}; compare runs of one config, on the same text"
        )
    scores, valid, seconds = zip(
        *((first_score(r), _on_valid(r["valid"]), r["train_seconds"]) for r in results), strict=True
    )
    return Pair(name, scores, valid, seconds, _common(*runs))


def _on_valid(best: dict[str, Any]) -> float:
    """The best validation score as people read it: results have losses with a minus sign, so that more is better."""
    return -best["score"] if best.get("select") in LESS_IS_BETTER else best["score"]


def _result(run: RunPaths) -> dict[str, Any]:
    """Raises: UserError if the file has not what is compared."""
    result = read_object(run.result_file)
    shapes.check(run.result_file, result, _COMPARED)
    return result


def _common(*runs: RunPaths) -> float | None:
    """The share of equal bits of all masks. Padding bits are 0 in both, and do not count."""
    from one_layer import tickets
    from one_layer.models import weights

    if not all(run.ticket_file.is_file() for run in runs):
        return None
    drawn: dict[Any, Any] = {}
    one, other = (tickets.load(run.ticket_file, drawn) for run in runs)
    if not one.masks:
        return None
    if weights.shapes(one.config) != weights.shapes(other.config):
        raise UserError(f"{runs[0]} and {runs[1]} have vocabularies of different sizes; compare runs on the same text")
    flips = sum(int(np.bitwise_count(one.masks[path] ^ other.masks[path]).sum()) for path in one.masks)
    known = weights.shapes(one.config)
    return 1 - flips / sum(int(np.prod(known["params", *path[:-1], "scores"])) for path in one.masks)


def table(pairs: list[Pair]) -> str:
    """A row for each pair, and one for all of them: the mean differences without their signs, the range of `common`, and sums."""
    head = ["run", "score", "score", "validation", "validation", "equal mask bits", "seconds", "seconds"]
    rows = [[p.name, *_four(p.scores), *_four(p.valid), _percent(p.common), *_whole(p.seconds)] for p in pairs]
    shares = [pair.common for pair in pairs if pair.common is not None]
    apart = [[abs(p.scores[0] - p.scores[1]) for p in pairs], [abs(p.valid[0] - p.valid[1]) for p in pairs]]
    sums = [sum(p.seconds[place] for p in pairs) for place in (0, 1)]
    bits = f"{_percent(min(shares))} to {_percent(max(shares))}" if shares else ""
    # A run without test sets has no score.
    known = [[difference for difference in each if not math.isnan(difference)] for each in apart]
    means = [f"apart {statistics.mean(each):.3g}" if each else "" for each in known]
    rows.append([f"all {len(pairs)}", means[0], "", means[1], "", bits, *_whole(sums)])
    return aligned([head, *rows], right=True)


def _four(values: tuple[float, float]) -> list[str]:
    return [f"{value:.4g}" for value in values]


def _whole(values: list[float] | tuple[float, float]) -> list[str]:
    return [f"{value:.0f}" for value in values]


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
    parser.add_argument("--csv", type=Path, help="of two runs: a file for all lines, with their scores")
    arguments = parser.parse_args(argv)
    with named(arguments.first) as first, named(arguments.second) as second:
        if first.one != second.one:
            one, many = (first, second) if first.one else (second, first)
            raise UserError(f"{one.shown} is one run, and {many.shown} is none; give two runs, or two folders of runs")
        if first.one:
            print(_two(first, second, arguments.lines, arguments.csv))
            return
        if arguments.csv:
            raise UserError(f"--csv={arguments.csv} is for the lines of two runs; leave it out, or give two runs")
        print(table(compare(first, second)))


def _two(first: Runs, second: Runs, most: int, csv: Path | None) -> str:
    from one_layer.commands.compare_two import as_csv, as_text, compare_two  # late: it imports JAX

    if first.folder.resolve() == second.folder.resolve() or first.shown == second.shown:
        raise UserError(f"{first.shown} and {second.shown} are the same run; give two runs")
    one, other = (replace(read_runs(str(each.folder))[0], folder=each.shown) for each in (first, second))
    compared = compare_two((one, other), (first.folder, second.folder))
    names = str(first.shown), str(second.shown)
    if csv:
        write_atomically(csv, as_csv(compared.tests))
    return as_text(compared, names, most)

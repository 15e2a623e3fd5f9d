"""Compares two folders of runs, run by run: test scores, validation losses, mask bits in common, and seconds of training.

    python -m one_layer compare runs/short runs/short-vmap

Runs belong together by the names of their folders. So a sweep can be compared with the same sweep by --vmap, on another machine, or with
another version of this program. The two runs of a name have one config, but for keys that change no score, for the folder of the sweep
in the paths of other runs, and for places of the text if its fingerprints are the same.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from one_layer.cli.command import parser_of
from one_layer.report import shapes
from one_layer.report.reading import planned_runs
from one_layer.runs.paths import SWEEP_FILE, RunPaths, read_object
from one_layer.runs.records import PLACES_OF_TEXT, changes_scores, flatten
from one_layer.sweeps.places import homes, in_sweep
from one_layer.sweeps.progress import first_score
from one_layer.system.errors import UserError

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


def compare(first: Path, second: Path) -> list[Pair]:
    """All runs that have ended in both folders. Raises: UserError if there is none, or if the two runs of a name have unlike configs."""
    names = sorted(_ended(first) & _ended(second))
    if not names:
        raise UserError(f"no run of {first} has ended in {second} too; give two folders of the same sweep")
    homes = [(folder, *_homes(folder)) for folder in (first, second)]
    return [_pair(name, (RunPaths(first / name), RunPaths(second / name)), homes) for name in names]


def _ended(folder: Path) -> set[str]:
    return {path.parent.name for path in folder.glob("*/result.json")}


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
        *((first_score(r), r["valid"]["score"], r["train_seconds"]) for r in results), strict=True
    )
    return Pair(name, scores, valid, seconds, _common(*runs))


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
    one, other = tickets.load_many([run.ticket_file for run in runs])
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
    widths = [max(len(row[place]) for row in [head, *rows]) for place in range(len(head))]
    return "\n".join(
        "  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in [head, *rows]
    )


def _four(values: tuple[float, float]) -> list[str]:
    return [f"{value:.4g}" for value in values]


def _whole(values: list[float] | tuple[float, float]) -> list[str]:
    return [f"{value:.0f}" for value in values]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def main(argv: list[str]) -> None:
    """Runs the command line."""
    parser = parser_of(__doc__)
    parser.add_argument("first", type=Path, help="a folder with folders of runs, for instance that of a sweep")
    parser.add_argument("second", type=Path, help="another one, with runs of the same names")
    arguments = parser.parse_args(argv)
    for folder in (arguments.first, arguments.second):
        if not folder.is_dir():
            raise UserError(f"{folder} is no folder; give the folder of a sweep")
    print(table(compare(arguments.first, arguments.second)))

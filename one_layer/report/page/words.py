"""The first screen in words. A sentence is a list of parts: text, and points, whose names the page links to their settings."""

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

from one_layer.report import naming
from one_layer.report.answers import Pair, at_equal_bytes, at_equal_shape, best, smallest
from one_layer.report.labels import kind
from one_layer.report.naming import MEASURES
from one_layer.report.plain_text import megabytes
from one_layer.report.point import Point
from one_layer.report.tables import Table, score, score_cells
from one_layer.report.verdicts import Judged, Verdict
from one_layer.runs.progress import duration
from one_layer.system.errors import counted

Sentence = list[str | Point]
_BETTER = {Verdict.HOLDS: "better", Verdict.FAILS: "worse", Verdict.UNDECIDED: "about as good"}


def shared(configs: Sequence[naming.Config]) -> str:
    """What all runs of a report have, in words: the task, the languages, and what their models have in common."""
    first, *others = configs
    same = {name: str(value) for name, value in first.items() if all(other.get(name) == value for other in others)}
    languages = [same.get(f"data.{side}_language", "") for side in ("source", "target")]
    pair = " to ".join(languages) if all(languages) and same.get("task") == "translation" else ""
    return ", ".join(filter(None, [same.get("task", "").replace("_", " "), pair, *naming.common(configs).split("; ")]))


def cost(points: Sequence[Point]) -> list[Sentence]:
    """What is the best model, and what does it cost?"""
    top = best(points)
    first: Sentence = [
        f"{score(top, _unit(top))} by ",
        top,
        f", the best of {len(points)}. " if len(points) > 1 else ". ",
        f"It {_costs(top)}.",
    ]
    if len(points) > 1 and len(top.records) == 1:
        first.append(
            " One run does not say whether a lead is chance: train with other seeds, or see `python main.py compare`."
        )
    other = smallest(points, top)
    if other is None:
        return [first]
    return [
        first,
        ["The smallest file that is about as good: ", other, f", {score(other, _unit(other))}, {size(other)}."],
    ]


def size(point: Point) -> str:
    """The bytes of a model for people, and whether a file has them."""
    if not point.bytes:
        return "no file measured"
    return f"{megabytes(point.bytes)}{'' if point.is_file else ' (weights counted; no file)'}"


def _unit(point: Point) -> str:
    return MEASURES[point.bench.measure]


def _costs(point: Point) -> str:
    known = point.seconds
    time = "its time is not known" if known is None else f"took {duration(known)} of training"
    unknown = any(each["train_seconds"] is None for record in point.records for each in record.sources)
    more = ", without those of the runs that it begins with" if unknown and known is not None else ""
    weight = f"has {size(point)}" if point.bytes else "has no measured file"
    return f"{weight} and {time}{more}"


def masks(points: Sequence[Point]) -> list[Sentence]:
    """What do masks cost or gain against dense models, at equal bytes and at equal shape? Nothing, where no two can be compared."""
    return [each for each in (_by_bytes(*at_equal_bytes(points)), _by_shape(at_equal_shape(points))) if each]


def _by_bytes(pairs: list[Pair], smaller: list[Point]) -> Sentence:
    said = [f"At equal bytes: {_tally(pairs)}."] if pairs else []
    if count := len(smaller):
        files = f"{counted(count, 'file')} of {_kinds(smaller)}"
        said.append(f"{files} {'is' if count == 1 else 'are'} smaller than every dense file.")
    return [" ".join(said)] if said else []


def _by_shape(found: list[Pair]) -> Sentence:
    if len(found) == 1:
        pair = found[0]
        return [
            f"At equal shape: {pair.difference.mean:+.3g} {_unit(pair.masks)}, ",
            pair.masks,
            " against ",
            pair.dense,
            f": {_BETTER[pair.verdict]}{f'; they also differ in {others}' if (others := ', '.join(pair.others)) else ''}.",
        ]
    return [f"At equal shape: {_tally(found)}."] if found else []


def _tally(pairs: Sequence[Pair]) -> str:
    """How often masks are better and worse, and by how much: `masks are worse in 3 and better in 1 of 4 comparisons`."""
    times = Counter(_BETTER[pair.verdict] for pair in pairs)
    parts = [f"{word} in {count}" for word, count in times.most_common()]
    mean = statistics.fmean(pair.difference.mean for pair in pairs)
    kinds, average = _kinds(pair.masks for pair in pairs), f"{mean:+.3g} {_unit(pairs[0].masks)} on average"
    return f"{kinds} are {' and '.join(parts)} of {counted(len(pairs), 'comparison')} ({average})"


def _kinds(points: Iterable[Point]) -> str:
    """What the bits of these models are: `masks`, `signs`, or `masks and signs`."""
    return " and ".join(sorted({kind(point.config).partition(" ")[0] for point in points}))


def pairs(points: Sequence[Point]) -> Table:
    """The comparisons behind the second answer."""
    by_bytes, smaller = at_equal_bytes(points)
    rows = [_row("bytes", pair) for pair in by_bytes]
    rows += [["bytes", *_cells(point), "none as small", "", "", "", "", ""] for point in smaller]
    rows += [_row("shape", pair) for pair in at_equal_shape(points)]
    columns = [
        "equal",
        "masks or signs",
        "score",
        "bytes",
        "dense model",
        "score",
        "bytes",
        "difference",
        "masks are",
        "they also differ in",
    ]
    caption = (
        "Equal bytes: each file with trained masks that no smaller one equals, beside the best dense file that is no larger. Equal shape: "
        "the best model with trained masks and the best dense one of each shape, each by its best checkpoint. A difference counts as none "
        "if it is smaller than 1 BLEU (0.01 of another measure) or than two of its standard deviations. Other differences: those of the "
        "configs that can change a score, but for the keys of masks, of the random weights and of sizes."
    )
    return Table("Masks and signs against dense models", caption, columns, rows)


def _row(what: str, pair: Pair) -> list[str]:
    both = [cell for point in (pair.masks, pair.dense) for cell in _cells(point)]
    return [what, *both, f"{pair.difference.mean:+.2f}", _BETTER[pair.verdict], ", ".join(pair.others)]


def _cells(point: Point) -> list[str]:
    return [point.label, score_cells(point)[0], size(point)]


def claims(judged: Iterable[Judged]) -> list[tuple[str, str, list[str]]]:
    """Each claim once: the claim, the verdict on all of its comparisons, and how often it has which verdict.

    It is `mixed` if the claim holds in some of them and not in others; where it holds in none and fails in one, it does not hold.
    """
    found: dict[str, Counter[Verdict]] = {}
    for each in judged:
        found.setdefault(each.claim, Counter())[each.verdict] += 1
    summed = []
    for claim, times in found.items():
        fails = Verdict.FAILS.value if Verdict.HOLDS not in times else "mixed"
        verdict = next(iter(times)).value if len(times) == 1 else fails
        counts = [f"{verdict.value} in {times[verdict]}" for verdict in Verdict if times[verdict]]
        summed.append((claim, verdict, counts if sum(times.values()) > 1 else []))
    return sorted(summed, key=lambda each: ("holds", "mixed", "does not hold", "undecided").index(each[1]))

"""The papers' claims, compared with our points. A: on keep, embeddings, shape and initialisation. B: on reservoirs (arXiv 2012.15045).

Each claim gets a verdict: it holds, it does not, or it is undecided, because the difference is too small, or too different
between seeds, to count.
"""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from operator import attrgetter
from typing import NamedTuple

from one_layer.report import naming, texts
from one_layer.report.areas import areas_of
from one_layer.report.comparable import groups, measured
from one_layer.report.naming import Config
from one_layer.report.point import Bench, Line, Point, alike, lines_of
from one_layer.report.tables import Table
from one_layer.report.verdicts import COUNTS, Judge, Judged, Verdict, above, all_of, difference, equal, no_worse
from one_layer.runs.convergence import merit


class BestKeep(NamedTuple):
    """A claim about one line: the range of its best keep, and whether it is worst near keep 0 and 1."""

    claim: str
    lowest: float
    highest: float
    worst_at_ends: bool


class Claim(NamedTuple):
    """A claim about two models that are alike but for `keys`: which two (`is_pair` of their configs), how it is judged, at which keeps."""

    paper: str
    claim: str
    keys: tuple[str, ...]
    is_pair: Callable[[Config, Config], bool]
    judge: Judge
    keeps: tuple[float, ...] = ()  # all, if empty


# By task. Paper A makes claims about these alone: section 4, and for QQP and MNLI its paragraph "QQP and MNLI results".
_BEST_KEEPS = {
    "translation": BestKeep("masks are best around keep 0.5, worst near 0 and 1", 0.4, 0.6, True),
    "classification": BestKeep("masks are best around keep 0.7, as on QQP and MNLI", 0.6, 0.8, False),
}
_NEAR = 0.2  # keeps up to this one are near 0
_LEAST = 0.01  # smaller differences of two areas than this share, or than two standard deviations, count as none
_BACKSKIP = "train.backskip"
_OF_RESERVOIRS = ("model.encoder_layers", "model.decoder_layers", "model.reservoir", _BACKSKIP)


def _named(name: Callable[[Config], str], one: str, other: str) -> Callable[[Config, Config], bool]:
    return lambda first, second: (name(first), name(second)) == (one, other)


def _wider(one: Config, other: Config) -> bool:
    (width, ffn), (other_width, other_ffn) = (
        [config.get(f"model.{name}", 0) for name in ("d_model", "ffn")] for config in (one, other)
    )
    return width > other_width and ffn >= other_ffn and naming.depths(one) == naming.depths(other)


def _deeper(one: Config, other: Config) -> bool:
    more, fewer = naming.depths(one), naming.depths(other)
    deeper = more != fewer and all(a >= b for a, b in zip(more, fewer, strict=True))  # no stack has fewer layers
    return all(one.get(key) == other.get(key) for key in ("model.d_model", "model.ffn")) and deeper


def _kaiming_and_xavier(one: Config, other: Config) -> bool:
    """Whether these are their schemes, and they are drawn alike in all else."""
    scheme = "model.init_scheme"
    same = all(one.get(key) == other.get(key) for key in naming.INITIALISATION if key != scheme)
    return same and (one.get(scheme), other.get(scheme)) == ("kaiming_uniform", "xavier_uniform")


def _with_and_without_reservoirs(one: Config, other: Config) -> bool:
    return naming.has_reservoirs(one) and not _skips(one) and not naming.has_reservoirs(other)


def _skips(config: Config) -> bool:
    return config.get(_BACKSKIP, "off") != "off"


_CLAIMS = (
    Claim(
        "A", "one layer about equals L layers", naming.WEIGHTS, _named(naming.weights, "one layer", "L layers"), equal
    ),
    Claim(
        "A",
        "pre-trained embeddings help",
        naming.EMBEDDINGS,
        _named(naming.embeddings, "pre-trained, masked", "random, masked"),
        above,
    ),
    Claim("A", "wider is better", naming.SHAPE, _wider, above),
    Claim("A", "deeper is better at keep 0.5", naming.SHAPE, _deeper, above, keeps=(0.5,)),
    Claim("A", "Kaiming uniform is above Xavier uniform", naming.INITIALISATION, _kaiming_and_xavier, above),
    Claim("B", "reservoirs improve the test score", _OF_RESERVOIRS, _with_and_without_reservoirs, above),
    Claim(
        "B", "backskipping costs little", (_BACKSKIP,), lambda one, other: _skips(one) and not _skips(other), no_worse
    ),
)
_CAPTIONS = {
    "A": (
        "A claim about two models holds here if it holds at every keep that both have, and does not hold if the opposite is seen at one of "
        f"them. {COUNTS} Two models are about equal if they differ by at most 1 BLEU (or 1 % accuracy). Around a keep: at most 0.1 from "
        "it; near 0 and 1: at most 0.2 from them. With few keeps or seeds, this says little."
    ),
    "B": (
        "Each model with reservoirs is compared with all that have no reservoirs and are alike in all else but the number of layers. "
        f"{COUNTS} Of areas, a difference counts as none if it is smaller than 1 % or than two standard deviations. Backskipping costs "
        "little if it costs at most 1 BLEU (or 0.01 of another measure). T of areas is the end of the shortest of the runs that are "
        "compared. Areas by seconds say something only of runs that had the device for themselves."
    ),
}


def tables(benches: Mapping[Bench, Sequence[Point]]) -> list[Table]:
    """A table for each paper: a row for each claim, test set and models about which it says something, those about areas last.

    The same models may have been scored on several test sets; of their areas there is one row.
    """
    rows: dict[str, dict[tuple[str, ...], bool]] = {paper: {} for paper in _CAPTIONS}
    for bench, points in benches.items():
        for each in judged(points):
            of = texts.validated(each.area_of[:2]) if each.area_of else bench.title
            rows[each.paper][of, each.text, each.verdict.value, each.seen] = bool(each.area_of)
    columns = ["test set", "claim", "here", "what was seen"]
    ordered = {paper: [list(row) for row in sorted(its, key=its.__getitem__)] for paper, its in rows.items()}
    return [Table(f"Claim by claim, paper {paper}", _CAPTIONS[paper], columns, its) for paper, its in ordered.items()]


def judged(points: Sequence[Point]) -> Iterator[Judged]:
    """What the points of one bench say of the claims. Paper A makes some about models with masks, on two tasks."""
    lines = lines_of(point for point in points if point.whole)
    known = _BEST_KEEPS.get(points[0].bench.task)
    masked = [line for line in lines if line[0].masked] if known else []
    of_figure_2 = [
        line for group in alike(masked, naming.WEIGHTS, kinds_apart=True) if len(group) > 1 for line in group
    ]
    for line in of_figure_2 or masked:
        if known and len(line) > 2:
            yield _best_keep(line, known).if_enough(line)
    for claim in _CLAIMS:
        for group in alike(masked if claim.paper == "A" else lines, claim.keys, kinds_apart=claim.paper == "A"):
            for one, other in permutations(group, 2):
                if claim.is_pair(one[0].config, other[0].config):
                    yield from _pair(claim, one, other)


def _best_keep(line: Line, known: BestKeep) -> Judged:
    """Judges by the best point within the claimed range, and by the worst between the ends, which must be better than that of each end."""
    by_merit = sorted(line, key=attrgetter("merit"))
    inside, outside = (
        [p for p in by_merit if (known.lowest <= p.keep <= known.highest) == within] for within in (True, False)
    )
    ends = [[p for p in by_merit if p.keep <= _NEAR], [p for p in by_merit if p.keep >= 1 - _NEAR]]
    between = [p for p in by_merit if _NEAR < p.keep < 1 - _NEAR]
    seen = ", ".join(
        f"{word} at {point.keep:g} ({point.mean:.4g})"
        for word, point in (("best", by_merit[-1]), ("worst", by_merit[0]))
    )
    if not inside:
        verdicts = [Verdict.UNDECIDED]
        seen += f"; no run has a keep from {known.lowest:g} to {known.highest:g}"
    else:
        verdicts = [above(inside[-1], outside[-1]) if outside else Verdict.UNDECIDED]
        if known.worst_at_ends:
            verdicts += [above(between[0], end[0]) if between and end else Verdict.UNDECIDED for end in ends]
    return Judged("A", known.claim, line[0].series, all_of(verdicts), seen)


def _pair(claim: Claim, one: Line, other: Line) -> Iterator[Judged]:
    others = {point.keep: point for point in other}
    pairs = [(a, others[a.keep]) for a in one if a.keep in others and (not claim.keeps or a.keep in claim.keeps)]
    if not pairs:
        return
    differences = [difference(a.by_seed, b.by_seed) for a, b in pairs]
    verdicts = {a.keep: claim.judge(a, b) for a, b in pairs}
    seen = str(differences[0])
    if len(pairs) > 1:
        means = [each.mean for each in differences]
        mean = statistics.fmean(means)
        seen = f"mean difference {mean:+.4g} over {len(pairs)} keeps, from {min(means):+.4g} to {max(means):+.4g}"
        for verdict, words in ((Verdict.FAILS, "not"), (Verdict.UNDECIDED, "undecided")):
            keeps = [f"{keep:g}" for keep, found in verdicts.items() if found is verdict]
            seen += f"; {words} at keep {', '.join(keeps)}" if keeps else ""
    names = f"{one[0].series} and {other[0].series}"
    found = Judged(claim.paper, claim.claim, names, all_of(list(verdicts.values())), seen)
    yield found.if_enough(point for pair in pairs for point in pair)
    if claim.is_pair is _with_and_without_reservoirs:
        for pair in pairs:
            yield from _areas(*pair)


def _areas(one: Point, other: Point) -> Iterator[Judged]:
    """Judges reservoirs by the areas over operations, and over seconds where these can be compared."""
    runs = [*one.records, *other.records]
    measures = {record.select for record in runs}
    measure = min(measures)
    if len(measures) > 1 or len(groups(runs, measure)) > 1:
        return  # they are not scores of one text by one measure
    if not all(len(record.evaluated(measure)) > 1 for record in runs):
        return  # one of them has no curve
    found = areas_of(runs, measure)
    for axis, word in (("flops", "operations"), ("seconds", "seconds")):
        if axis not in found.until:
            continue
        areas = iter(found.means[axis])
        ours, theirs = ({record.seed: next(areas) for record in point.records} for point in (one, other))
        seen = difference(ours, theirs)
        gain = merit(measure, seen.mean)
        least = max(_LEAST * abs(seen.other), 2 * seen.deviation)
        verdict = Verdict.UNDECIDED if abs(gain) <= least else Verdict.HOLDS if gain > 0 else Verdict.FAILS
        shown = f"{seen.one:.4g} and {seen.other:.4g} of {measure}, {seen}, T = {found.until[axis]:.4g}"
        claim = f"reservoirs have a better area under the convergence curve by {word}"
        names = f"{one.label} and {other.label}"
        yield Judged("B", claim, names, verdict, shown, measured(runs, measure)).if_enough([one, other])

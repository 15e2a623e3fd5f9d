"""Paper A's claims about its figures, compared with our points.

Each claim gets a verdict: it holds, it does not, or it is undecided, because the difference is too small, or too different
between seeds, to count.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from one_layer.report import naming
from one_layer.report.figures import Comparison, Line
from one_layer.report.point import Bench
from one_layer.report.tables import Table
from one_layer.report.verdicts import COUNTS, Judge, Judged, Verdict, above, all_of, difference, equal


class BestKeep(NamedTuple):
    """A claim about one line: the range of its best keep, and whether it is worst near keep 0 and 1."""

    claim: str
    lowest: float
    highest: float
    worst_at_ends: bool


class Pairing(NamedTuple):
    """A claim about two models in one kind of figure: which two (`is_pair` of their configs), how to judge it, and at which keeps."""

    kind: str
    claim: str
    is_pair: Callable[[naming.Config, naming.Config], bool]
    judge: Judge
    keeps: tuple[float, ...] = ()  # all, if empty


# By task. Paper A makes claims about these alone: section 4, and for QQP and MNLI its paragraph "QQP and MNLI results".
_BEST_KEEPS = {
    "translation": BestKeep("best around keep 0.5, worst near 0 and 1", 0.4, 0.6, True),
    "classification": BestKeep("best around keep 0.7, as on QQP and MNLI", 0.6, 0.8, False),
}
_NEAR = 0.2  # keeps up to this one are near 0


def _named(
    name: Callable[[naming.Config], str], one: str, other: str
) -> Callable[[naming.Config, naming.Config], bool]:
    return lambda first, second: (name(first), name(second)) == (one, other)


def _wider(one: naming.Config, other: naming.Config) -> bool:
    (width, ffn), (other_width, other_ffn) = (
        [config.get(f"model.{name}", 0) for name in ("d_model", "ffn")] for config in (one, other)
    )
    return width > other_width and ffn >= other_ffn and naming.depths(one) == naming.depths(other)


def _deeper(one: naming.Config, other: naming.Config) -> bool:
    more, fewer = naming.depths(one), naming.depths(other)
    deeper = more != fewer and all(a >= b for a, b in zip(more, fewer, strict=True))  # no stack has fewer layers
    return all(one.get(key) == other.get(key) for key in ("model.d_model", "model.ffn")) and deeper


def _kaiming_and_xavier(one: naming.Config, other: naming.Config) -> bool:
    """Whether these are their schemes, and they are drawn alike in all else."""
    scheme = "model.init_scheme"
    same = all(one.get(key) == other.get(key) for key in naming.INITIALISATION.keys if key != scheme)
    return same and (one.get(scheme), other.get(scheme)) == ("kaiming_uniform", "xavier_uniform")


_PAIRINGS = (
    Pairing("figure2", "one layer about equals L layers", _named(naming.weights, "one layer", "L layers"), equal),
    Pairing(
        "figure3",
        "pre-trained embeddings help",
        _named(naming.embeddings, "pre-trained, masked", "random, masked"),
        above,
    ),
    Pairing("figure4", "wider is better", _wider, above),
    Pairing("figure4", "deeper is better at keep 0.5", _deeper, above, keeps=(0.5,)),
    Pairing("figure5", "Kaiming uniform is above Xavier uniform", _kaiming_and_xavier, above),
)


def claims(comparisons: dict[Bench, list[Comparison]]) -> Table:
    """Paper A's claims: a row for each claim, test set and comparison that can say something about it."""
    rows = [
        [bench.title, each.text, each.verdict.value, each.seen]
        for bench, its in comparisons.items()
        for each in judged(bench, its)
    ]
    caption = (
        "A claim about two models holds here if it holds at every keep that both have, and does not hold if the opposite is seen at one of "
        f"them. {COUNTS} Two models are about equal if they differ by at most 1 BLEU (or 1 % accuracy). Around a keep: at most 0.1 from "
        "it; near 0 and 1: at most 0.2 from them. With few keeps or seeds, this says little."
    )
    return Table("Claim by claim, paper A", caption, ["test set", "claim", "here", "what was seen"], rows)


def judged(bench: Bench, comparisons: Sequence[Comparison]) -> Iterator[Judged]:
    """What the comparisons of one bench say of paper A's claims; nothing of a task of which it makes none."""
    if bench.task in _BEST_KEEPS:
        for comparison in comparisons:
            for each in _judged(comparison):
                yield each._replace(text=f"{each.text}{comparison.addition}")


def _judged(comparison: Comparison) -> Iterator[Judged]:
    lines = [
        Line(line.name, tuple(point for point in line.points if point.mean is not None)) for line in comparison.lines
    ]
    lines = [line for line in lines if line.points]
    if comparison.kind in ("figure2", "keep"):
        for line in lines:
            known = _BEST_KEEPS[line.points[0].bench.task]
            if len(line.points) > 2:
                verdict, seen = _best_keep(line, known)
                judged = Judged(f"masks are {known.claim}", f"{line.name}: {known.claim}", verdict, seen)
                yield judged.if_enough(line.points)
    for pairing in _PAIRINGS:
        pairs = [
            (one, other)
            for one in lines
            for other in lines
            if pairing.kind == comparison.kind and pairing.is_pair(one.points[0].config, other.points[0].config)
        ]
        for one, other in pairs:
            names = f": {one.name} and {other.name}" if len(pairs) > 1 or comparison.kind == "figure4" else ""
            yield from _pair(pairing, one, other, names)


def _best_keep(line: Line, known: BestKeep) -> tuple[Verdict, str]:
    """Judges by the best point within the claimed range, and by the worst between the ends, which must be better than that of each end."""
    by_merit = sorted(line.points, key=lambda point: point.merit or 0.0)
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
        return Verdict.UNDECIDED, f"{seen}; no run has a keep from {known.lowest:g} to {known.highest:g}"
    verdicts = [above(inside[-1], outside[-1]) if outside else Verdict.UNDECIDED]
    if known.worst_at_ends:
        verdicts += [above(between[0], end[0]) if between and end else Verdict.UNDECIDED for end in ends]
    return all_of(verdicts), seen


def _pair(pairing: Pairing, one: Line, other: Line, names: str) -> Iterator[Judged]:
    others = {point.keep: point for point in other.points}
    pairs = [(point, others[point.keep]) for point in one.points if point.keep in others]
    pairs = [(a, b) for a, b in pairs if not pairing.keeps or a.keep in pairing.keeps]
    if not pairs:
        return
    differences = [difference(a.by_seed, b.by_seed) for a, b in pairs]
    verdicts = {a.keep: pairing.judge(a, b) for a, b in pairs}
    seen = str(differences[0])
    if len(pairs) > 1:
        means = [each.mean for each in differences]
        mean = statistics.fmean(means)
        seen = f"mean difference {mean:+.4g} over {len(pairs)} keeps, from {min(means):+.4g} to {max(means):+.4g}"
        for verdict, words in ((Verdict.FAILS, "not"), (Verdict.UNDECIDED, "undecided")):
            keeps = [f"{keep:g}" for keep, found in verdicts.items() if found is verdict]
            seen += f"; {words} at keep {', '.join(keeps)}" if keeps else ""
    judged = Judged(pairing.claim, f"{pairing.claim}{names}", all_of(list(verdicts.values())), seen)
    yield judged.if_enough(point for pair in pairs for point in pair)

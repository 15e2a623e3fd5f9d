"""Tables of the page: the papers' rows beside ours, all points, what is stored, and how each run was made."""

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from one_layer.report import naming, texts
from one_layer.report.labels import kind
from one_layer.report.naming import MEASURES
from one_layer.report.plain_text import joined
from one_layer.report.point import Bench, Point
from one_layer.report.reading import Record
from one_layer.runs.convergence import LESS_IS_BETTER


class Table(NamedTuple):
    """A title, a caption, the names of the columns, and rows of cells as text."""

    title: str
    caption: str
    columns: Sequence[str]
    rows: list[list[str]]


class _Row(NamedTuple):
    """A row of Table 1 of paper A: what kind of model it is, BLEU and memory (MB) on IWSLT14 and WMT14, and the source."""

    kind: str
    title: str
    iwslt14: str
    wmt14: str
    memory: str
    source: str


MISSING = "missing"
_DENSE, _RANDOM, _PRETRAINED, _WIDE, _DEEP = "dense", "random", "pretrained", "wide", "deep"
# Shen et al. 2021, "What's Hidden in a One-layer Randomly Weighted Transformer?", arXiv 2109.03939. Its figures' points were never
# published as numbers.
TABLE_1 = (
    _Row(_DENSE, "fully weighted (small, base)", "34.66 ± 0.11", "27.51", "148, 328", "Table 1"),
    _Row(_RANDOM, "one random layer, random embeddings", "29.45", "17.29", "not given", "abstract and section 1"),
    _Row(_PRETRAINED, "one random layer, pre-trained embeddings", "30.95 ± 0.12", "20.35", "28, 96", "Table 1"),
    _Row(_WIDE, "the same, twice as wide (wide, wider)", "34.14 ± 0.08", "25.24", "71, 227", "Table 1"),
    _Row(_DEEP, "the same, twice as deep (deep, deeper)", "31.51 ± 0.10", "21.76", "29, 98", "Table 1"),
)


def score_cells(point: Point) -> list[str]:
    """A point's mean, deviation and number of runs as three cells."""
    deviation = "" if point.deviation is None else point.bench.shown(point.deviation)
    return [point.bench.shown(point.mean), deviation, str(len(point.values))]


def score(point: Point, unit: str = "") -> str:
    """A point's mean, deviation and number of runs."""
    mean, deviation, count = score_cells(point)
    scored = " ".join(filter(None, [mean, deviation and f"± {deviation}", unit]))
    return f"{scored} ({count} run{'s' if count != '1' else ''})"


def table_1(benches: dict[Bench, list[Point]]) -> Table:
    """Paper A's Table 1, with a column for each of our translation benches."""
    ours = {bench: _of_table_1(points) for bench, points in benches.items() if bench.task == "translation"}
    columns = ["model", "paper: IWSLT14 de-en", "paper: WMT14 en-de", "paper: memory, MB", "source in paper A"]
    columns += [f"ours: {bench.title}" for bench in ours]
    rows = [
        [
            *(row.title, row.iwslt14, row.wmt14, row.memory, row.source),
            *("; ".join(f"{score(p)}: {p.label}" for p in its.get(row.kind, [])) or MISSING for its in ours.values()),
        ]
        for row in TABLE_1
        if any(points for its in ours.values() for points in its.values())
    ]
    caption = (
        "Keep 0.5, mean ± standard deviation over seeds. Ours: the base shape is that of most one-layer runs with random embeddings, "
        "or without such runs of those with pre-trained ones; wide and deep mean more width or more layers than that. Models whose "
        "embeddings are trained, models with layers of several kinds, and the controls, are in no row. Other test sets than the paper's "
        "cannot be compared with its numbers; the order of the rows can."
    )
    return Table("Paper A, Table 1", caption, columns, rows)


def _of_table_1(points: list[Point]) -> dict[str, list[Point]]:
    """Our models in each kind of row."""
    half = [point for point in points if point.whole and (not point.masked or point.keep == 0.5)]
    one = [point for point in half if naming.weights(point.config) == "one layer"]
    random, pretrained = (
        [point for point in one if naming.embeddings(point.config).startswith(f"{source}, ")]
        for source in ("random", "pre-trained")
    )
    shapes = Counter(_shape(point) for point in random or pretrained for _ in point.values)
    if not shapes:
        return {}
    width, depth = base = shapes.most_common(1)[0][0]
    return {
        _DENSE: [p for p in half if p.fully_weighted and _shape(p) == base],
        _RANDOM: [p for p in random if _shape(p) == base],
        _PRETRAINED: [p for p in pretrained if _shape(p) == base],
        _WIDE: [p for p in pretrained if _shape(p)[0][0] > width[0] and _shape(p)[1] == depth],
        _DEEP: [p for p in pretrained if _shape(p)[1][0] > depth[0] and _shape(p)[0] == width],
    }


def _shape(point: Point) -> tuple[tuple[int, int], tuple[int, int]]:
    """Width and ffn, and how many layers the stacks have."""
    return (point.config.get("model.d_model", 0), point.config.get("model.ffn", 0)), naming.depths(point.config)


def all_points(bench: Bench, points: list[Point]) -> Table:
    """Every point of a bench, with its bytes and, where more of the measure is better, its share of the best fully weighted model."""
    dense = [point.mean for point in points if point.fully_weighted]
    if bench.measure in LESS_IS_BETTER:
        dense = []  # a model of which twice as much is worse has no share
    rows = []
    for point in sorted(points, key=attrgetter("merit"), reverse=True):
        share = f"{100 * point.mean / max(dense):.1f} %" if dense and max(dense) > 0 else ""
        weight = [f"{point.bytes / 1e6:.3f}", "file" if point.is_file else "counted"] if point.bytes else ["", ""]
        known = point.seconds
        minutes = "" if known is None else f"{known / 60:.1f}"
        rows.append([point.label, *score_cells(point), share, *weight, minutes])
    columns = ["model", MEASURES[bench.measure], "±", "runs", "of the best dense", "MB", "of a", "minutes"]
    best = next((f"The best dense model is {p.label}." for p in points if dense and p.mean == max(dense)), "")
    return Table(f"All points: {bench.title}", best, columns, rows)


def signatures(benches: Iterable[Bench]) -> Table:
    """How sacreBLEU scores the same lines, for each test set of which it says so."""
    rows = [[bench.title, bench.signature] for bench in benches if bench.signature]
    return Table("Signatures of sacreBLEU for the lines of the test sets", "", ["test set", "signature"], rows)


def names(points: list[Point]) -> Table:
    """What the short names stand for."""
    rows = {point.model: [point.model, point.description] for point in points}
    caption = (
        "A name says what tells a model from the others of this report. `keep` is said where it is not the usual one."
    )
    return Table("What the names stand for", caption, ["name", "model"], [rows[name] for name in sorted(rows)])


def examples(points: list[Point]) -> Table:
    """Lines of a test set with their references, and what the best model of each kind of weights made of them."""
    best: dict[str, Point] = {}
    for point in points:
        its = kind(point.config)
        if point.own and _examples(point) and (its not in best or point.merit > best[its].merit):
            best[its] = point
    rows: dict[tuple[str, str], list[str]] = {}
    for place, point in enumerate(best.values()):
        for line in _examples(point):
            cells = rows.setdefault((joined(line["source"]), line["reference"]), [""] * len(best))
            cells[place] = line["hypothesis"]
    columns = ["source", "reference"]
    columns += [point.label for point in best.values()]
    caption = "Lines from the whole length of the test set, chosen by their place; the first run of the best point of each kind."
    return Table(f"Examples: {points[0].bench.text}", caption, columns, [[*key, *cells] for key, cells in rows.items()])


def _examples(point: Point) -> list[dict[str, str]]:
    found: list[dict[str, str]] = point.records[0].result.get("examples", {}).get(point.bench.test, [])
    return found


def methods(records: list[Record]) -> Table:
    """How each run was made: everything that is needed to make it again."""
    columns = ["run", "seed", "updates", "checkpoint", "search", "data", "device", "JAX", "commit"]
    columns += ["hours", "operations", "needs", "command"]
    caption = "Needs: the other runs that it begins with or learns from. Their hours and operations are not in those of the run itself."
    return Table("Methods: every run", caption, columns, [_method(record) for record in records])


def _method(record: Record) -> list[str]:
    result, needs = record.result, naming.described(record.sources)
    if not result:
        return [str(record.folder), str(record.seed), MISSING, *[""] * 8, needs, record.command]
    valid = result.get("valid", {})
    rule = f"best by {valid.get('select')} on valid: update {valid.get('step')}"
    beam = record.get("evaluation.beam")
    penalty = record.get("evaluation.length_penalty")
    search = f"beam {beam}" if beam else ""
    search += f", length penalty {penalty:g}" if beam and penalty is not None else ""
    data = ", ".join(f"{part} {texts.short(print_)}" for part, print_ in result.get("data", {}).items())
    commit = str(result.get("commit") or "")
    short = commit[:9] + ("+" if commit.endswith("+") else "")
    hours = f"{result.get('train_seconds', 0.0) / 3600:.2f}"
    updates = (
        f"{result.get('steps')} ({skipped} skipped)"
        if (skipped := result.get("skipped_updates"))
        else result.get("steps")
    )
    known: list[Any] = [record.folder, record.seed, updates, rule, search, data, result.get("device")]
    flops = "" if (count := result.get("train_flops")) is None else f"{count:.3g}"
    return [*map(str, known), str(result.get("jax", "")), short, hours, flops, needs, record.command]

"""Writes the folder of a report: the page, the pictures and the points."""

import logging
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from one_layer.report import areas, claims, naming, runs, tables
from one_layer.report.curves import convergence, validation
from one_layer.report.drawing import standalone, svg
from one_layer.report.figures import LEAST, Picture, comparisons, draw
from one_layer.report.labels import run_names
from one_layer.report.page.document import page
from one_layer.report.plain_text import as_csv
from one_layer.report.point import Bench, Point
from one_layer.report.points import points, settings_of
from one_layer.report.reading import Record, read_runs
from one_layer.report.sizes import score_against_bytes, sized
from one_layer.runs.paths import RunPaths
from one_layer.system.errors import UserError, counted
from one_layer.system.files import write_atomically

log = logging.getLogger(__name__)
_PICTURE = re.compile(r"(figure\d|keep|bytes|convergence)-\d+")


def report(pattern: str, out: Path) -> None:
    """Reads the runs that `pattern` matches and writes `out`/index.html, pictures (SVG) and CSV files.

    Raises: UserError if there are no runs, a file is damaged, or `out` is a file or the folder of a run.
    """
    records = read_runs(pattern)
    if out.is_file() or RunPaths(out).holds_run or any(out.resolve() == record.folder.resolve() for record in records):
        raise UserError(f"--workdir={out} is a file or holds a run; give another folder for the report")
    found = points(records)
    benches: dict[Bench, list[Point]] = {}
    for point in found:
        benches.setdefault(point.bench, []).append(point)
    ranked = dict(sorted(benches.items(), key=lambda each: -len(each[1])))
    drawn = [(picture, svg(picture.figure, picture.name)) for picture in _pictures(benches)]
    for picture, drawing in drawn:
        _write(out / f"{picture.name}.svg", standalone(drawing))
        _write(out / f"{picture.name}.csv", csv_of(picture.points))
    _write(out / "points.csv", csv_of(found))
    names = run_names(records, settings_of(records))
    sections = {
        "under_way": [runs.unfinished(records, names)],
        "runs": [runs.table(records, names, ranked)],
        **_tables(benches, records),
    }
    shown = {name: [table for table in each if table.rows] for name, each in sections.items()}
    _write(out / "index.html", page(pattern, records, names, ranked, drawn, shown))
    _remove_older(out, {picture.name for picture, _ in drawn})
    finished = sum(bool(record.result) for record in records)
    said = counted(finished, "run"), f"{len(records) - finished} not finished", counted(len(drawn), "figure")
    log.info("%s: %s", out / "index.html", ", ".join(said))
    for row in runs.unfinished(records).rows:
        log.info("  ".join(filter(None, row)))


def _write(path: Path, text: str) -> None:
    """Writes a file in UTF-8, in which the name of a file may be no text."""
    write_atomically(path, text.encode("utf-8", "backslashreplace"))


def _remove_older(out: Path, names: set[str]) -> None:
    """Removes the pictures of an earlier report in `out`, which the page no longer has. Other files stay."""
    for csv_file in out.glob("*.csv"):
        picture = csv_file.with_suffix(".svg")
        if _PICTURE.fullmatch(csv_file.stem) and csv_file.stem not in names and picture.is_file():
            csv_file.unlink()
            picture.unlink()


def _pictures(benches: dict[Bench, list[Point]]) -> list[Picture]:
    """All pictures with enough points; their names end in a number of their own."""
    found: list[Picture] = []
    known: set[frozenset[Path]] = set()  # several test sets of the same runs have the same convergence
    for each in benches.values():
        found += [draw(comparison, len(found) + place) for place, comparison in enumerate(comparisons(each), 1)]
        folders = frozenset(record.folder for point in each for record in point.records)
        found += [score_against_bytes(each, len(found) + 1)] if len(sized(each)) >= LEAST else []
        curves = any(len(validation(record)) >= LEAST for point in each for record in point.records)
        found += convergence(each, len(found) + 1) if curves and folders not in known else []
        known.add(folders)
    return found


def _tables(benches: dict[Bench, list[Point]], records: list[Record]) -> dict[str, list[tables.Table]]:
    """The tables of each section of the page."""
    every = [point for each in benches.values() for point in each]
    return {
        "papers": [tables.table_1(benches), *claims.tables(benches)],
        "areas": [areas.table(each, every) for each in areas.areas(records) if each.until],
        "names": [tables.names(every)],
        "signatures": [tables.signatures(benches)],
        "methods": [tables.methods(records)],
        "points": [tables.all_points(bench, each) for bench, each in benches.items()],
        "examples": [tables.examples(each) for each in benches.values()],
    }


def csv_of(points: Sequence[Point]) -> str:
    """The points as a CSV file."""
    rows = list(map(_cells, points))
    return as_csv(rows[0] if rows else [], (row.values() for row in rows))


def _cells(point: Point) -> dict[str, Any]:
    names = ("weights", "d_model", "ffn", "encoder_layers", "decoder_layers")
    return {
        **{name: getattr(point.bench, name) for name in ("task", "test", "measure", "signature", "content")},
        **{name: point.config.get(f"model.{name}", "") for name in names},
        "keep": f"{point.keep:g}" if point.masked else "",
        "embeddings": naming.embeddings(point.config),
        "initialisation": naming.initialisation(point.config) if point.masked else "",
        "model": point.label,
        "description": point.description,
        "checkpoint": point.scored.checkpoint,
        "search": point.scored.search,
        "training_text": point.records[0].texts.get("train", ""),
        "mean": point.mean,
        "deviation": "" if point.deviation is None else point.deviation,
        "runs": len(point.values),
        "bytes": point.bytes or "",
        "bytes_are": ("a file" if point.is_file else "counted") if point.bytes else "",
        "seeds": " ".join(str(record.seed) for record in point.records),
        "values": " ".join(map(repr, point.values)),
        "folders": shlex.join(str(record.folder) for record in point.records),
    }

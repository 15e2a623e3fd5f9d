"""What `compare` says of two runs: keys, scores and costs, and the lines of each test set that one of them has better than the other."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from one_layer.data.text.lines import read_lines
from one_layer.report.differences import costs, keys, scores
from one_layer.report.plain_text import aligned
from one_layer.report.reading import Record
from one_layer.runs.evaluate import fingerprints
from one_layer.runs.folder import RunFolder
from one_layer.runs.paths import read_object
from one_layer.runs.settings import resolve
from one_layer.system.errors import UserError, counted
from one_layer.system.removed import without_removed
from one_layer.tasks.protocol import FEWEST, Paired

_NEAR = 0.005  # of a BLEU: files are of a result if their score is that of the result


class Lines(NamedTuple):
    """A test set with the hypotheses of two runs, and their scores. `shown`: the sources as they were read."""

    test: str
    shown: list[str]
    references: list[str]
    systems: tuple[list[str], list[str]]
    paired: Paired


def compare_two(records: tuple[Record, Record], folders: tuple[Path, Path], text: str | None, most: int) -> str:
    """The whole comparison for a terminal, with at most `most` lines in each list of lines.

    `folders` have the hypotheses of the two runs; `text` is where their text lies, if not where it was.
    """
    parts = [f"first:   {records[0].folder}\nsecond:  {records[1].folder}"]
    for table in (keys(*records), scores(*records), costs(*records)):
        said = aligned([table.columns, *table.rows]) if table.rows else "none"
        parts.append("\n".join(filter(None, [f"{table.title}:", said, table.caption])))
    parts += [f"{record.folder} has not finished." for record in records if not record.result]
    tests = [record.result.get("test", {}) for record in records]
    for name in [name for name in tests[0] if name in tests[1]]:
        try:
            parts += _described(_lines(name, records, tuple(map(RunFolder, folders)), text), most)
        except UserError as error:
            said = str(error).replace(str(folders[0]), records[0].address).replace(str(folders[1]), records[1].address)
            parts.append(f"The lines of {name} are not compared: {said}.")
    return "\n\n".join(parts)


def _lines(name: str, records: tuple[Record, Record], folders: tuple[RunFolder, ...], text: str | None) -> Lines:
    prints = {record.result.get("data", {}).get(name) for record in records}
    if len(prints) > 1:
        raise UserError("the test sets of the two runs have other lines")
    if records[0].task != records[1].task:
        raise UserError(f"one run is of the task {records[0].task}, the other of {records[1].task}")
    files = [folder.hypotheses_file(name) for folder in folders]
    if missing := [record.folder for record, file in zip(records, files, strict=True) if not file.is_file()]:
        raise UserError(
            f"{missing[0]} has no {files[0].name}; collections of older versions have none, nor have language models"
        )
    first, second = map(read_lines, files)
    run, assets = resolve(without_removed(read_object(folders[0].config_file))), folders[0].assets()
    data = replace(run.data, directory=text or run.data.directory)
    try:
        corpus = run.task.scored_corpus(data, assets, name)
    except UserError:
        raise UserError(
            f"their text cannot be read from {data.directory or data.source}; say where it lies now: --text=DIR"
        ) from None
    if prints != {None} and {fingerprints(corpus)[name]} != prints:
        raise UserError(
            f"the text in {data.directory or data.source} is no longer that of the results; --text=DIR names another folder"
        )
    split = corpus.tests[name]
    if not len(first) == len(second) == len(split):
        raise UserError(f"there are {len(split):,} lines, but {len(first):,} and {len(second):,} hypotheses")
    paired = run.task.paired(split, (first, second), assets, run.evaluation)
    if paired is None:
        raise UserError(f"a model of the task {records[0].task} has no lines")
    _check_current(name, records, paired)
    references = split.reference_detokenized or split.reference
    return Lines(name, split.source_text, references, (first, second), paired)


def _check_current(name: str, records: Sequence[Record], paired: Paired) -> None:
    """Raises: UserError for hypotheses that have another score than the result says: they are of another checkpoint."""
    for record, total in zip(records, paired.totals, strict=True):
        values: dict[str, Any] = record.result["test"][name]
        known = values.get("bleu_sacre", values.get("accuracy"))
        if known is not None and abs(known - total) > _NEAR:
            raise UserError(
                f"the hypotheses in {record.folder} score {total:.4g}, and its result says {known:.4g}: they are of another checkpoint, or "
                "were measured otherwise"
            )


def summary(found: Lines) -> str:
    """How many lines each run has better, the scores of the whole, and whether their difference could be chance."""
    first, second, same = found.paired.counts
    test = f"p = {found.paired.p:.3g} ({found.paired.test})" if found.paired.p is not None else _untested(found)
    totals = " and ".join(f"{total:.4g}" for total in found.paired.totals)
    return (
        f"{found.test}: {counted(len(found.paired.lines), 'line')}, of which the first run has {first:,} better, the second {second:,}, "
        f"and {same:,} are equally good. {found.paired.measure}: {totals}; {test}."
    )


def _described(found: Lines, most: int) -> list[str]:
    parts = [summary(found)]
    gains = [(other - one, place) for place, (one, other) in enumerate(found.paired.lines)]
    for title, ordered in (("better", sorted(gains, reverse=True)), ("worse", sorted(gains))):
        places = [place for gain, place in ordered[:most] if (gain > 0 if title == "better" else gain < 0)]
        if places:
            parts.append(
                "\n".join([f"Lines that the second run has {title}:", *(_line(found, place) for place in places)])
            )
    return parts


def _untested(found: Lines) -> str:
    differing = sum(one != other for one, other in zip(*found.systems, strict=True))
    why = f"fewer than {FEWEST} lines differ" if differing < FEWEST else "it cannot measure this text"
    return f"no test, because {why}"


def _line(found: Lines, place: int) -> str:
    one, other = found.paired.lines[place]
    rows = [
        ["source", found.shown[place]],
        ["reference", found.references[place]],
        [f"first {one:.3g}", found.systems[0][place]],
        [f"second {other:.3g}", found.systems[1][place]],
    ]
    text = "\n".join("    " + line for line in aligned(rows).splitlines())
    return f"  line {place + 1:,}\n{text}"

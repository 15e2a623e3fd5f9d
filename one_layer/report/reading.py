"""Reads what runs have left: results, metrics, evaluations, and the runs that a sweep still lacks."""

import glob
import json
import logging
import math
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from one_layer.report import shapes
from one_layer.report.naming import IMPORTED
from one_layer.runs import collection
from one_layer.runs.collection import Place
from one_layer.runs.convergence import selected_by
from one_layer.runs.paths import NOT_FINITE, SWEEP_FILE, RunPaths, read_metrics, read_object
from one_layer.runs.progress import Doing, doing
from one_layer.runs.records import flatten
from one_layer.runs.sources import sources
from one_layer.system.errors import UserError

log = logging.getLogger(__name__)

_TOKENS = ("data.unit", "data.bpe_merges", "data.vocabulary")  # keys that say what a token is
# Keys that decide what a score on the validation text is of: those of a task, and those of the search for BLEU.
_VALIDATED_BY = {
    "causal_lm": ("evaluation.stride", "evaluation.valid_tokens"),
    "masked_lm": ("data.mask_share", "data.block", "evaluation.valid_tokens"),
    "bleu": tuple(f"evaluation.{name}" for name in ("valid_beam", "length_penalty", "max_length_a", "max_length_b")),
}


@dataclass(frozen=True)
class Record:
    """A run: its folder, its config by dotted names, and its files. A run that has not ended has no `result`.

    `metrics` has the lines up to the end that the result is of. `evaluations` are the contents of the files of `--mode=evaluate`.
    `command` trains the run again. `texts` are the fingerprints of its training and validation text, by the names of these parts, where
    they are known. `began` is the content of identity.json. `doing` says how far an unfinished run is. `--runs=address` reads it alone.
    """

    folder: Path
    config: dict[str, Any]
    result: dict[str, Any] = field(default_factory=dict)
    metrics: list[dict[str, Any]] = field(default_factory=list)
    evaluations: list[dict[str, Any]] = field(default_factory=list)
    command: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    began: dict[str, Any] = field(default_factory=dict)
    doing: Doing = field(default_factory=Doing)
    address: str = field(default="", compare=False)

    @property
    def collected(self) -> bool:
        """Whether it was read from a collection."""
        return self.address != str(self.folder)

    @property
    def place(self) -> str:
        """The same for each way that leads to its folder."""
        return str(Path(self.address).resolve())

    @property
    def select(self) -> str:
        """The score on the validation text that selects the checkpoints."""
        known = self.result.get("valid", {}).get("select")
        return str(known or selected_by(self.metrics, str(self.get("train.select") or "nll")))

    @property
    def sources(self) -> list[dict[str, Any]]:
        """The other runs that it needs (`one_layer.runs.sources`). An earlier version did not store them; they may still be there."""
        known = self.result.get("sources", self.began.get("sources"))
        return sources(self.config) if known is None else known

    @property
    def task(self) -> str:
        """The name of the run's task."""
        return str(self.config.get("task", "translation"))

    @property
    def imported(self) -> bool:
        """Whether another program trained the model, which was only scored here."""
        return bool(not self.result and self.evaluations and not self.metrics)

    @property
    def described(self) -> dict[str, Any]:
        """The config by which the model is named, with a mark where it was imported."""
        return {**self.config, IMPORTED: True} if self.imported else self.config

    @property
    def seed(self) -> int:
        """The run's seed."""
        return int(self.config.get("seed", 1))

    def get(self, name: str) -> Any:
        """The config's value of a dotted name, or None."""
        return self.config.get(name)

    def evaluated(self, score: str) -> list[dict[str, Any]]:
        """The lines of the metrics with `score` on the validation text; none if one is not finite, or training missed lines."""
        lines = [line for line in self.metrics if f"valid/{score}" in line]
        missing = len(lines) > 1 and self.result.get("convergence") == {}
        return [] if missing or not all(math.isfinite(line[f"valid/{score}"]) for line in lines) else lines

    def validated(self, score: str) -> tuple[str, ...]:
        """What `score` on the validation text is of; runs can be compared by it where this is equal.

        It begins with the task and the fingerprint of the text's ids. Runs of earlier versions have none, but keys that say what a token
        is. Then come the settings by which the task computes the score, as `name value`.
        """
        ids = self.result.get("data", {}).get("valid")
        text = f"ids {ids}" if ids else " ".join(["tokens", *(str(self.get(name) or "") for name in _TOKENS)]).strip()
        keys = [*_VALIDATED_BY.get(self.task, ()), *_VALIDATED_BY.get(score, ())]
        return (self.task, text, *(f"{key.partition('.')[2]} {self.get(key)}" for key in keys if self.get(key)))


def read_runs(pattern: str) -> list[Record]:
    """The runs in the folders that `pattern` matches, sorted by folder, and those that their sweeps lack.

    A folder of runs or of a sweep stands for the folders of its runs, and a collection (`one_layer.runs.collection`) for the folders in it.
    A run that is there twice is read once, and the log says so. Raises: UserError if no run is found, or for a damaged file.
    """
    if not (records := found_runs(pattern)):
        raise UserError(
            f"--runs={pattern} matches no folder of a run; give a pattern, for instance --runs='runs/figure2/*'"
        )
    return records


def found_runs(pattern: str) -> list[Record]:
    """The same; empty if no run is found."""
    with collection.opened(pattern) as places:
        return list(_once(record for place in places for record in _in_place(place)))


def _once(records: Iterable[Record]) -> Iterator[Record]:
    """The records without runs that others are copies of: their results are equal, and say when the run started; or the folder is one."""
    known: dict[str, Record] = {}
    for record in records:
        result = record.result
        mark = json.dumps(result, sort_keys=True) if result.get("started") else record.place
        other = known.setdefault(mark, record)
        if other is record:
            yield record
        else:
            log.warning("%s is left out: it is the same run as %s", record.folder, other.folder)


def _in_place(place: Place) -> list[Record]:
    """The runs in the folders of a place, and those that their sweeps lack. Raises: UserError for a damaged file."""
    pattern = str(Path(place.pattern))  # as paths are written: without ./ and slashes that mean nothing
    folder = Path(pattern)
    if folder.is_dir():
        holds = RunPaths(folder).is_of_run or (folder / SWEEP_FILE).is_file()
        matched = [folder] if holds else sorted(folder.iterdir())
    else:
        matched = [Path(path) for path in sorted(glob.glob(pattern, recursive=True))]
    sweeps = {path for path in matched if (path / SWEEP_FILE).is_file()}
    folders = {path for path in matched if RunPaths(path).is_of_run}
    folders |= {path for sweep in sweeps for path in sweep.iterdir() if RunPaths(path).is_of_run}
    planned = {path: run for sweep in sweeps for path, run in planned_runs(sweep).items()}
    for sweep in {path.parent for path in folders if (path.parent / SWEEP_FILE).is_file()} - sweeps:
        planned |= {
            path: run for path, run in planned_runs(sweep).items() if path == folder or fnmatch(str(path), pattern)
        }
    return [_record(path, planned.get(path, {}), place) for path in sorted(folders | planned.keys())]


def alike_in_time(records: Iterable[Record]) -> bool:
    """Whether seconds of runs can be compared: those of as many devices of one kind, and of populations of one size.

    A run that does not say its device is like no other one.
    """
    kinds = {
        (result.get("device") or record.folder, result.get("devices", 1), result.get("members", 1))
        for record in records
        for result in [record.result]
    }
    return len(kinds) == 1


def planned_runs(sweep: Path) -> dict[Path, dict[str, Any]]:
    """The runs of a sweep, by folder. Raises: UserError for a damaged file."""
    found = _read(sweep / SWEEP_FILE, shapes.SWEEP)
    return {sweep / name: run for name, run in found.get("runs", {}).items()}


def _record(folder: Path, planned: dict[str, Any], place: Place) -> Record:
    paths, name = RunPaths(folder), place.named(folder)
    result = _if_there(paths.result_file, shapes.RESULT)
    config = result.get("config") or _if_there(paths.config_file, shapes.CONFIG) or planned.get("config", {})
    words = planned.get("words") or [f"--{word}" for word in result.get("overrides", [])]
    if words and not any(word.startswith("--workdir=") for word in words):
        words = [*words, f"--workdir={name}"]  # outside a sweep, a run's result does not say where it lies
    # The run may have gone on since.
    metrics = [line for line in _metrics(paths.metrics_file) if line["step"] <= result.get("steps", math.inf)]
    found = map(_evaluation, sorted(folder.glob("evaluation-*.json")))
    # Earlier versions could leave some layers out; such scores are not those of the model.
    evaluations = [_dated(each, result, metrics) for each in found if not each.get("layers")]
    command = shlex.join(["python", "main.py", *words]) if words else ""
    began = _if_there(paths.identity_file, shapes.IDENTITY)
    texts = result.get("data", began.get("text", {}))
    now = doing(paths, config.get("train", {}))
    return Record(
        name, flatten(config), result, metrics, evaluations, command, texts, began, now, place.address(folder)
    )


def _if_there(path: Path, shape: Any) -> dict[str, Any]:
    """What `_read` returns; nothing if there is no file, perhaps no longer: a run that becomes longer removes its result at any time."""
    try:
        return _read(path, shape) if path.is_file() else {}
    except UserError:
        if path.is_file():
            raise
        return {}


def _read(path: Path, shape: Any) -> dict[str, Any]:
    """The JSON object in a file. Raises: UserError for a file that is damaged or has another shape."""
    values = read_object(path)
    shapes.check(path, values, shape)
    return values


def _metrics(path: Path) -> list[dict[str, Any]]:
    """The metrics of a run. Numbers that are not finite, which JSON does not have, are strings in the file."""
    lines = [{name: float(v) if v in NOT_FINITE else v for name, v in line.items()} for line in read_metrics(path)]
    for number, line in enumerate(lines, 1):
        if "valid/nll" in line:
            shapes.check(f"{path}, line {number}", line, shapes.VALIDATED)
    return lines


def _evaluation(path: Path) -> dict[str, Any]:
    """The scores of one split, with the name of their `checkpoint`."""
    values = _read(path, shapes.EVALUATION)
    checkpoint = Path(str(values.get("checkpoint", "best"))).name
    if "file_bytes" in values and not checkpoint.endswith(".safetensors"):
        checkpoint = f"ticket-{checkpoint}"  # a file may have the name of a checkpoint
    if (source := values.get("ticket_checkpoint") or "best") != "best":
        checkpoint += f" ({source})"
    return {**values, "checkpoint": checkpoint}


def _dated(evaluation: dict[str, Any], result: dict[str, Any], metrics: list[dict[str, Any]]) -> dict[str, Any]:
    """The evaluation. Its checkpoint's name gets the update if that of the result is another one: the run has gone on since.

    And if the run has not finished, so that it soon will. An average of the best ones always has it: the result does not name them. An
    imported run has no metrics, and nothing to go on with.
    """
    name, step = evaluation.get("ticket_checkpoint") or evaluation["checkpoint"], evaluation.get("step")
    if step is None or name.isdecimal() or not metrics:
        return evaluation
    best, last = [result.get("valid", {}).get("step", step)], [metrics[-1]["step"], result.get("steps")]
    meant = {"best": best, "last": last, "average": last, "average-best": []}.get(name.partition(":")[0], best + last)
    if result and step in meant:
        return evaluation
    return {**evaluation, "checkpoint": f"{evaluation['checkpoint']}, update {step}"}

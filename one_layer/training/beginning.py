"""The beginning of a run: its checks, its text, and the files that its folder has from then on."""

import logging
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from one_layer.data.corpus import Corpus
from one_layer.data.preparation.parallel import cores
from one_layer.data.text.assets import TextAssets
from one_layer.importers.embeddings import embedding_rows, table_sides
from one_layer.models import ModelConfig, pretrained_tables
from one_layer.models.accounting import describe_ticket
from one_layer.models.sharding import Devices
from one_layer.own_selection import stored_as
from one_layer.runs.folder import RunFolder
from one_layer.runs.records import flatten
from one_layer.runs.settings import RunConfig, of_training, with_values
from one_layer.runs.sources import sources
from one_layer.system.errors import UserError, counted
from one_layer.tasks.losses import Distil
from one_layer.tasks.model import TrainedModel
from one_layer.tickets.limits import check_work
from one_layer.tickets.settings import Settings, read_settings, write_settings
from one_layer.training import processes
from one_layer.training.distilling import Lessons, lessons_of
from one_layer.training.file_budget import with_width
from one_layer.training.fine_tuning import Start, source_of, start
from one_layer.training.first_look import first_look
from one_layer.training.memory import check_memory
from one_layer.training.plan import check_warmup, longest_allowed, planned, total_updates, with_length
from one_layer.training.teacher import teacher_of
from one_layer.training.teaching import taught
from one_layer.training.time_budget import with_updates
from one_layer.training.trainer import Ready

log = logging.getLogger(__name__)

_PLACES = ("data.directory", "data.store")  # keys that may be others in each process
_FEWEST = 10  # types of a vocabulary that is not known yet
_NVIDIA = Path("/proc/driver/nvidia/version")  # where NVIDIA's driver is loaded


@contextmanager
def opened(
    run: RunConfig, workdir: str | Path, devices: Devices | None = None, members: int = 1, known: Corpus | None = None
) -> Iterator[Ready]:
    """Begins `run` in `workdir`, or opens the run that is there. The folder is locked until the context ends.

    `devices` are by default those of the run's mesh. `members` runs take memory at the same time. `known` is what another run with the
    same text has read; it is taken if a run that goes on has the same vocabularies and preprocessing. Raises: UserError for bad input.
    """
    began_at = time.perf_counter()
    if run.train.minutes and members > 1:
        raise UserError("train.minutes measures a run that trains alone; give train.updates to runs of one program")
    folder = RunFolder(workdir, writes=processes.leads())
    alike = {name: value for name, value in flatten(run.raw).items() if name not in _PLACES}
    processes.agree({"code": processes.code(), **alike})
    folder.claim(run)  # without a lock, so that a folder that cannot be used is left as it is
    devices = devices or Devices.arranged(run.mesh.data, run.mesh.model)
    devices.check(run.model_config(_FEWEST, _FEWEST))
    with folder.locked():
        resumed = processes.told_by_the_leader(folder.claim(run))
        by_text = run.data.max_length == 0 and not resumed
        if resumed:
            run = folder.filled(run)
        elif by_text:
            run = longest_allowed(run)
        if not resumed and run.model_config(_FEWEST, _FEWEST).masked:
            _check_ticket(run)
        check_memory(run, run.model_config(_FEWEST, _FEWEST), members=members)  # before hours of preparation
        source, teacher = None if resumed else source_of(run), teacher_of(run, folder)
        with processes.leader_first("text"):  # it may store the text
            if reads := known is None or (resumed and not _made_with(known, folder.assets())):
                known = read_corpus(taught(run, folder, teacher), folder, resumed, source, teacher)
            corpus = known
            chosen: list[str] = []
            if by_text:
                run, length = with_length(run, known)
                chosen = length if reads else []  # another run of this program has cut its text, and has said so
                corpus = run.task.corpus(run.data, known)
        processes.agree({run.data.describe(part): text for part, text in corpus.fingerprints().items()})
        if began := folder.began() if resumed else {}:
            folder.check_beginning(began, corpus, run.data)  # before config.json is written with what may change
        batches = run.task.batches(corpus, run.data, run.optim.accumulate, run.seed)
        if run.train.bytes and not resumed:
            run, width = with_width(run, corpus)
            chosen += width
        model = run.model_for(corpus.vocabularies)
        _say(*corpus.report, batches.describe(), *chosen, *describe_devices(devices), *describe_ticket(model))
        if not (resumed or run.data.streamed):
            first_look(corpus)
        check_memory(run, model, corpus, members)
        lessons, teacher = lessons_of(run, corpus, folder, teacher), None  # its arrays are not needed any more
        ready = Ready(run, model, corpus, folder, devices, lessons)
        if run.train.minutes and not resumed:
            run, chosen = with_updates(ready, began_at)
            _say(*chosen)
        run, chosen = planned(run, batches.batches_per_epoch)
        _say(*chosen)
        if model.masked:
            _warn_of_work(run, model)
        if resumed:
            _check_teacher(run, began, lessons)
            if folder.finished:
                _check_length(folder, total_updates(run.train, batches.batches_per_epoch))
        with processes.leader_first("folder"):
            if not resumed:
                begin(ready._replace(run=run), source, batches.batches_per_epoch)
            folder.write_config(run)
        yield ready._replace(run=run)


def _say(*lines: str) -> None:
    for line in lines:
        log.info(line)


def describe_devices(devices: Devices) -> list[str]:
    """Lines for people: kind and number of the devices, and what to install where JAX leaves an NVIDIA GPU idle."""
    number, kind = devices.mesh.size, devices.mesh.devices.flat[0].device_kind
    if devices.platform != "cpu":
        return [f"trains on {number} x {kind}"]
    said = [f"trains on the CPU, with {cores()} cores" + (f" as {number} devices" if number > 1 else "")]
    if _NVIDIA.exists():
        said.append(
            "this machine has an NVIDIA GPU, which this JAX does not use: pip install -r requirements-cuda.txt (no flag is needed then), "
            "or leave it so"
        )
    return said


def _check_teacher(run: RunConfig, began: dict[str, Any], lessons: Lessons | None) -> None:
    """Raises: UserError if a run that goes on has another teacher by words than it began with."""
    if lessons is not None and began.get("teacher", lessons.key) != lessons.key:
        raise UserError(
            f"data.teacher={run.data.teacher} is not the model that this run began with; restore that one, or train in a new --workdir"
        )


def _check_length(folder: RunFolder, updates: int) -> None:
    """Raises: UserError if a finished run has done more than the `updates` that are asked for: its result would not say so.

    One that was interrupted may end where it is.
    """
    with closing(folder.checkpoints()) as checkpoints:
        done = checkpoints.last() or 0
    if done > updates:
        raise UserError(
            f"{folder} has done {counted(done, 'update')} already, but is to end after {updates:,}; give train.updates (or train.epochs) "
            f"of at least {done}, or a new --workdir"
        )


def _check_ticket(run: RunConfig) -> None:
    """Raises: UserError if no ticket could be written after hours of training, because the settings do not fit into one."""
    try:
        ends = {"train.updates": 1} if run.train.minutes else {}  # how many they are is not known yet
        settings = _settings(with_values(run, ends), run.model_config(_FEWEST, _FEWEST))
    except UserError as error:  # a selection of one's own may have none
        log.warning("this run will have no ticket: %s", error)
        return
    try:
        read_settings(write_settings(settings))
    except UserError as error:
        raise UserError(f"no ticket could be written of this run: {error}") from None


def _warn_of_work(run: RunConfig, model: ModelConfig) -> None:
    """Logs if the run's ticket would be refused for its size. The checkpoints can still be used."""
    try:
        settings = _settings(run, model)
    except UserError:  # it has none, as `_check_ticket` says
        return
    try:
        check_work(settings)
    except UserError as error:
        log.warning("this run will have no ticket: %s", error)


def _settings(run: RunConfig, model: ModelConfig) -> Settings:
    model = model.replace(selection=stored_as(model.supermask))
    return Settings(run.task, model, run.seed, 0, run.data, run.evaluation, training=of_training(run.raw))


def _made_with(corpus: Corpus, assets: TextAssets) -> bool:
    return all(getattr(corpus, name) == value for name, value in vars(assets).items())


def read_corpus(
    run: RunConfig, folder: RunFolder, resumed: bool, source: TrainedModel | None, teacher: TrainedModel | None
) -> Corpus:
    """The text in the vocabularies of the resumed run, of the `source` of fine-tuning, of a `teacher` by words, or of its own."""
    if source is not None:
        return run.task.corpus_in_vocabularies_of(source, run.data)
    if resumed:
        return run.task.corpus(run.data, folder.assets())
    by_words = teacher is not None and Distil.of(run.train) is not None
    return run.task.corpus(run.data, teacher.assets if teacher is not None and by_words else None)


def begin(ready: Ready, source: TrainedModel | None, epoch_updates: int) -> None:
    """Writes the files of a new run but config.json.

    Raises: UserError, before anything is written, for a missing or damaged file, a source that does not fit, and a warm-up without end.
    """
    run, model, corpus, folder, _, lessons = ready
    tables = pretrained_tables(model, run.seed, embedding_rows(model, table_sides(model, corpus)))
    begun = Start({}, {"frozen": tables}, [])
    if source is not None:
        begun = start(run, model, corpus, source, tables)
    check_warmup(run, epoch_updates)
    _say(*begun.report)
    # Now, because the folders of the sources may be gone, or their runs may have gone on, when this one ends.
    more = {"epoch_updates": epoch_updates, "sources": sources(flatten(run.raw))}
    more |= {} if lessons is None else {"teacher": lessons.key}
    folder.begin(corpus, begun.fixed, corpus.fingerprints(), begun.params, more)

"""Distillation by sentences: a teacher translates the training text once, and the student learns from its translations.

Kim and Rush 2016 (arXiv 1606.07947), section 3.2. A teacher's translations are simpler and more alike than references, so a small student
learns them better. They cost the student's file nothing.
"""

import dataclasses
import hashlib
import json
import logging
import os
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from tqdm import tqdm

from one_layer.data.preparation.parallel import chunks
from one_layer.data.reader import ParallelReader
from one_layer.data.text.languages import has_spaces
from one_layer.data.text.lines import read_lines
from one_layer.data.training_text import codes_of
from one_layer.models.sharding import fetch
from one_layer.runs.digests import digest
from one_layer.runs.folder import RunFolder
from one_layer.runs.settings import RunConfig
from one_layer.system.errors import UserError
from one_layer.system.files import continued
from one_layer.tasks.model import TrainedModel
from one_layer.training.teacher import translates

log = logging.getLogger(__name__)

_MOST_EMPTY, _LEAST_LEFT = 0.01, 0.5  # shares of translations that are empty, and of lines and words that are left
_BEAM = 5  # of a teacher's search
_LINES = 2048  # of the training text that are translated before the next part of the file is written


def taught(run: RunConfig, folder: RunFolder, teacher: TrainedModel | None) -> RunConfig:
    """`run` with the file of its teacher's translations as `data.translations`; `run` itself where no teacher translates for it.

    The file lies in `data.store`, or else in the run's folder. Its name is a digest of the teacher, its beam and the text, so runs of
    one store share it. It is written part by part: after an interruption, the next call goes on behind the last part.

    While another process is writing the file, this one waits. Raises: UserError for text that the teacher cannot read.
    """
    data = run.data
    if teacher is None or not translates(run):
        return run
    _check_prepared(run, teacher)
    teacher = dataclasses.replace(teacher, settings=dataclasses.replace(teacher.settings, beam=_BEAM))
    lines = ParallelReader().open(data).lines(data.train)[0]
    place = Path(data.store) if data.store else folder.path
    file = place / f"teacher-{_key(teacher, lines, data.is_prepared)}.{data.target_language}"
    if not file.exists():
        _translate(teacher, lines, file, prepared=data.is_prepared)
    check_translations(list(lines), file, spaces=all(map(has_spaces, data.languages)))
    log.info("teacher: %s (%s, update %d): %s", data.teacher, teacher.source, teacher.step, file)
    return dataclasses.replace(run, data=dataclasses.replace(data, teacher="", translations=str(file)))


def check_translations(sources: Sequence[str], file: Path, spaces: bool) -> None:
    """Warns if translations are alike, empty or far shorter than their sources: a student learns these, and its pieces come from them.

    `spaces`: words of both languages have spaces between them, and can be counted.
    """
    lines = list(read_lines(file))
    empty, different = sum(not line.strip() for line in lines), len(set(lines))
    problems = {
        f"{empty:,} of {len(lines):,} are empty": empty > _MOST_EMPTY * len(lines),
        f"{len(lines):,} have only {different:,} different lines": different < _LEAST_LEFT * len(set(sources)),
        "they have less than half as many words as their sources": spaces
        and sum(len(line.split()) for line in lines) < _LEAST_LEFT * sum(len(line.split()) for line in sources),
    }
    for problem in (each for each, seen in problems.items() if seen):
        log.warning(
            "the teacher's translations are no good text to learn from: %s; look at %s, and give a better data.teacher",
            problem,
            file,
        )


def _check_prepared(run: RunConfig, teacher: TrainedModel) -> None:
    data = run.data
    steps = ParallelReader().preprocessing(data, codes_of(data, None))
    if data.is_prepared and steps != teacher.assets.steps:
        raise UserError(
            f"data.prepared says that the text has its tokens already, but data.teacher={data.teacher} was trained on text that was "
            "prepared in another way; give a teacher of the same text, or raw text, which each of the two prepares for itself"
        )


def _key(teacher: TrainedModel, lines: Iterable[str], prepared: bool) -> str:
    """A digest of everything that decides the translations: the teacher's arrays, text assets and search, and the lines."""
    found = hashlib.blake2b(digest(fetch(teacher.variables)).encode(), digest_size=8)
    for steps, vocabulary in zip(teacher.assets.steps, teacher.assets.vocabularies, strict=True):
        found.update(json.dumps([steps.to_dict(), vocabulary.fingerprint]).encode())
    found.update(repr(teacher.settings).encode() + b" of tokens" * prepared)
    for line in lines:
        found.update(line.encode() + b"\n")
    return found.hexdigest()


def _translate(teacher: TrainedModel, lines: Iterable[str], file: Path, prepared: bool) -> None:
    """Writes the translations of `lines` to `file`, which gets its name when it is complete."""
    translate = teacher.lines_of_tokens if prepared else teacher.lines
    with continued(file, "the teacher's translations") as out:
        if out is None:
            return
        whole = Path(out.name).read_bytes().split(b"\n")[:-1]
        done = len(whole) // _LINES * _LINES  # of whole parts
        out.truncate(sum(len(line) + 1 for line in whole[:done]))
        total = sum(1 for _ in lines)
        with tqdm(total=total, initial=done, desc="teacher", unit="sentence", disable=None) as bar:
            for part in chunks(islice(lines, done, None), _LINES):
                out.write("".join(line + "\n" for line in translate(part)).encode())
                out.flush()
                os.fsync(out.fileno())
                done += len(part)
                bar.update(len(part))
                log.info("teacher: %s of %s lines are translated", f"{done:,}", f"{total:,}")

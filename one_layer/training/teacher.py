"""The teacher of a run (`data.teacher`): a trained model, by whose translations or probabilities the run learns."""

import logging
from pathlib import Path

import one_layer
from one_layer.data.text.languages import code
from one_layer.data.training_text import codes_of
from one_layer.runs.changes import STEPS, refuse_others
from one_layer.runs.folder import RunFolder
from one_layer.runs.settings import RunConfig
from one_layer.system.errors import UserError
from one_layer.tasks.losses import Distil
from one_layer.tasks.model import TrainedModel
from one_layer.training import processes

log = logging.getLogger(__name__)

_VOCABULARIES = ("joined_vocabulary", "unit", "labels")


def translates(run: RunConfig) -> bool:
    """Whether a teacher of `run` writes training text for it."""
    return run.task.name == "translation" and run.data.teacher_mix != "references"


def check_keys(run: RunConfig) -> None:
    """Checks that the keys about a teacher fit each other and the task. Raises: UserError if not."""
    data, by_words = run.data, Distil.of(run.train) is not None
    if by_words and not data.teacher:
        raise UserError(
            f"train.distil is {run.train.distil}, but there is no teacher; give the folder of a run, or a ticket, as data.teacher, or "
            "leave train.distil out"
        )
    if not data.teacher:
        return
    if not by_words and not translates(run):
        why = "data.teacher_mix=references" if run.task.name == "translation" else f"task={run.task.name}"
        raise UserError(
            f"data.teacher has no effect with {why} and train.distil=0; give the teacher's share of the loss as train.distil, for "
            "instance 0.5, or leave data.teacher out"
        )
    if run.task.name != "translation" and data.teacher_mix == "both":
        raise UserError(
            f"data.teacher_mix=both is for translations, and task is {run.task.name}; leave data.teacher_mix out"
        )


def teacher_of(run: RunConfig, folder: RunFolder) -> TrainedModel | None:
    """The model of `data.teacher`; None without one. Raises: UserError for a teacher that cannot be used or does not fit."""
    check_keys(run)
    data = run.data
    if not data.teacher:
        return None
    if not processes.alone():
        raise UserError(
            "data.teacher teaches in one process, and this run has several"
            + (
                ": train there for one update, and give the file of translations that it writes as data.translations"
                if translates(run)
                else "; train it in one"
            )
        )
    if folder.path.resolve() == Path(data.teacher).resolve():
        raise UserError(f"data.teacher={data.teacher} is the run's own folder; give another run, or a ticket")
    if not Path(data.teacher).exists():
        raise UserError(
            f"data.teacher cannot be used: {data.teacher} does not exist; train that run first, or give another run or a ticket"
        )
    try:
        model = one_layer.load(data.teacher)
    except UserError as error:
        raise UserError(f"data.teacher cannot be used: {error}") from None
    if model.task != run.task.name:
        raise UserError(f"data.teacher={data.teacher} is a {model.task} model; give a {run.task.name} model")
    _check_languages(run, model)
    if Distil.of(run.train):
        _check_pieces(run, model)
    return model


def _check_languages(run: RunConfig, model: TrainedModel) -> None:
    read = 1 if run.data.labels else 2  # labels have no language
    theirs, ours = model.assets.languages[:read], run.data.languages[:read]
    if [*map(code, theirs)] != [*map(code, ours)]:
        verb = "translates" if run.task.name == "translation" else "reads"
        raise UserError(
            f"data.teacher={run.data.teacher} {verb} {' to '.join(theirs)}, but the text is {' to '.join(ours)}; give a teacher of the "
            "same languages"
        )


def _check_pieces(run: RunConfig, model: TrainedModel) -> None:
    """Raises: UserError if the teacher's probabilities would be those of other pieces, or of a longer text than it was trained on."""
    now, then = run.data, model.data
    keys = [*_VOCABULARIES, *(() if now.is_prepared and then.is_prepared else (*STEPS, "bpe_merges"))]
    keys = [key for key in keys if not (key == "bpe_merges" and now.bpe_codes)]  # codes are compared themselves
    refuse_others(
        [(f"data.{key}", getattr(now, key), getattr(then, key)) for key in keys],
        f"train.distil needs a teacher with the same pieces and labels, and data.teacher={now.teacher} has others",
    )
    if now.bpe_codes and codes_of(now, None) != model.assets.codes:
        raise UserError(
            f"train.distil needs a teacher with the same pieces, and data.bpe_codes={now.bpe_codes} are not the merges of "
            f"data.teacher={now.teacher}; give those, or another teacher"
        )
    longest = "block" if now.streamed else "max_length"
    rows = model.config.max_positions if model.config.position_rows else getattr(now, longest)
    most = min(rows, then.block) if now.streamed else rows
    if getattr(now, longest) > most:
        raise UserError(
            f"data.{longest} is {getattr(now, longest)}, but data.teacher={now.teacher} reads at most {most} tokens; give at most "
            f"data.{longest}={most}"
        )

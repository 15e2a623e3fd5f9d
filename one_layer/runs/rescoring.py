"""A trained model with other settings of scoring: another search, another text."""

import dataclasses
import logging
from typing import Any

from one_layer.data.config import DataConfig
from one_layer.runs.records import flatten, record
from one_layer.runs.settings import task_settings
from one_layer.system.errors import UserError
from one_layer.tasks import task_named
from one_layer.tasks.model import TrainedModel

log = logging.getLogger(__name__)

_WHERE_TEXT_IS = ("data.directory", "data.valid", "data.tests")


def rescored(model: TrainedModel, config: dict[str, Any], overrides: dict[str, Any]) -> TrainedModel:
    """`model` with the section `evaluation` of another config, and with the text in `overrides`: `data.directory`, `.valid`, `.tests`.

    Everything else was decided in training. Raises: UserError for an override (by its dotted name) that differs from the value that the
    model was trained with, and for settings that do not fit the model or its text.
    """
    trained, data = flatten(model.trained_with), {}
    for name, value in flatten(overrides).items():
        if name in _WHERE_TEXT_IS:
            data[name.removeprefix("data.")] = tuple(value) if isinstance(value, list) else value
        elif not name.startswith(("evaluation.", "mesh.")) and trained.get(name) != value:
            told = (
                f"the run was trained with {trained[name]!r}"
                if name in trained
                else f"{model.source} does not hold this key"
            )
            raise UserError(
                f"--config.{name}={value!r:.200}, but {told}; when scoring or translating, only "
                f"evaluation.*, mesh.*, {', '.join(_WHERE_TEXT_IS)} can have other values"
            )
    if not isinstance(config.get("evaluation"), dict):
        raise UserError("the config lacks the section 'evaluation'; start from configs/common.py")
    task = task_named(model.task)
    settings = task_settings(task, config["evaluation"])
    own, now = vars(model.settings), vars(settings)
    if others := ", ".join(f"{name}={now[name]!r} and not {own[name]!r}" for name in now if now[name] != own[name]):
        log.info("the section evaluation is that of the given config: %s", others)
    text = record(DataConfig, "data", {**vars(model.data), **data})
    task.check(text, model.config, settings)
    text.check_parts()
    _check_held_out(model.data, text)
    return dataclasses.replace(model, settings=settings, data=text)


def _check_held_out(trained: DataConfig, scored: DataConfig) -> None:
    """Raises: UserError if a part that is to be scored has other lines than were held out in training: the model may have learned them.

    Of pairs, the first part has the first share of the lines, and so on. The parts of a stream have their places whatever they are.
    """
    then, now = trained.parts_held_out, scored.parts_held_out
    if not trained.streamed and then[: len(now)] != now:
        raise UserError(
            f"data.valid={scored.valid!r:.200} and data.tests={list(scored.tests)!r:.200} would score {' and '.join(now)} of "
            f"data.held_out, but in training the parts that were held out are {' and '.join(then)}: the model may have learned lines of "
            "the others; leave data.valid and data.tests out, or give files of their own"
        )

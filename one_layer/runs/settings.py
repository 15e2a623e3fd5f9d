"""The resolved configuration of a run: frozen records, made once from what `configs/` and the command line say."""

from __future__ import annotations

import dataclasses
import difflib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from one_layer.data.config import DataConfig
from one_layer.errors import UserError
from one_layer.files import write_atomically
from one_layer.models.config import ModelConfig
from one_layer.tasks.classification.glue import TASKS
from one_layer.tasks.classification.measures import SCORES
from one_layer.training.optimizer import OptimConfig

Record = TypeVar("Record")

_TASKS = ("translation", "classification")
_SELECT = ("bleu", "nll", *SCORES)
_WHERE_TEXT_IS = ("data.directory", "data.valid", "data.tests")


@dataclass(frozen=True)
class TrainConfig:
    """How long to train and what to keep. 0 stands for "no limit" or "never"."""

    updates: int = 0
    epochs: int = 0
    evaluate_every: int = 0  # updates between evaluations and checkpoints; 0: once an epoch
    patience: int = 0  # evaluations without a better score before training stops
    select: str = "bleu"  # of valid, what the best checkpoint has: bleu (tokenised), nll, or a classifier's score
    log_every: int = 50  # updates between lines of metrics
    keep_last: int = 1  # checkpoints
    keep_best: int = 1  # checkpoints of the best validation scores
    keep_every: int = 0  # evaluations between checkpoints that stay for good

    def __post_init__(self) -> None:
        if self.select not in _SELECT:
            raise UserError(f"train.select is {self.select!r}; known are {', '.join(_SELECT)}")
        if not (self.updates or self.epochs):
            raise UserError("train.updates and train.epochs are both 0: say when training ends")
        least = {"log_every": 1, "keep_last": 1, "keep_best": 1}
        for name in (each.name for each in dataclasses.fields(self) if each.name != "select"):
            if getattr(self, name) < least.get(name, 0):
                raise UserError(f"train.{name} is {getattr(self, name)}; it must be at least {least.get(name, 0)}")


@dataclass(frozen=True)
class EvaluationConfig:
    """Beam search: of the test sets (`beam`), and of the validation set while training (`valid_beam`; 0: not at all).

    A hypothesis has at most `max_length_a` times the padded source length plus `max_length_b` tokens, and eos.
    """

    beam: int = 5
    valid_beam: int = 1
    length_penalty: float = 1.0
    max_length_a: float = 1.2
    max_length_b: int = 10
    max_tokens: int = 4096  # padded source tokens of a batch
    buckets: int = 4

    def __post_init__(self) -> None:
        for name, least in {"beam": 1, "valid_beam": 0, "max_length_b": 1, "max_tokens": 1, "buckets": 1}.items():
            if getattr(self, name) < least:
                raise UserError(f"evaluation.{name} is {getattr(self, name)}; it must be at least {least}")
        for name in ("length_penalty", "max_length_a"):
            if not 0 <= getattr(self, name) < math.inf:
                raise UserError(f"evaluation.{name} is {getattr(self, name)}; it must be a number of at least 0")


@dataclass(frozen=True)
class RunConfig:
    """Everything that a run depends on, with the seed of the random layer, the scores, the batches and dropout."""

    model: dict[str, Any]
    data: DataConfig
    optim: OptimConfig
    train: TrainConfig
    evaluation: EvaluationConfig
    task: str = "translation"
    seed: int = 1
    raw: dict[str, Any] = field(default_factory=dict, compare=False)

    def model_config(self, source_vocab: int, target_vocab: int) -> ModelConfig:
        """The model for vocabularies of these sizes."""
        return _record(ModelConfig, "model", {**self.model, "source_vocab": source_vocab, "target_vocab": target_vocab})


def resolve(config: dict[str, Any]) -> RunConfig:
    """Turns nested plain values (a ConfigDict's, or config.json's) into records.

    Raises: UserError for unknown keys, with the nearest known one, for missing sections, and for values out of range.
    """
    known = {"model", "data", "optim", "train", "evaluation", "task", "seed"}
    _refuse_unknown("", config, known)
    missing = {"model", "data", "optim", "train", "evaluation"} - config.keys()
    if missing:
        raise UserError(f"the config lacks the section {sorted(missing)[0]!r}; start from configs/common.py")
    if config.get("task", "translation") not in _TASKS:
        raise UserError(f"task is {config['task']!r}; known are {' and '.join(_TASKS)}")
    for name in known - {"task", "seed"}:
        if not isinstance(config[name], dict):
            raise UserError(f"{name} is {config[name]!r} in the config; it is a section with keys of its own")
    seed = config.get("seed", 1)
    if not _fits(seed, int) or not 0 <= seed < 2**32:
        raise UserError(f"seed is {seed!r}; it must be a whole number from 0 to 2**32 - 1")
    data = {name: tuple(v) if isinstance(v, list) else v for name, v in config["data"].items()}
    model, task = _resolved_model(config["model"]), config.get("task", "translation")
    records: dict[str, Any] = {
        "data": _record(DataConfig, "data", data),
        "optim": _record(OptimConfig, "optim", config["optim"]),
        "train": _record(TrainConfig, "train", config["train"]),
        "evaluation": _record(EvaluationConfig, "evaluation", config["evaluation"]),
    }
    plain = {name: dict(vars(record)) for name, record in records.items()}
    run = RunConfig(
        model=model, **records, task=task, seed=seed, raw={"task": task, "seed": seed, "model": model, **plain}
    )
    _check_together(run)
    return run


def _resolved_model(values: dict[str, Any]) -> dict[str, Any]:
    """The section `model` with the values that follow from others, a preset's among them: what config.json tells its readers."""
    model = _record(ModelConfig, "model", {**values, "source_vocab": 10, "target_vocab": 10})
    return {name: value for name, value in vars(model).items() if name not in ("source_vocab", "target_vocab")}


def rescored(run: RunConfig, config: dict[str, Any], overrides: dict[str, Any]) -> RunConfig:
    """`run` with the section `evaluation` of another config, and with the test text that `overrides` name: `data.directory` and such.

    All else is settled by the training. Raises: UserError for an override, by its dotted name, that is not what the run was
    trained with.
    """
    trained, data = flatten(run.raw), {}
    for name, value in flatten(overrides).items():
        if name in _WHERE_TEXT_IS:
            data[name.removeprefix("data.")] = tuple(value) if isinstance(value, list) else value
        elif not name.startswith("evaluation.") and trained.get(name) != value:
            raise UserError(
                f"--config.{name}={value!r}, but the run was trained with {trained.get(name)!r}; to score or translate, other values "
                f"are taken for evaluation.* and {', '.join(_WHERE_TEXT_IS)} alone"
            )
    evaluation = _record(EvaluationConfig, "evaluation", config["evaluation"])
    return dataclasses.replace(run, evaluation=evaluation, data=_record(DataConfig, "data", {**vars(run.data), **data}))


def _check_together(run: RunConfig) -> None:
    """Refuses, before any text is read, a model that cannot be and settings that do not go together."""
    model = run.model_config(10, 10)
    if (
        model.masked
        and model.supermask.keeps_all
        and model.embedding != "trained"
        and not model.classifies
        and model.norm == "plain"
        and not model.bias
    ):
        raise UserError(
            "model.keep is 1.0, which makes no masks, so that nothing is left to train; give a keep below 1, or "
            "model.embedding=trained"
        )
    _check_task(run, model)
    if run.train.select == "bleu" and not run.evaluation.valid_beam:
        raise UserError(
            "train.select is 'bleu', but evaluation.valid_beam is 0, so the validation set is never translated; "
            "give train.select=nll, or a valid_beam of at least 1"
        )


def _check_task(run: RunConfig, model: ModelConfig) -> None:
    """Refuses a task that the model or the data are not of, and a score that is another task's."""
    classifies = run.task == "classification"
    if classifies != model.classifies or classifies != bool(run.data.labels):
        raise UserError(
            f"task={run.task}, model.decoder_layers={model.decoder_layers} and data.labels={run.data.labels!r} do not go together: a "
            "classification has 0 decoder layers and labels, a translation has decoder layers and no labels"
        )
    known = ("nll", *(TASKS[run.data.labels].scores if classifies else ("bleu",)))
    if run.train.select not in known:
        raise UserError(f"train.select is {run.train.select!r}; what is measured here are {' and '.join(known)}")
    if model.positions == "frozen" and run.data.max_length > model.max_positions:
        raise UserError(
            f"data.max_length is {run.data.max_length}, but model.max_positions {model.max_positions}: give a table of more positions, "
            "or cut texts shorter"
        )


def flatten(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested keys joined by dots, tuples as lists, so that what JSON read back compares equal."""
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{name}."))
        else:
            flat[prefix + name] = list(value) if isinstance(value, tuple) else value
    return flat


def check_workdir(workdir: Path, run: RunConfig) -> bool:
    """Makes sure that the folder is fresh, or holds a run of this very config; writes nothing.

    What only says how long to go on, or how to score, may differ (the first not under a schedule that depends on the end).

    Returns: whether the folder held the run already. Raises: UserError that names the keys that differ.
    """
    path = workdir / "config.json"
    if workdir.exists() and not workdir.is_dir():
        raise UserError(f"--workdir={workdir} is a file; give the name of a folder, or of one to be made")
    if not path.exists():
        if (workdir / "checkpoints").exists():
            raise UserError(f"{workdir} holds checkpoints but no config.json; give a fresh --workdir")
        return False
    # Resolved: what an earlier version did not write down had its default.
    before, now = (flatten(json.loads(json.dumps(raw))) for raw in (resolve(read_config(workdir)).raw, run.raw))
    differing = [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]
    fatal = [name for name in differing if not _may_change(name, run)]
    if fatal:
        keys = "; ".join(f"{name}: {before.get(name)!r} there, {now.get(name)!r} here" for name in fatal)
        raise UserError(f"{workdir} holds a run of another config ({keys}); give another --workdir, or the same values")
    return True


def write_config(workdir: Path, run: RunConfig) -> None:
    """Writes `config.json`: from now on the folder is this run's."""
    write_atomically(workdir / "config.json", json.dumps(run.raw, indent=1) + "\n")


def read_config(workdir: Path) -> dict[str, Any]:
    """The config of the run in `workdir`. Raises: UserError where there is none, or a damaged one."""
    path = workdir / "config.json"
    try:
        config = json.loads(path.read_text("utf-8"))
        if not isinstance(config, dict):
            raise ValueError("it holds no object")
        return config
    except FileNotFoundError:
        raise UserError(
            f"{workdir} holds no run: there is no config.json; train one first, or mend --workdir"
        ) from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}); restore it, or train into a fresh --workdir") from None


def _may_change(name: str, run: RunConfig) -> bool:
    if name in ("train.updates", "train.epochs"):
        return run.optim.schedule == "inverse_sqrt"
    return name.startswith("evaluation.") or name in ("train.patience", "train.log_every", "data.store")


def _record(kind: type[Record], section: str, values: dict[str, Any]) -> Record:
    hints = get_type_hints(kind)
    _refuse_unknown(f"{section}.", values, set(hints))
    for name, value in values.items():
        if not _fits(value, hints[name]):
            expected = str(hints[name]) if get_args(hints[name]) else hints[name].__name__
            raise UserError(f"{section}.{name} is {value!r}; it takes a value of type {expected}")
    return kind(**values)


def _fits(value: Any, hint: Any) -> bool:
    """Whether a plain value is of a field's type; a whole number passes for a float, true and false for no number."""
    if isinstance(hint, UnionType):
        return any(_fits(value, each) for each in get_args(hint))
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and all(_fits(each, get_args(hint)[0]) for each in value)
    if hint in (int, float):
        return isinstance(value, (int, hint)) and not isinstance(value, bool)
    return isinstance(value, hint)


def _refuse_unknown(prefix: str, values: dict[str, Any], known: set[str]) -> None:
    for name in values:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {prefix}{near[0]}?" if near else f"known are {', '.join(sorted(known))}"
            raise UserError(f"unknown key {prefix}{name} in the config; {hint}")

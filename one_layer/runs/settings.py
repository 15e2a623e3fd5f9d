"""The resolved configuration of a run: frozen records, made once from a config of `configs/` and the command line."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from one_layer.data.config import DataConfig
from one_layer.data.text.assets import Vocabularies, check_equal
from one_layer.models import ModelConfig, shapes
from one_layer.models.keys import MODEL_KEYS
from one_layer.models.trained import TrainedParts
from one_layer.runs.records import fits, record, refuse_unknown, replaced
from one_layer.system.errors import UserError, check_least
from one_layer.tasks import TASKS, task_named
from one_layer.tasks.losses import Distil
from one_layer.tasks.protocol import Task

SCHEDULES = ("inverse_sqrt", "cosine", "linear")
MOST_UPDATES = 2**31 - 1  # programs count updates in 32 bits
_LEAST_FLOAT = 2.0**-126  # the least positive float32 with all its digits
OPEN = ("optim.lr", "optim.warmup", "train.evaluate_every")  # keys that may be None until the text is known
_SECTIONS = ("model", "data", "optim", "train", "evaluation", "mesh")


@dataclass(frozen=True)
class OptimConfig:
    """`lr` is the peak, reached after `warmup` updates. `clip` 0 means no clipping. `accumulate` micro-batches make one update.

    `lr` and `warmup` may be None until the text is known: `one_layer.training.plan` chooses them then.
    """

    lr: float | None = 5e-4
    schedule: str = "inverse_sqrt"
    warmup: int | None = 4000
    warmup_init_lr: float = 0.0
    b1: float = 0.9
    b2: float = 0.98
    eps: float = 1e-8
    weight_decay: float = 0.0
    clip: float = 0.0
    label_smoothing: float = 0.1
    softness: float = 0.0
    accumulate: int = 1
    train_only: str = ""
    freeze: str = ""

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise UserError(f"optim.schedule is {self.schedule!r:.200}; known are {', '.join(SCHEDULES)}")
        for name in ("b1", "b2", "label_smoothing"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise UserError(f"optim.{name} is {getattr(self, name)}; it must lie in [0, 1)")
        if not self.eps >= _LEAST_FLOAT:
            raise UserError(
                f"optim.eps is {self.eps}; it must be at least {_LEAST_FLOAT:.3g} (less is 0 in float32), because a score without a "
                "gradient would become 0/0"
            )
        if (self.warmup or 0) > MOST_UPDATES:
            raise UserError(f"optim.warmup is {self.warmup}; it must be at most {MOST_UPDATES:,}")
        check_least("optim", self, lr=0, warmup=0, warmup_init_lr=0, weight_decay=0, clip=0, softness=0, accumulate=1)


@dataclass(frozen=True)
class TrainConfig:
    """How long to train and what to keep. 0 stands for "no limit" or "never"; configs/common.py comments on every key.

    `evaluate_every` may be None until the text is known, as `OptimConfig.lr` may.
    """

    updates: int = 0
    epochs: int = 0
    minutes: float = 0.0
    bytes: int = 0
    evaluate_every: int | None = 0
    patience: int = 0
    select: str = "bleu"
    log_every: int = 50
    checkpoint_minutes: float = 10.0
    keep_last: int = 1
    unroll: str = "auto"
    backskip: str = "off"
    check_memory: bool = True
    init_from: str = ""
    model_of: str = ""
    distil: float = 0.0

    def __post_init__(self) -> None:
        Distil.of(self)
        if not (self.updates or self.epochs or self.minutes):
            raise UserError(
                "train.updates, train.epochs and train.minutes are all 0; set one of them, so that training ends"
            )
        if self.unroll not in ("auto", "yes", "no"):
            raise UserError(f"train.unroll is {self.unroll!r:.200}; give auto, yes or no")
        numbers = {each.name: 0 for each in dataclasses.fields(self) if each.type != "str"}
        check_least("train", self, **{**numbers, "log_every": 1, "keep_last": 1})
        for name, value in (("updates", self.updates), ("epochs", self.epochs)):
            if value > MOST_UPDATES:
                raise UserError(f"train.{name} is {value}; it must be at most {MOST_UPDATES:,}; 0 stands for no limit")


def left_open(run: RunConfig) -> set[str]:
    """The keys, by dotted names, whose values a run gets when it begins: from its text, or from a budget of minutes or bytes."""
    keys = {name for name in OPEN if run.raw[name.partition(".")[0]][name.partition(".")[2]] is None}
    keys |= {"train.updates"} if run.train.minutes else set()
    keys |= {"data.max_length"} if run.data.max_length == 0 else set()
    return keys | ({"model.d_model", "model.ffn"} if run.train.bytes else set())


# The keys of `optim` and `train` that decide the arrays of a checkpoint, but for places of files.
OF_TRAINING = {
    "optim": {each.name for each in dataclasses.fields(OptimConfig)},
    "train": {"updates", "epochs", "backskip", "select", "distil"},
}


@dataclass(frozen=True)
class MeshConfig:
    """The devices along each axis of the mesh (`one_layer.models.sharding`); -1 stands for as many as there are."""

    data: int = -1
    model: int = 1

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value != -1 and value < 1:
                raise UserError(
                    f"mesh.{name} is {value}; it must be at least 1, or -1 for as many as there are devices"
                )
        if self.data == self.model == -1:
            raise UserError("mesh.data and mesh.model are both -1; at most one of them can follow from the other")


@dataclass(frozen=True)
class RunConfig:
    """Everything that a run depends on. `seed` is for the random layer, the scores, the order of batches and dropout.

    `model` has the config's keys; `model_config` makes the record from them when the vocabularies are known. `evaluation` is the task's
    record of settings. `raw` has everything as plain values, as in config.json.
    """

    task: Task
    seed: int
    model: dict[str, Any]
    data: DataConfig
    optim: OptimConfig
    train: TrainConfig
    evaluation: Any
    mesh: MeshConfig = MeshConfig()
    raw: dict[str, Any] = field(default_factory=dict, compare=False)

    def model_config(self, source_vocab: int, target_vocab: int) -> ModelConfig:
        """The model for vocabularies of these sizes."""
        given = {"source_vocab": source_vocab, "target_vocab": target_vocab, "family": self.task.family}
        given |= {"backskip": self.train.backskip, "train_only": self.optim.train_only, "freeze": self.optim.freeze}
        return record(ModelConfig, "model", {**self.model, **given})

    def model_for(self, vocabularies: Vocabularies) -> ModelConfig:
        """The model for these vocabularies, source and target. Raises: UserError if they share a table and are not equal."""
        model = self.model_config(*map(len, vocabularies))
        if model.shared_embedding:
            check_equal(vocabularies)
        return model


def resolve(config: dict[str, Any]) -> RunConfig:
    """Turns nested plain values (from a ConfigDict or config.json) into records.

    Raises: UserError for an unknown key (it suggests the nearest known one), a missing section, and a value out of range.
    """
    refuse_unknown("", config, {*_SECTIONS, "task", "seed"})
    if missing := sorted(set(_SECTIONS) - config.keys()):
        raise UserError(f"the config lacks the section {missing[0]!r}; start from configs/common.py")
    task = task_named(config.get("task", "translation"))
    for name in _SECTIONS:
        if not isinstance(config[name], dict):
            raise UserError(f"{name} is {config[name]!r:.200} in the config; it must be a section with keys")
    seed = config.get("seed", 1)
    if not fits(seed, int) or not 0 <= seed < 2**32:
        raise UserError(f"seed is {seed!r:.200}; it must be a whole number from 0 to 2**32 - 1")
    data = {name: tuple(v) if isinstance(v, list) else v for name, v in config["data"].items()}
    model = _resolved_model(task, config["model"])
    records: dict[str, Any] = {
        "data": record(DataConfig, "data", data),
        "optim": record(OptimConfig, "optim", config["optim"]),
        "train": record(TrainConfig, "train", config["train"]),
        "evaluation": task_settings(task, config["evaluation"]),
        "mesh": record(MeshConfig, "mesh", config["mesh"]),
    }
    plain = {name: dict(vars(each)) for name, each in records.items()}
    run = RunConfig(task, seed, model, **records, raw={"task": task.name, "seed": seed, "model": model, **plain})
    _check_together(run)
    return run


def with_values(run: RunConfig, values: dict[str, Any]) -> RunConfig:
    """`run` with other values of some keys, by dotted names. Raises: UserError as `resolve` does."""
    return resolve(replaced(run.raw, values))


def task_settings(task: Task, values: dict[str, Any]) -> Any:
    """The task's record of the section `evaluation`. Keys that only other tasks have are left out.

    Raises: UserError for keys that no task has, and for values out of range.
    """
    tasks = [] if values.keys() <= _keys(task) else TASKS.values()  # the others are imported only where they may matter
    return record(task.settings, "evaluation", values, ignored=set().union(*map(_keys, tasks)))


def _keys(task: Task) -> set[str]:
    return {each.name for each in dataclasses.fields(task.settings)}


def _resolved_model(task: Task, values: dict[str, Any]) -> dict[str, Any]:
    """The section `model` for config.json, with the values that follow from others filled in, including those of a preset."""
    refuse_unknown("model.", values, set(MODEL_KEYS))
    model = record(ModelConfig, "model", {**values, "source_vocab": 10, "target_vocab": 10, "family": task.family})
    return {name: getattr(model, name) for name in MODEL_KEYS}


def _check_together(run: RunConfig) -> None:
    """Checks, before any text is read, that the model can be trained and that the settings fit together. Raises: UserError."""
    model = run.model_config(10, 10)
    run.task.check(run.data, model, run.evaluation)
    run.data.check_parts()  # after the task, which may have no use for the source at all
    if not any(path[0] == "params" for path in shapes(model)):
        raise UserError(
            "there are no masks and nothing to train: no layer is masked with a keep below 1, or trained (L), and no table is; give a "
            "model.keep below 1, layers that are trained, or model.embedding=trained"
        )
    parts = TrainedParts.of(model)
    if run.optim.softness:
        _check_softness(run, model, parts)
    if "train" in run.data.tests:
        raise UserError(
            "data.tests contains 'train', but result.json has the fingerprint of the training text by that name; rename the test set, or "
            "score it after training, with --mode=evaluate"
        )
    sources = {"train.init_from": run.train.init_from, "model.embedding_path": run.model["embedding_path"]}
    for name, given in sources.items():
        if run.train.bytes and given:
            raise UserError(
                f"train.bytes={run.train.bytes} would choose the width of the model, but {name}={given} has one; leave one of the two out"
            )
    known = run.task.selectable(run.data, run.evaluation)
    if run.train.select not in known:
        raise UserError(
            f"train.select is {run.train.select!r:.200}, but the validation set is measured by {' and '.join(known)}; give one of these"
        )


def _check_softness(run: RunConfig, model: ModelConfig, parts: TrainedParts) -> None:
    masks = [path[1:] for path in shapes(model) if path[-1] == "scores"]
    if model.selection != "sign" or not masks or any(parts.rows.get(path, []) is not None for path in masks):
        raise UserError(
            f"optim.softness={run.optim.softness} softens the signs that a run trains, all of them; give model.selection=sign and "
            "model.keep=1 and freeze no masks, or optim.softness=0"
        )
    if run.train.patience:
        raise UserError(
            f"train.patience={run.train.patience} could end the run while its signs are soft (optim.softness={run.optim.softness}): the "
            "validation sees signs, whose scores get better late; leave one of the two out"
        )


def of_training(config: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What a ticket says of the training of a run with this resolved `config`, as far as the config has it."""
    sections = {name: config[name] for name in OF_TRAINING if config.get(name)}
    return {name: {key: each[key] for key in each if key in OF_TRAINING[name]} for name, each in sections.items()}

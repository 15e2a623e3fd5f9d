"""The settings in a ticket: which model it holds, and how text is read, written and scored."""

import dataclasses
import json
import math
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from one_layer.data.config import DataConfig
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.lines import split_lines
from one_layer.data.text.preprocess import Preprocessing
from one_layer.data.text.vocabulary import SPECIALS, Vocabulary
from one_layer.models.config import ModelConfig
from one_layer.models.keys import FOR_TRAINING, MODEL_KEYS
from one_layer.own_selection import is_own
from one_layer.runs.records import record
from one_layer.runs.settings import OF_TRAINING, OptimConfig, RunConfig, TrainConfig, of_training, resolve
from one_layer.system.errors import UserError
from one_layer.system.removed import refuse_removed, without_idle
from one_layer.tasks import task_named
from one_layer.tasks.protocol import Task
from one_layer.tickets.file import TicketFile
from one_layer.tickets.json_text import damaged, parse

Tensors = dict[str, np.ndarray]

NAMES = ("task", "seed", "step", "model", "data", "evaluation", "training")  # names of metadata

_LONGEST_TEXT = 2**24  # bytes
_MOST_MERGES = 2**20  # each is an object or more
_LARGEST_NUMBER, _LONGEST_STRING, _LONGEST_LIST = 2**40, 1000, 100
_LONGEST_LABELS = 2**16  # characters of data.labels and optim.freeze, which may list a thousand names
CHECKPOINT = re.compile(r"best|last|(average(-best)?:)?\d{1,16}")  # the names of `--checkpoint`
_UNICODE = re.compile(r"\d{1,3}(\.\d{1,3}){0,2}")
_KEY = re.compile("[a-z0-9_]{1,40}")
_LANGUAGE = re.compile(r"[^/\\\0]{1,100}")
# Upper limits of the data settings that decide the memory and time of an evaluation; a task has limits for its own settings.
_DATA_LIMITS = {"toy_train": 10**6, "toy_valid": 10**6, "toy_test": 10**6, "block": 2**16}


@dataclass(frozen=True)
class Settings:
    """The task and its model, the seed of the random weights, the update (`step`) of the masks, and the settings of text and scoring.

    `evaluation` is the task's record of settings. `checkpoint` is the name of the checkpoint that the masks come from, and `training` has
    keys of the run's sections `optim` and `train`; both are empty for a model that no run has trained. `unicode` is the version of Unicode
    by which its text is tokenised or lower-cased; empty where it is not, and where it is not known.
    """

    task: Task
    config: ModelConfig
    seed: int
    step: int
    data: DataConfig
    evaluation: Any
    checkpoint: str = field(default="", kw_only=True)
    unicode: str = field(default="", kw_only=True)
    training: dict[str, dict[str, Any]] = field(default_factory=dict, kw_only=True, hash=False)


def write_settings(settings: Settings) -> dict[str, str]:
    """The metadata: one JSON text per name."""
    left_out = ("family", *FOR_TRAINING)  # the task decides the family
    values = {
        "task": settings.task.name,
        "seed": settings.seed,
        "step": settings.step,
        "model": {name: value for name, value in dataclasses.asdict(settings.config).items() if name not in left_out},
        "data": vars(settings.data),
        "evaluation": vars(settings.evaluation),
        "training": {
            "checkpoint": settings.checkpoint,
            **({"unicode": settings.unicode} if settings.unicode else {}),
            **settings.training,
        },
    }
    return {name: json.dumps(value) for name, value in values.items()}


def trained_with(settings: Settings) -> dict[str, Any]:
    """The resolved config of the run, as far as the ticket knows it: of `optim` and `train` it may know nothing."""
    model = {name: value for name, value in vars(settings.config).items() if name in MODEL_KEYS}
    sections = {"model": model, "data": vars(settings.data), "evaluation": vars(settings.evaluation)}
    known = _as_run(settings.task, settings.seed, sections).raw
    return {name: value for name, value in known.items() if name not in OF_TRAINING} | settings.training


def _as_run(task: Task, seed: int, sections: dict[str, Any]) -> RunConfig:
    return resolve(
        {**sections, "task": task.name, "seed": seed, "optim": {}, "mesh": {}, "train": {"epochs": 1, "select": "nll"}}
    )


def read_settings(metadata: dict[str, str]) -> Settings:
    """Reads what `write_settings` wrote. Raises: UserError for a value that is missing, of another type or out of range."""
    sections = {name: read_json(metadata, name) for name in ("model", "data", "evaluation")}
    for name, section in sections.items():
        _check_section(name, section)
    sections = without_idle(sections)
    sizes = [sections["model"].pop(f"{side}_vocab", None) for side in ("source", "target")]
    seed, step = read_json(metadata, "seed"), read_json(metadata, "step")
    if not all(type(number) is int and 0 <= number <= _LARGEST_NUMBER for number in (*sizes, seed, step)):
        raise damaged("its seed, its step or the sizes of its vocabularies are not valid whole numbers")
    if unknown := sorted(sections["model"].keys() - MODEL_KEYS):
        refuse_removed(f"model.{key}" for key in unknown)
        raise UserError(
            f"unknown key model.{unknown[0]}, for instance of a kind of mask that only later versions know; use the version that wrote the "
            "ticket, or a later one"
        )
    if is_own(str(sections["model"].get("selection", ""))):
        raise damaged("its model.selection names a class of the program that wrote it, which no reader has")
    task = task_named(read_json(metadata, "task"))
    run = _as_run(task, seed, sections)
    for name, limits in {"data": _DATA_LIMITS, "evaluation": task.limits}.items():
        for key, most in limits.items():
            if (value := getattr(getattr(run, name), key)) > most:
                raise UserError(f"{name}.{key} is {value}; a ticket's is at most {most}")
    if run.data.max_length == 0:
        raise UserError("data.max_length is 0, which only the training text can decide; a ticket's is at least 2")
    _check_names(run.data)
    made_of = _read_training(metadata)
    given = (task, run.model_config(*sizes), run.seed, step, run.data, run.evaluation)
    return Settings(*given, **made_of)


def _check_section(name: str, section: Any, longest: int = _LONGEST_STRING, largest: float = _LARGEST_NUMBER) -> None:
    """Raises: UserError for anything but an object with short keys, and for values that are too long, too large or of another type."""
    if not isinstance(section, dict) or not all(_KEY.fullmatch(key) for key in section):
        raise damaged(f"its metadata {name!r} is not a JSON object with short keys")
    for key, value in section.items():
        if not _plain(value, _LONGEST_LABELS if (name, key) == ("data", "labels") else longest, largest):
            raise UserError(
                f"{name}.{key} is {value!r:.60}; a ticket's settings are numbers up to 2**40, texts of at most {_LONGEST_STRING:,} "
                f"characters ({_LONGEST_LABELS:,} for data.labels, optim and train) and lists of at most {_LONGEST_LIST} texts"
            )


def _read_training(metadata: dict[str, str]) -> dict[str, Any]:
    """`checkpoint`, `unicode` and `training` of the settings. Unknown keys are left out: no weight depends on them."""
    found = read_json(metadata, "training")
    if not isinstance(found, dict):
        raise damaged("its metadata 'training' is not a JSON object")
    checkpoint = found.get("checkpoint", "")
    if not (isinstance(checkpoint, str) and (checkpoint == "" or CHECKPOINT.fullmatch(checkpoint))):
        raise damaged(f"its checkpoint is {checkpoint!r:.120}, which is no name of a checkpoint")
    if not all(isinstance(found.get(name, {}), dict) for name in OF_TRAINING):
        raise damaged("a section of its metadata 'training' is not a JSON object")
    training = of_training(found)
    for name, section in training.items():
        _check_section(name, section, _LONGEST_LABELS, math.inf)  # the records limit numbers
    record(OptimConfig, "optim", training.get("optim", {}))
    record(TrainConfig, "train", {"epochs": 1, **training.get("train", {})})
    unicode = str(found.get("unicode", ""))
    if unicode and not _UNICODE.fullmatch(unicode):
        raise damaged(f"its version of Unicode is {unicode!r:.60}, which is none")
    return {"checkpoint": checkpoint, "unicode": unicode, "training": training}


def read_json(metadata: dict[str, str], name: str) -> Any:
    """The value of the metadata `name`. Raises: UserError if it is missing."""
    if name not in metadata:
        raise damaged(f"it lacks the metadata {name!r}")
    return parse(metadata[name], f"its metadata {name!r}")


def write_text(assets: TextAssets) -> tuple[str, Tensors]:
    """The metadata `text`, and the tensors of vocabularies and BPE codes; a text that both sides share is stored once."""
    sides: dict[str, dict[str, Any]] = {}
    texts: dict[str, str] = {}
    for side in ("source", "target"):
        fields = getattr(assets, f"{side}_preprocessing").to_dict()
        fields["vocabulary"] = getattr(assets, f"{side}_vocabulary").text
        for kind in ("vocabulary", "codes"):
            if fields[kind] is not None:
                owner = "source" if texts.get(f"text/source_{kind}") == fields[kind] else side
                texts[f"text/{owner}_{kind}"], fields[kind] = fields[kind], f"text/{owner}_{kind}"
        sides[side] = fields
    return json.dumps(sides), {name: np.frombuffer(text.encode(), np.uint8) for name, text in texts.items()}


def read_text(file: TicketFile, config: ModelConfig) -> tuple[TextAssets, set[str]]:
    """Reads what `write_text` wrote; also returns the names of its tensors. Raises: UserError if the parts do not fit together."""
    sides = read_json(file.metadata, "text")
    if not isinstance(sides, dict) or sides.keys() != {"source", "target"}:
        raise damaged("its metadata 'text' does not describe source and target")
    vocabularies, preprocessing, used = [], [], set()
    for side, types in (("source", config.source_vocab), ("target", config.target_vocab)):
        if not isinstance(sides[side], dict) or "vocabulary" not in sides[side]:
            raise damaged(f"its metadata 'text' names no vocabulary of the {side}")
        fields = dict(sides[side])
        vocabulary, codes = fields.pop("vocabulary"), fields.get("codes")
        vocabularies.append(_vocabulary(file, vocabulary, types))
        used.add(vocabulary)
        if codes is not None:
            fields["codes"] = _text(file, codes).removeprefix("\ufeff")
            if fields["codes"].count("\n") > _MOST_MERGES:
                raise damaged(f"{codes} has more than {_MOST_MERGES:,} lines")
            used.add(codes)
        preprocessing.append(Preprocessing.from_dict(fields))
        if not _LANGUAGE.fullmatch(preprocessing[-1].language):
            raise damaged(f"its language of the {side} is {preprocessing[-1].language!r:.120}")
    source, target = vocabularies
    return TextAssets(source, source if source == target else target, *preprocessing), used


def _vocabulary(file: TicketFile, name: Any, types: int) -> Vocabulary:
    text = _text(file, name)
    lines = text.count("\n") + len(SPECIALS)  # counted before they are parsed
    vocabulary = Vocabulary.parse(split_lines(text.encode(), name), name) if lines == types else None
    if vocabulary is None or len(vocabulary) != types:
        raise damaged(f"{name} has {lines:,} types, special ones included, but its model's table has {types:,} rows")
    return vocabulary


def _text(file: TicketFile, name: Any) -> str:
    shape = file.shape(name) if isinstance(name, str) and name.startswith("text/") else None
    if shape is None or len(shape) != 1 or shape[0] > _LONGEST_TEXT:
        raise damaged(
            f"its metadata 'text' names {name!r:.120}, which is not a text of at most {_LONGEST_TEXT:,} bytes"
        )
    try:
        return file.tensor(name, "uint8", shape).tobytes().decode()
    except UnicodeDecodeError:
        raise damaged(f"{name} is not UTF-8") from None


def _plain(value: Any, longest: int = _LONGEST_STRING, largest: float = _LARGEST_NUMBER) -> bool:
    """Whether this is a value that sections may have, with at most `longest` characters if it is a text."""
    if isinstance(value, list):
        return len(value) <= _LONGEST_LIST and all(isinstance(each, str) and _plain(each) for each in value)
    if isinstance(value, str):
        return len(value) <= longest
    return value is None or (isinstance(value, (bool, int, float)) and abs(value) <= largest)


def _check_names(data: DataConfig) -> None:
    """Refuses names of text files that lead to another folder, alone or in a list with commas. Raises: UserError."""
    languages = (f"x.{language}" for language in (data.source_language, data.target_language))
    lists = [data.train, data.valid, *data.tests, data.tfds_name, *languages]
    for name in (name for names in lists for name in (names, *map(str.strip, names.split(",")))):
        if name.startswith("/") or "\\" in name or "\0" in name or ".." in name.split("/"):
            raise UserError(
                f"its data have the name {name!r:.120}; in a ticket, names of text must not lead to another folder: give files inside "
                "data.directory"
            )

"""The flags of the command, and which of them each mode uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from absl import flags
from ml_collections import config_flags

from one_layer.system.errors import UserError

if TYPE_CHECKING:
    from one_layer.runs.folder import RunFolder

_TOGETHER = ("distributed", "processes", "process")
# The flags that each mode uses.
_MODES = {
    "train": ("config", "workdir", *_TOGETHER),
    "evaluate": ("config", "workdir", "checkpoint", "ticket", "ticket_mode", "engine", "split", *_TOGETHER),
    "export": ("config", "workdir", "checkpoint", "ticket", "precision", "format", "output"),
    "page": ("workdir", "ticket", "output"),
    "inspect": ("workdir", "ticket"),
    "report": ("workdir", "runs", "watch"),
    "collect": ("runs", "output"),
    "keys": ("config",),
}
# Those of the modes for raw lines, which the tasks add: translate, classify, generate and fill.
_OF_LINES = ("config", "workdir", "checkpoint", "ticket", "ticket_mode", "engine", "input", "output")
NAMES = sorted({*_OF_LINES, *(name for names in _MODES.values() for name in names)})
CONFIG = config_flags.DEFINE_config_file("config", None, "The config, for instance configs/toy.py:one_layer.")
WORKDIR = flags.DEFINE_string("workdir", None, "The run's folder; with --mode=report, the folder of the report.")
MODE = flags.DEFINE_string(
    "mode",
    "train",
    "What to do: train, evaluate, translate, classify, generate, fill, export, page, inspect, report, collect or keys.",
)
CHECKPOINT = flags.DEFINE_string("checkpoint", "best", "best, last, average:N, average-best:N or a step.")
TICKET = flags.DEFINE_string(
    "ticket",
    "",
    "The ticket to evaluate, translate, classify, generate or fill with, to inspect, or to make a page of, instead of a checkpoint.",
)
TICKET_MODE = flags.DEFINE_enum(
    "ticket_mode",
    "materialized",
    ["materialized", "packed"],
    "materialized: apply the masks once, before the first line. packed: keep them as bits, which takes less memory.",
)
PRECISION = flags.DEFINE_enum(
    "precision",
    None,
    ["float32", "bfloat16", "int8", "int4"],
    "For export: the precision of a ticket's trained and fixed matrices (masks stay bits), by default model.trained_precision; "
    "or of another engine's matrices, by default float32.",
)
FORMAT = flags.DEFINE_enum(
    "format",
    "ticket",
    ["ticket", "ctranslate2", "huggingface"],
    "For export: a ticket in the run's folder, or a new folder --output for another engine (docs/engines.md).",
)
ENGINE = flags.DEFINE_enum(
    "engine",
    "jax",
    ["jax", "ctranslate2", "ctranslate2-int8"],
    "What searches for translations: this program in JAX, or the package CTranslate2, in float32 or 8 bits (docs/engines.md).",
)
SPLIT = flags.DEFINE_string(
    "split", "test", "What to evaluate: valid, the name of a test set, or test for all test sets."
)
VERSION = flags.DEFINE_boolean("version", False, "Print the version, and do nothing else.")
DISTRIBUTED = flags.DEFINE_string(
    "distributed", "", "Train or evaluate with several processes, which meet at this HOST:PORT of the first one."
)
PROCESSES = flags.DEFINE_integer("processes", 1, "With --distributed: how many processes there are.")
PROCESS = flags.DEFINE_integer("process", 0, "With --distributed: the number of this process, from 0.")
INPUT = flags.DEFINE_string("input", "", "The lines to translate, classify, continue or fill; stdin by default.")
RUNS = flags.DEFINE_string(
    "runs",
    "",
    "The folders of runs to report on or to collect, as a pattern, for instance 'runs/figure2/*'; or a collection.",
)
WATCH = flags.DEFINE_boolean(
    "watch", False, "For report: write it again whenever its runs have changed, until nobody works on them."
)
OUTPUT = flags.DEFINE_string(
    "output",
    "",
    "The file for the lines that translate, classify, generate or fill write; stdout by default. For collect: a file NAME.jsonl.zst. For "
    "export with --format: a new folder. For page: the file of HTML.",
)


def given() -> list[str]:
    """The names of the flags that the command line gives."""
    return [name for name in NAMES if flags.FLAGS[name].present]


def run_folder() -> RunFolder:
    """The folder that --workdir names. Raises: UserError if it is not given."""
    from one_layer.runs.folder import RunFolder

    if not WORKDIR.value:
        takes_ticket = "ticket" in _MODES.get(MODE.value, _OF_LINES) and not (
            MODE.value == "export" and FORMAT.value == "ticket"
        )
        ticket = ", or a ticket as --ticket=FILE" if takes_ticket else ""
        raise UserError(f"--workdir is missing; give the folder of the run{ticket}")
    return RunFolder(WORKDIR.value)


def check(mode: str, given: Sequence[str]) -> None:
    """Raises: UserError for an unknown mode, and for a flag that has no effect in this mode, or beside the others."""
    if mode not in _MODES:
        _check_verb(mode)
    for name in given:
        if name not in _MODES.get(mode, _OF_LINES):
            raise UserError(f"--mode={mode} has no use for --{name}; leave it out")
    if ENGINE.value != "jax" and DISTRIBUTED.value:
        raise UserError(
            f"--engine={ENGINE.value} searches on the cores of one machine, and not in several processes; leave --distributed out"
        )
    if "ticket" not in given:
        if "ticket_mode" in given:
            raise UserError("--ticket_mode needs --ticket; of a run's folder, masks are always materialized")
        return
    for name in ("checkpoint",) if mode == "evaluate" else ("checkpoint", "workdir"):  # evaluate writes into --workdir
        if name in given:
            raise UserError(f"--{name} has no effect beside --ticket, which is the whole model; leave one of them out")


def _check_verb(mode: str) -> None:
    from one_layer.tasks import TASKS, VERBS

    if mode in VERBS:
        return
    verbs = [task.model.verb for task in TASKS.values()]
    if mode not in verbs:
        raise UserError(f"--mode={mode} is unknown; known are {', '.join((*_MODES, *verbs))}")

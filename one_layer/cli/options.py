"""The flags of the modes."""

from __future__ import annotations

from absl import flags
from ml_collections import config_flags

CONFIG = config_flags.DEFINE_config_file("config", None, "The config, for instance configs/toy.py:one_layer.")
WORKDIR = flags.DEFINE_string("workdir", None, "The run's folder; with --mode=report, the folder of the report.")
MODE = flags.DEFINE_string(
    "mode",
    "train",
    "What to do: train, evaluate, translate, classify, generate, fill, export, page, inspect, report, collect or keys.",
)
CHECKPOINT = flags.DEFINE_string("checkpoint", "best", "best, last, average:N or a step.")
TICKET = flags.DEFINE_multi_string(
    "ticket",
    [],
    "The ticket to evaluate, translate, classify, generate or fill with, to inspect, or to make a page of, instead of a checkpoint. A page "
    "may have several: --ticket=A --ticket=B.",
)
NOTE = flags.DEFINE_string(
    "note", "", "For page: a sentence at its end, for instance what the model was trained on, and under which terms."
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
OUTPUT = flags.DEFINE_string(
    "output",
    "",
    "The file for the lines that translate, classify, generate or fill write; stdout by default. For collect: a file NAME.jsonl.zst. For "
    "export with --format: a new folder. For page: the file of HTML, or NAME.js or NAME.mjs for an ES module.",
)

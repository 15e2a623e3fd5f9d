"""Runs of main.py on tiny text, in processes of their own or in this one, and what must be equal in two folders of the same run."""

import ast
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from one_layer.data.sources.toy import grammar
from one_layer.runs.settings import resolve
from one_layer.training.train import train
from tests import ROOT, tiny

TIMES = {"seconds", "train/tokens_per_second"}
COSTS = {"train_seconds", "tokens_per_second", "peak_memory_bytes", "started", "commit"}
COMMON: dict[str, Any] = {
    "data.directory": "text",
    "data.store": "store",
    "data.tokenize": True,
    "train.updates": 24,
    "train.log_every": 3,
    "train.keep_last": 2,
}
LANGUAGE_MODEL = COMMON | {
    "data.tokenize": False,
    "data.source": "plain",
    "data.train": "test.txt,train.txt,valid.txt",
    "data.held_out": 0.05,
    "data.block": 16,
    "optim.label_smoothing": 0.0,
}
TASKS: dict[str, dict[str, Any]] = {
    "translation": COMMON | {"data.source": "text", "data.bpe_merges": 30},
    "classification": COMMON
    | {
        "task": "classification",
        "model.decoder_layers": 0,
        "data.source": "labelled",
        "data.labels": "sst2",
        "data.source_language": "en",
        "data.train": "train.tsv",
        "data.valid": "valid.tsv",
        "data.tests": "('test.tsv',)",
        "train.select": "accuracy",
    },
    "causal_lm": LANGUAGE_MODEL
    | {"task": "causal_lm", "model.encoder_layers": 0, "evaluation.stride": 6, "evaluation.max_tokens": 128},
    "masked_lm": LANGUAGE_MODEL
    | {
        "task": "masked_lm",
        "model.decoder_layers": 0,
        "data.unit": "bpe",
        "data.bpe_kind": "byte-level",
        "data.bpe_merges": 30,
        "train.select": "accuracy",
        "evaluation.max_tokens": 128,
    },
}


def write_text(folder: Path, task: str, train: int = 200) -> None:
    """Writes the text of a task's run into `folder`/text.

    It is pairs of the toy language; its English sentences with random labels; or these sentences alone, in one file for each part.
    """
    (folder / "text").mkdir(parents=True)
    labels = np.random.default_rng(1)

    def write(name: str, lines: Iterable[str]) -> None:
        (folder / "text" / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")

    for name, (german, english) in grammar.generate(1, train=train, valid=12, test=8).items():
        if task == "translation":
            write(f"{name}.de", german)
            write(f"{name}.en", english)
        elif task == "classification":
            write(f"{name}.tsv", ["sentence\tlabel", *(f"{line}\t{labels.integers(2)}" for line in english)])
        else:
            write(f"{name}.txt", english)


def command(task: str, changes: dict[str, Any] | None = None) -> list[str]:
    """The command line of a task's run; it runs in a folder with the text, and its own folder is `run`."""
    config, *rest = tiny.arguments(Path("run"), {**TASKS[task], **(changes or {})})
    return [sys.executable, str(ROOT / "main.py"), config.replace("configs/", f"{ROOT}/configs/"), *rest]


def environment(**changes: str) -> dict[str, str]:
    """This process's environment, with compiled programs shared between all processes."""
    cache = {
        "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".cache" / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "JAX_PLATFORMS": "cpu",
    }
    return cache | dict(os.environ) | changes


def on_devices(devices: int, module: str, *words: object) -> Any:
    """The JSON that a module prints in a process of its own, with so many CPU devices."""
    command, there = [sys.executable, "-m", module, *map(str, words)], environment(JAX_NUM_CPU_DEVICES=str(devices))
    done = subprocess.run(command, cwd=ROOT, env=there, capture_output=True, encoding="utf-8", timeout=900)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def run(folder: Path, task: str, changes: dict[str, Any] | None = None, **variables: str) -> None:
    """Trains in `folder`, which has the text: as the command does, but in this process, which need not import everything once more.

    With `variables` of the environment, it is a process of its own. Raises: CalledProcessError, with the messages, if that fails.
    """
    if variables:
        words, surroundings = command(task, changes), environment(**variables)
        subprocess.run(words, cwd=folder, env=surroundings, check=True, capture_output=True, timeout=600)
        return
    new = {**TASKS[task], **(changes or {})}
    new |= {name: ast.literal_eval(value) for name, value in new.items() if str(value).startswith("(")}
    _, _, file, _, *overrides = command(task, changes)
    with contextlib.chdir(folder):
        train(resolve(tiny.config(new)), Path("run"), [word.removeprefix("--") for word in (file, *overrides)])


def metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of metrics, without times."""
    lines = map(json.loads, (folder / "run" / "metrics.jsonl").read_text("utf-8").splitlines())
    return [{name: value for name, value in line.items() if name not in TIMES} for line in lines]


def result(folder: Path) -> dict[str, Any]:
    """result.json, without times and memory."""
    values = json.loads((folder / "run" / "result.json").read_text("utf-8"))
    values["convergence"].pop("seconds")
    return {name: value for name, value in values.items() if name not in COSTS}


def differences(folder: Path, other: Path) -> list[str]:
    """What differs between two folders with the same run: metrics, result, ticket, every other file of the run, and the store."""
    found = [name for name, of in {"metrics.jsonl": metrics, "result.json": result}.items() if of(folder) != of(other)]
    files, others = (_files(each) for each in (folder, other))
    return found + sorted(name for name in files.keys() | others.keys() if files.get(name) != others.get(name))


def _files(folder: Path) -> dict[str, str]:
    """A digest of every file of a run that must be the same, and the names of those whose bytes may differ."""
    digests: dict[str, str] = {}
    for name, digest in tiny.contents(folder).items():
        parts = Path(name).parts
        if parts[:2] == ("run", "tensorboard"):
            continue  # one file for each start
        if parts[:2] == ("run", "checkpoints"):
            digests["/".join(parts[:3])] = ""  # which checkpoints there are; the ticket is made from one of them
        else:
            digests[name] = "" if parts[-1] in ("metrics.jsonl", "result.json") else digest
    return digests

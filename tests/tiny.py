"""A run small enough for tests: a model of width 16 on a few dozen pairs of the toy language."""

import fcntl
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from configs import toy
from one_layer.runs.settings import RunConfig, resolve
from one_layer.training.train import train

UPDATES, EVERY = 12, 4
CHANGES = {
    "model.weights": "one_layer",
    "model.keep": 0.5,
    "model.d_model": 16,
    "model.ffn": 32,
    "model.heads": 2,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.dropout": 0.1,
    "data.toy_train": 60,
    "data.toy_valid": 12,
    "data.toy_test": 8,
    "data.max_tokens": 256,
    "data.buckets": 1,
    "optim.lr": 0.01,
    "optim.warmup": 4,
    "optim.schedule": "inverse_sqrt",
    "train.updates": UPDATES,
    "train.epochs": 0,
    "train.patience": 0,
    "train.select": "nll",
    "train.evaluate_every": EVERY,
    "train.log_every": 2,
    "train.keep_last": 3,
    "evaluation.beam": 2,
    "evaluation.valid_beam": 0,
    "evaluation.length_penalty": 1.0,
    "evaluation.max_length_a": 0.0,  # so that a translation does not depend on the width of its batch
    "evaluation.max_length_b": 12,
    "evaluation.buckets": 1,
}


def config(changes: dict[str, Any] | None = None) -> dict[str, Any]:
    """The nested plain values, with `changes` by dotted names."""
    values = toy.get_config()
    values.update_from_flattened_dict({**CHANGES, **(changes or {})})
    return values.to_dict()


def run(changes: dict[str, Any] | None = None) -> RunConfig:
    """The same, resolved."""
    return resolve(config(changes))


def arguments(workdir: Path, changes: dict[str, Any] | None = None) -> list[str]:
    """The command line that trains it."""
    flags = [f"--config.{name}={value}" for name, value in {**CHANGES, **(changes or {})}.items()]
    return ["--config=configs/toy.py", f"--workdir={workdir}", *flags]


def trained(factory: pytest.TempPathFactory) -> Path:
    """The folder of the finished run, made by the first test in any process of the tests that asks for it; nobody may change it."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "tiny_run"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the others wait for it
        if not (folder / "result.json").exists():
            train(run(), folder, [])
    return folder


def contents(folder: Path) -> dict[str, str]:
    """A digest of every file under `folder`, but for the modules that Python compiles of configs and keeps."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

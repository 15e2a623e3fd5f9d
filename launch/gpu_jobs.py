"""The list of what `launch/gpu.py` measures, in order."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from one_layer.system.errors import UserError

_SEEDS = (1, 2, 3)
_VARIED = ("seed", "model__keep", "model__embedding")
_TESTS = (
    "tests/models/test_golden.py",
    "tests/models/test_translation.py",
    "tests/tasks/translation",
    "tests/training",
)


@dataclass(frozen=True)
class Step:
    """One command of a job: `file` is what it leaves behind when it has succeeded, a JSON object or lines of them."""

    name: str
    words: list[str]
    file: Path

    def done(self) -> bool:
        """Whether the command has succeeded before."""
        return self.file.exists()

    def found(self) -> Any:
        """What the command found. Raises: UserError for a damaged file."""
        try:
            return self.read()
        except (ValueError, SyntaxError, AttributeError) as error:  # damaged XML is a SyntaxError
            reason = " ".join(str(error).split())
            raise UserError(f"{self.file} is damaged ({reason}); delete it, and its command runs again") from None

    def read(self) -> Any:
        """Reads the file that the command has left behind."""
        text = self.file.read_text("utf-8")
        if self.file.suffix == ".jsonl":
            return [json.loads(line) for line in text.splitlines()]
        return json.loads(text) if self.file.suffix == ".json" else text


@dataclass(frozen=True)
class Job:
    """One file of results: its name, what it measures, and the commands that do."""

    name: str
    about: str
    steps: Sequence[Step]


class Tests(Step):
    """A run of pytest, which leaves its report behind even where tests fail."""

    def read(self) -> Any:
        cases = list(ElementTree.parse(self.file).iter("testcase"))
        failed = [f"{case.get('classname')}::{case.get('name')}" for case in cases if case.find("failure") is not None]
        return {"tests": len(cases), "failed": failed}


class Sweep(Step):
    """A sweep, whose table of results says for every run whether it has finished."""

    def done(self) -> bool:
        return self.file.exists() and {row["state"] for row in self.found()} <= {"finished"}

    def read(self) -> Any:
        rows = list(csv.DictReader(self.file.read_text("utf-8").splitlines()))
        if not all("state" in row for row in rows):
            raise ValueError("it has no column called state")
        return rows


class Result(Step):
    """A training run, of whose result.json the scores, the costs and the command are kept."""

    def read(self) -> Any:
        result = super().read()
        kept = (
            "overrides",
            "test",
            "valid",
            "steps",
            "train_seconds",
            "tokens_per_second",
            "convergence",
            "peak_memory_bytes",
        )
        return {name: result.get(name) for name in kept}


def _run(folder: Path, config: str, **keys: Any) -> Result:
    """A training run; its folder is named after the config's argument and the keys that differ between the runs of a job."""
    varied = {key.rpartition("__")[2]: value for key, value in keys.items() if key in _VARIED}
    name = ",".join([config.rpartition(":")[2], *(f"{key}={value}" for key, value in varied.items())])
    overrides = [f"--config.{key.replace('__', '.')}={value}" for key, value in keys.items()]
    words = [sys.executable, "main.py", f"--config=configs/{config}", f"--workdir={folder / name}", *overrides]
    return Result(name, words, folder / name / "result.json")


def _tests(data: Path, runs: Path, out: Path) -> Job:
    steps = []
    for precision in ("highest", "default"):
        file = out / f"tests-{precision}.xml"
        words = [
            "env",
            "JAX_PLATFORMS=",
            f"JAX_DEFAULT_MATMUL_PRECISION={precision}",
            f"ONE_LAYER_SHARED={data.parent}",
        ]
        words += [sys.executable, "-m", "pytest", "-q", "-n0", "-m", "not slow", f"--junitxml={file}", *_TESTS]
        steps.append(Tests(precision, words, file))
    return Job(
        "tests", "the tests that compare numbers, with float32 products and with the device's default ones", steps
    )


def _benchmark(name: str, about: str, sizes: tuple[str, ...]) -> Callable[[Path, Path, Path], Job]:
    def make(data: Path, runs: Path, out: Path) -> Job:
        def step(size: str) -> Step:
            file = runs / f"{name}-{size}.jsonl"
            words = [sys.executable, "launch/benchmark.py", name, f"--size={size}", f"--out={file}"]
            return Step(size, words, file)

        return Job({"accelerator": "train_step", "decode": "decode"}[name], about, [step(size) for size in sizes])

    return make


def _multi30k_dense(data: Path, runs: Path, out: Path) -> Job:
    folder, text = runs / "multi30k_dense_tiny", str(data / "multi30k_bpe")
    steps: list[Step] = []
    for seed in _SEEDS:
        run = _run(folder, "multi30k.py:dense_tiny", data__directory=text, seed=seed)
        workdir = run.file.parent
        average = ["--mode=evaluate", "--checkpoint=average:10", "--split=test2016.bpe10k", f"--workdir={workdir}"]
        scored = workdir / "evaluation-test2016.bpe10k-average-10.json"
        steps += [run, Step(f"average of 10, seed={seed}", [sys.executable, "main.py", *average], scored)]
    return Job(
        "multi30k_dense_tiny", "the published recipe of 41.02 BLEU to its end, and the average of 10 checkpoints", steps
    )


def _table1(name: str, config: str, sizes: tuple[str, ...], **keys: Any) -> Callable[[Path, Path, Path], Job]:
    def make(data: Path, runs: Path, out: Path) -> Job:
        given = {key: str(data / value) if key == "data__directory" else value for key, value in keys.items()}
        steps: list[Step] = []
        for seed, size in product(_SEEDS, sizes):
            dense = _run(runs / name, f"{config}:dense_{size}", **given, seed=seed)
            tables = {"model__embedding_source": "run", "model__embedding_path": str(dense.file.parent)}
            masked = f"{config}:one_layer_{size}"
            steps += [dense, _run(runs / name, masked, **given, seed=seed)]
            steps.append(_run(runs / name, masked, seed=seed, **given, **tables, model__embedding="frozen"))
        return Job(
            name, "dense and one-layer models at keep 0.5, with random and with the dense model's embeddings", steps
        )

    return make


def _keep(data: Path, runs: Path, out: Path) -> Job:
    folder = runs / "multi30k_keep"
    words = [sys.executable, "launch/sweep.py", "--config=configs/multi30k.py", "--sweep=figure2_cpu", "--vmap"]
    words += [f"--workdir={folder}", f"--config.data.directory={data / 'multi30k_bpe'}"]
    step = Sweep("figure2_cpu", words, folder / "results.csv")
    return Job("multi30k_keep", "score against keep, one and many random layers, as populations", [step])


def _qqp(data: Path, runs: Path, out: Path) -> Job:
    text = {"data__source": "labelled", "data__tfds_name": "", "data__directory": str(data / "pair_cls")}
    text |= {"data__train": "qqp_merged_train.norm.tsv", "data__valid": "qqp_merged_valid.norm.tsv"}
    given: dict[str, Any] = {**text, "data__tests": ("qqp_merged_test.norm.tsv",)}
    dense = _run(runs / "qqp", "qqp.py:dense_cpu", **given)
    keeps = [_run(runs / "qqp", "qqp.py:one_layer_cpu", **given, model__keep=keep) for keep in (0.3, 0.5, 0.7, 0.9)]
    return Job("qqp", "duplicate questions, dense and one-layer at several keeps", [dense, *keeps])


def _reservoirs(data: Path, runs: Path, out: Path) -> Job:
    kinds = ("LLLL", *(f"4L+3R_{kind}" for kind in ("transformer", "ffn", "gru", "conv")))
    text = {"data__directory": str(data / "multi30k_bpe")}
    steps: list[Step] = [
        _run(runs / "reservoirs", f"reservoirs.py:{kind}", **text, train__updates=8000, seed=seed)
        for seed, kind in product(_SEEDS, kinds)
    ]
    return Job("reservoirs", "convergence with and without reservoirs of each kind", steps)


_IWSLT14 = {
    "data__directory": "iwslt14",
    "data__train": "train_subset.bpe10k",
    "data__valid": "valid.bpe10k",
    "data__tests": ("test.bpe10k",),
    "model__init_preset": "reference",
    "model__dtype": "bfloat16",
}
_EUROPARL: dict[str, Any] = {
    "data__directory": "europarl_iten",
    "data__source_language": "it",
    "data__train": "train.tok",
    "data__valid": "valid.tok",
    "data__tests": ("test.tok",),
    "model__init_preset": "reference",
    "data__bpe_merges": 10_000,
    "model__dtype": "bfloat16",
}

JOBS: tuple[Callable[[Path, Path, Path], Job], ...] = (
    _tests,
    _benchmark("accelerator", "time, memory and operations of training steps", ("small", "base", "wide")),
    _multi30k_dense,
    _table1("multi30k_table1", "multi30k.py", ("small", "wide", "deep"), data__directory="multi30k_bpe"),
    _table1("iwslt47k_table1", "iwslt14.py", ("small", "wide", "deep"), **_IWSLT14),
    _keep,
    _benchmark("decode", "sentences per second of beam search", ("small", "wide")),
    _table1("europarl_iten", "iwslt14.py", ("small", "wide"), **_EUROPARL),
    _qqp,
    _reservoirs,
)

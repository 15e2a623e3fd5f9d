"""Folders of runs as training leaves them, with made-up scores: for tests of the report, and to look at its pages."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from one_layer.report.point import Point
from one_layer.report.points import points
from one_layer.report.reading import read_runs

BASE = {
    "task": "translation",
    "seed": 1,
    "model": {
        **{"weights": "one_layer", "sharing": "weights", "keep": 0.5, "d_model": 128, "ffn": 256, "heads": 4},
        **{"encoder_layers": 2, "decoder_layers": 2, "embedding": "masked", "embedding_source": "text"},
        **{"embedding_path": "", "init_scheme": "kaiming_uniform", "init_preset": "paper"},
    },
    "data": {"source": "toy", "directory": "", "tests": ["test"], "seed": 1},
    "optim": {"lr": 0.002},
    "train": {"select": "nll", "log_every": 50},
    "evaluation": {"beam": 5, "length_penalty": 1.0, "max_length_a": 1.2, "max_length_b": 10},
}
SEARCH: dict[str, float] = {"beam": 5, "length_penalty": 1.0, "max_length_a": 1.2, "max_length_b": 10}
KEEPS = (0.1, 0.3, 0.5, 0.7, 0.9)
MODELS: dict[str, tuple[dict[str, Any], float]] = {
    "one": ({}, 90.0),
    "many": ({"model.weights": "multi_layer", "model.sharing": "none"}, 89.5),
    "wide": ({"model.d_model": 256, "model.ffn": 512}, 95.0),
    "pretrained": ({"model.embedding_path": "runs/dense", "model.embedding_source": "run"}, 93.0),
    "xavier": ({"model.init_scheme": "xavier_uniform"}, 80.0),
}


def config(changes: dict[str, Any]) -> dict[str, Any]:
    """The nested config with changes by dotted names."""
    values = json.loads(json.dumps(BASE))
    for name, value in changes.items():
        *sections, key = name.split(".")
        place = values
        for section in sections:
            place = place.setdefault(section, {})
        place[key] = value
    if values["model"]["weights"] == "dense" and "model.sharing" not in changes:
        values["model"]["sharing"] = "none"
    return values


def write_run(folder: Path, changes: dict[str, Any], score: float, **more: Any) -> Path:
    """Writes config.json, metrics.jsonl and result.json of a run with this score."""
    values = config(changes)
    dense = values["model"]["weights"] == "dense"
    sizes = {"dense_float32": 2_000_000} if dense else {"dense_float32": 2_000_000, "ticket_file": 99_000}
    result = {
        "config": values,
        "overrides": ["config=configs/toy.py", *(f"config.{name}={value}" for name, value in changes.items())],
        "seed": values["seed"],
        "task": values["task"],
        "test": {"test": {"bleu_tokenized": score, "bleu_sacre": score - 1, "signature": "tok:13a|version:2.6.0"}},
        "examples": {"test": [{"source": "die katze <b>", "reference": "the cat", "hypothesis": f"the cat {score}"}]},
        "data": {"train": "aaaa1111", "valid": "bbbb2222", "test": "cccc3333"},
        "valid": {"select": "nll", "score": -1.0, "step": 100},
        "steps": 1000,
        "train_seconds": 60.0,
        "parameters": {"trained": 900, "random": 300, "kept": 450, "shared": 200, "shared_used": 150},
        "bytes": sizes,
        **{"device": "cpu", "jax": "0.10.2", "commit": "0123456789abcdef"},
        **more,
    }
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(values))
    (folder / "result.json").write_text(json.dumps(result))
    lines = [
        {"step": step, "seconds": 0.6 * step, "valid/nll": 2.0 + 75 / step - score / 100, "mask/flips": 0.01}
        for step in (25, 50, 75, 100)
    ]
    write_metrics(folder, lines)
    return folder


def write_scored(folder: Path, models: Iterable[tuple[dict[str, Any], float]]) -> list[Point]:
    """Writes a run of each model with its score, in a folder that this score names. Returns: their points."""
    for changes, score in models:
        write_run(folder / str(score), changes, score)
    return found(folder)


def write_seeds(folder: Path, changes: dict[str, Any], score: float, **more: Any) -> list[Path]:
    """Writes runs of two seeds, which a verdict needs, with this score."""
    folders = {seed: folder.with_name(f"{folder.name},seed={seed}") for seed in (1, 2)}
    return [write_run(each, {**changes, "seed": seed}, score, **more) for seed, each in folders.items()]


def write_metrics(folder: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Writes metrics.jsonl of these lines."""
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def write_curve(folder: Path, curve: dict[int, float], score: str = "nll", flops: float = 1.0) -> None:
    """Writes metrics.jsonl of a run with this score on the validation text at these updates, a second and `flops` operations each."""
    lines = (
        {"step": step, "seconds": float(step), "train/flops": flops * step, "valid/nll": 1.0, f"valid/{score}": value}
        for step, value in curve.items()
    )
    write_metrics(folder, lines)


def score_again(folder: Path, checkpoint: str, value: float, name: str = "other", **more: Any) -> None:
    """Writes what `--mode=evaluate` writes of the run's test set, with a checkpoint or file, and `more` or other values."""
    values = {"split": "test", "checkpoint": checkpoint, **SEARCH, "bleu_tokenized": value}
    values |= {"signature": "tok:13a|version:2.6.0", "fingerprint": "cccc3333", **more}
    (folder / f"evaluation-test-{name}.json").write_text(json.dumps(values))


def score(best: float, keep: float, seed: int) -> float:
    """Best at keep 0.5, worst near 0 and 1, and a little different for each seed."""
    return best - 60 * (keep - 0.5) ** 2 - 5 * (keep > 0.5) * (keep - 0.5) + 0.4 * (seed - 2)


def write_figures(root: Path) -> Path:
    """Runs for all figures, with three seeds; one keep of the xavier line and one run of the wide line are missing."""
    planned = {}
    for name, (changes, best) in MODELS.items():
        for keep in KEEPS:
            for seed in (1, 2, 3):
                own = {**changes, "model.keep": keep, "seed": seed}
                run = f"{name},keep={keep},seed={seed}"
                words = ["--config=configs/toy.py", f"--workdir={run}"]
                planned[run] = {"config": config(own), "varied": own, "words": words}
                if (name, keep) != ("xavier", 0.7) and (name, keep, seed) != ("wide", 0.3, 2):
                    write_run(root / run, own, score(best, keep, seed))
    for seed in (1, 2, 3):
        write_run(
            root / f"dense,seed={seed}",
            {"model.weights": "dense", "model.embedding": "trained", "seed": seed},
            97.0 + seed / 10,
        )
    (root / "sweep.json").write_text(json.dumps({"runs": planned}))
    return root


def found(folder: Path, pattern: str = "*") -> list[Point]:
    """The points of the runs in `folder`."""
    return points(read_runs(str(folder / pattern)))

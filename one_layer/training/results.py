"""Writes `result.json`: the config of a run, its scores, its cost, and the device that it ran on."""

from __future__ import annotations

import logging
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import jax

from one_layer import tickets
from one_layer.data.corpus import Corpus
from one_layer.errors import UserError
from one_layer.models import shapes
from one_layer.models.accounting import account
from one_layer.runs.folder import RunFolder
from one_layer.runs.restore import restore_run
from one_layer.runs.settings import RunConfig
from one_layer.training.convergence import summary
from one_layer.training.metrics import read_metrics

log = logging.getLogger(__name__)


@runtime_checkable
class Spent(Protocol):
    """What training reports about its course; `one_layer.training.train.Progress` provides it."""

    step: int
    seconds: float
    tokens: int
    flops: int
    best: float | None
    started: str

    @property
    def skipped(self) -> int: ...


def write(
    run: RunConfig, corpus: Corpus, folder: RunFolder, spent: Spent, epoch_updates: int, overrides: list[str]
) -> dict[str, Any]:
    """Scores the best checkpoint on every test set; writes the hypotheses, the ticket of a masked model, and `result.json`."""
    best = restore_run(folder, "best")
    tests = {}
    for name, split in corpus.tests.items():
        tests[name], hypotheses = best.score(split, name)
        folder.write_hypotheses(name, best.source, hypotheses)
    counted = account(best.config, best.variables)
    if any(path[0] == "random" for path in shapes(best.config)):
        try:
            counted["bytes"]["ticket_file"] = tickets.export(best, folder.ticket_file)
        except UserError as error:  # some settings do not fit into a ticket; the finished run still gets its result
            log.warning("no ticket was written: %s", error)
    result = {
        "config": run.raw,
        "overrides": overrides,
        "seed": run.seed,
        "task": run.task.name,
        "test": tests,
        "valid": {"select": run.train.select, "score": spent.best, "step": best.step},
        "steps": spent.step,
        "epochs": spent.step / epoch_updates,
        "skipped_updates": spent.skipped,
        "train_seconds": spent.seconds,
        "train_tokens": spent.tokens,
        "train_flops": spent.flops,
        "convergence": summary(read_metrics(folder.metrics_file), run.train.select),
        "tokens_per_second": spent.tokens / spent.seconds if spent.seconds else None,
        **counted,
        "peak_memory_bytes": peak_memory_bytes(),
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "commit": commit(),
        "started": spent.started,
    }
    folder.write_result(result)
    return result


def peak_memory_bytes() -> int:
    """The accelerator's peak memory if it reports one, else the peak resident size of this process."""
    statistics = jax.devices()[0].memory_stats() or {}
    if "peak_bytes_in_use" in statistics:
        return int(statistics["peak_bytes_in_use"])
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024


def commit() -> str | None:
    """The commit of the code that ran, followed by `+` if files differ from it; None outside a repository."""

    def git(*words: str) -> str:
        here = Path(__file__).resolve().parent
        return subprocess.run(
            ["git", "-C", str(here), *words], capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", __file__)  # an installed package may lie in a folder of another repository
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return None

"""Writes `result.json`: the config of a run, its scores, its cost, and the device that it ran on."""

import dataclasses
import logging
import resource
import sys
from contextlib import closing
from typing import Any

import jax

from one_layer import tickets
from one_layer.data.corpus import Split
from one_layer.layers.quantization import Precisions
from one_layer.models import shapes
from one_layer.models.accounting import account
from one_layer.models.sharding import fetch
from one_layer.runs.commit import commit
from one_layer.runs.convergence import selected_by, summary, unrecorded
from one_layer.runs.evaluate import fingerprints
from one_layer.runs.folder import RunFolder
from one_layer.runs.records import flatten
from one_layer.runs.restore import restore_run
from one_layer.runs.sources import sources
from one_layer.system.errors import UserError
from one_layer.tasks.model import TrainedModel
from one_layer.tickets import inspection
from one_layer.training import processes
from one_layer.training.metrics import read_metrics
from one_layer.training.trainer import Trainer

log = logging.getLogger(__name__)


def write(trainer: Trainer, overrides: list[str]) -> dict[str, Any]:
    """Scores the best checkpoint on every test set; writes the hypotheses, `result.json`, and a ticket (see `_ticket`).

    Returns: the content of `result.json`. Raises: UserError for damaged metrics, before anything is scored.
    """
    run, corpus, folder, progress = trainer.run, trainer.corpus, trainer.folder, trainer.progress
    curve = read_metrics(folder.metrics_file)  # before anything is scored: a damaged line ends this
    best = restore_run(folder, "best", vars(run.mesh))
    with closing(folder.checkpoints()) as checkpoints:
        score = checkpoints.score(best.step)  # not `progress.best`: the checkpoint of that one may have been removed
    tests, examples = {}, {}
    for name, split in corpus.tests.items():
        tests[name], hypotheses = best.score(split, name)
        folder.write_hypotheses(name, best.source, hypotheses)
        examples[name] = _examples(split, hypotheses.get("plain", []))
    if not folder.writes:
        fetch(best.variables)  # with the process that writes
        return {}
    if not processes.alone():
        best = dataclasses.replace(best, variables=fetch(best.variables))
    counted = account(best.config, best.variables)
    size, masks = _ticket(best, folder)
    counted["bytes"] |= size
    select = selected_by(curve, run.train.select)
    if lost := unrecorded(curve, select, progress.evaluated):
        log.warning(
            "result.json has no areas under the convergence curve: %s lacks %d of %d evaluations, the first at update %d",
            *(folder.metrics_file, len(lost), len(progress.evaluated), lost[0]),
        )
    result = {
        "config": run.raw,
        "overrides": overrides,
        "seed": run.seed,
        "task": run.task.name,
        "test": tests,
        "examples": examples,
        "data": fingerprints(corpus),
        "valid": {"select": select, "score": score, "step": best.step},
        "steps": progress.step,
        "epochs": progress.step / trainer.epoch_updates,
        "skipped_updates": progress.skipped,
        "train_seconds": progress.seconds,
        "train_tokens": progress.tokens,
        "train_flops": progress.flops,
        "sources": began["sources"] if "sources" in (began := folder.began()) else sources(flatten(run.raw)),
        "convergence": {} if lost else summary(curve, select),
        "tokens_per_second": progress.tokens / progress.seconds if progress.seconds else None,
        **counted,
        "masks": masks,
        "peak_memory_bytes": peak_memory_bytes(),
        "device": progress.device,
        "devices": progress.devices[-1][1][1],
        "members": progress.shared,
        "jax": jax.__version__,
        "commit": progress.commit or commit(),
        "started": progress.started,
    }
    folder.write_result(result)
    return result


def _ticket(best: TrainedModel, folder: RunFolder) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """Writes the ticket of a model with random weights, or that was trained in few bits, which no other file of the run shows.

    Returns: its size, under the name `ticket_file`, and what its masks are like.
    """
    if best.config.precisions == Precisions() and all(path[0] != "random" for path in shapes(best.config)):
        return {}, []
    try:
        size = tickets.export(best, folder.ticket_file)
    except UserError as error:  # some settings do not fit into a ticket; the finished run still gets its result
        log.warning("no ticket was written: %s", error)
        return {}, []
    return {"ticket_file": size}, inspection.masks(inspection.inspect(folder.ticket_file))


def _examples(split: Split, hypotheses: list[str]) -> list[dict[str, str]]:
    """Three lines from the whole length of a split, with what the model made of them."""
    references = split.reference_detokenized or split.reference
    places = range(0, len(hypotheses), max(1, -(-len(hypotheses) // 3)))
    return [
        {"source": split.source_text[place], "reference": references[place], "hypothesis": hypotheses[place]}
        for place in places
    ]


def peak_memory_bytes() -> int:
    """The accelerator's peak memory if it reports one, else the peak resident size of this process."""
    statistics = jax.local_devices()[0].memory_stats() or {}
    if "peak_bytes_in_use" in statistics:
        return int(statistics["peak_bytes_in_use"])
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024

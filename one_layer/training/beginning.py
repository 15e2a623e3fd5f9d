"""The beginning of a run: its text, and the files that its folder has from then on."""

from __future__ import annotations

import logging
from typing import Any

from one_layer.data.corpus import Corpus
from one_layer.importers.embeddings import embedding_rows, table_sides
from one_layer.models import ModelConfig, pretrained_tables
from one_layer.runs.folder import RunFolder
from one_layer.runs.settings import RunConfig
from one_layer.tasks.model import TrainedModel
from one_layer.training.fine_tuning import start
from one_layer.training.plan import check_warmup

log = logging.getLogger(__name__)


def read_corpus(run: RunConfig, folder: RunFolder, resumed: bool, source: TrainedModel | None) -> Corpus:
    """The text in the vocabularies of the resumed run, of the `source` of fine-tuning, or in vocabularies of its own."""
    if source is not None:
        return run.task.corpus_in_vocabularies_of(source, run.data)
    return run.task.corpus(run.data, folder.assets() if resumed else None)


def begin(
    run: RunConfig,
    model: ModelConfig,
    corpus: Corpus,
    folder: RunFolder,
    source: TrainedModel | None,
    epoch_updates: int,
) -> None:
    """Writes the files of a new run but config.json.

    Raises: UserError, before anything is written, for a missing or damaged file, a source that does not fit, and a warm-up without end.
    """
    fixed: dict[str, Any] = {"frozen": _tables(run, model, corpus)}
    begun = None if source is None else start(run, model, corpus, source)
    check_warmup(run, epoch_updates)
    if begun is not None:
        for line in begun.report:
            log.info(line)
        fixed = {**begun.fixed, "frozen": {**fixed["frozen"], **begun.fixed.get("frozen", {})}}
        folder.write_start(begun.params)
    folder.begin(corpus, fixed, corpus.fingerprints())


def _tables(run: RunConfig, model: ModelConfig, corpus: Corpus) -> dict[str, Any]:
    """The tables of `model.embedding_path`: one per side, or one for both sides if they share it; none without a path."""
    return pretrained_tables(model, run.seed, embedding_rows(model, table_sides(model, corpus)))

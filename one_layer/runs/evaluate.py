"""Scores a checkpoint or a ticket on any split, and writes the results into a run's folder."""

import hashlib
import logging
from pathlib import Path
from typing import Any

from one_layer.data.corpus import Corpus, Split
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.lines import MissingPart
from one_layer.runs.changes import may_change
from one_layer.runs.folder import RunFolder
from one_layer.runs.records import flatten
from one_layer.runs.settings import of_training
from one_layer.system.errors import UserError
from one_layer.tasks import task_named
from one_layer.tasks.model import TrainedModel

log = logging.getLogger(__name__)


def evaluate(model: TrainedModel, split_name: str, folder: RunFolder | None) -> dict[str, Any]:
    """Scores a model on a split: `valid`, the name of a test set, or `test` for all test sets. Other splits are not read.

    If `folder` is given, writes `evaluation-SPLIT.json` and `hypotheses-SPLIT.txt` (detokenised text, or labels) into it for every
    split. Their names say what differs from the run's own evaluation: the checkpoint, settings, or another text. The
    scores say so too: `fingerprint` is that of the text.
    Raises: UserError for an unknown split or missing files, and for a ticket of another model than the folder's.
    """
    if folder and folder.holds_run and model.file_bytes is not None:
        _check_same_model(model, folder)
    try:
        corpus = task_named(model.task).scored_corpus(model.data, model.assets, split_name)
    except MissingPart as error:  # a model that is trained already cannot hold lines out
        raise UserError(
            f"{error.missing}. To score another text, give the run's --config, --config.data.directory=FOLDER, and the names of test sets "
            "there as --config.data.tests=NAME,NAME"
        ) from None
    if model.file_bytes is not None:
        log.info("%s itself has %s bytes", model.source, f"{model.file_bytes:,}")
    splits = {"valid": corpus.valid, **corpus.tests} if len(corpus.valid) else corpus.tests
    found, prints = {}, fingerprints(corpus)
    for name, split in splits.items():
        scores, hypotheses = model.score(split, name)
        said = {"split": name, "fingerprint": prints[name], "checkpoint": model.source, "step": model.step}
        scores = {**said, **vars(model.settings), **scores}
        scores |= {"engine": model.engine} if model.engine else {}
        if model.file_bytes is not None:
            scores["file_bytes"] = model.file_bytes
            scores |= {"ticket_checkpoint": model.ticket_checkpoint} if model.ticket_checkpoint else {}
        if folder:
            folder.write_scores(name, _scored(model), scores)
            folder.write_hypotheses(name, _scored(model), hypotheses)
        found[name] = scores
    return found


def fingerprints(corpus: Corpus) -> dict[str, str]:
    """By split, what says whether two texts are the same: of `train` and `valid` those of the corpus, and one of each test set."""
    return corpus.fingerprints() | {name: _fingerprint(split) for name, split in corpus.tests.items()}


def _fingerprint(split: Split) -> str:
    """BLAKE2b (128 bits, hexadecimal) of a split's lines and references, or of its ids: equal where scores can be compared."""
    lines = [*split.source_text, *split.reference, *split.reference_detokenized]
    if not lines:  # one long text, which is kept as ids alone
        return split.source.fingerprint
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()


def _check_same_model(ticket: TrainedModel, folder: RunFolder) -> None:
    """Raises: UserError, which names what differs, for a ticket that cannot be of the folder's run, as which a report would show it."""
    run, assets = folder.read_config(), folder.assets()
    there = _identity(run.raw, assets)
    here = _identity(ticket.trained_with, ticket.assets)
    both = {name: (there[name], here[name]) for name in there if name in here}
    if differing := [
        f"{name}: {values[0]!r:.100} there, {values[1]!r:.100} here"
        for name, values in both.items()
        if values[0] != values[1] and not may_change(name, values, run)
    ]:
        raise UserError(
            f"{folder} holds another run than that of the ticket {ticket.source} ({'; '.join(differing)}); give the folder of the "
            "ticket's own run, or a new --workdir"
        )


def _identity(trained_with: dict[str, Any], assets: TextAssets) -> dict[str, Any]:
    """What is the same in a run and all its tickets, whatever their checkpoints and their precisions."""
    prints = (vocabulary.fingerprint for vocabulary in assets.vocabularies)
    data = {name: value for name, value in trained_with["data"].items() if name not in ("valid", "tests")}
    return {
        "seed": trained_with["seed"],
        **flatten({"model": trained_with["model"], "data": data, **of_training(trained_with)}),
        **dict(zip(("source vocabulary", "target vocabulary"), prints, strict=True)),
    }


def _scored(model: TrainedModel) -> str:
    """The checkpoint, and every setting, place of text and engine that differs from the run's own: `best beam=1 directory=data/new`."""
    trained = flatten(model.trained_with)
    now = {f"evaluation.{name}": value for name, value in vars(model.settings).items()}
    now |= {f"data.{name}": getattr(model.data, name) for name in ("directory", "valid")}
    changed = (f"{name.partition('.')[2]}={value}" for name, value in now.items() if trained.get(name, value) != value)
    source = Path(model.source).name
    if model.file_bytes is not None and not source.endswith(".safetensors"):
        source = f"ticket-{source}"  # a file may have the name of a checkpoint
    engine = [f"engine={model.engine}"] if model.engine else []
    return " ".join([source, *changed, *engine])

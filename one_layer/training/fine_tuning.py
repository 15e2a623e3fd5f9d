"""Fine-tuning: a new run begins with what another run has learned (`train.init_from`).

An array of the parameters is taken over if the other run's best checkpoint has one with the same path and shape. A head is taken over
only if the labels are the same. All other parameters are new. Masks and fixed matrices of a part that both models have are not left
behind. `optim.train_only` and `optim.freeze` say what is then trained.

Scores have a meaning only over the random weights that they were trained on. So the seed and the recipes of random weights must be
those of the other run; another seed is refused, because a run, its checkpoints and its tickets have one seed for everything. The text
is read with the other run's vocabularies and BPE codes.
"""

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from one_layer.data.corpus import Corpus
from one_layer.layers.beside import ADAPTERS
from one_layer.layers.freezing import words
from one_layer.layers.trees import Path as ArrayPath
from one_layer.layers.trees import Variables, flatten_dict, unflatten_dict
from one_layer.models import ModelConfig, recipes, shapes
from one_layer.models.keys import MODEL_KEYS
from one_layer.models.sharding import fetch
from one_layer.runs.changes import STEPS, refuse_others
from one_layer.runs.folder import RunFolder
from one_layer.runs.frozen import read_frozen
from one_layer.runs.restore import restore_source
from one_layer.runs.settings import RunConfig
from one_layer.system.errors import UserError
from one_layer.tasks.model import TrainedModel

Arrays = dict[ArrayPath, np.ndarray]

# Keys that decide what taken over arrays compute.
_SAME = ("block", "d_model", "ffn", "heads", "activation", "norm_position", "norm_epsilon", "positions", "rotary_base")
# Keys that change nothing of what arrays compute after training.
_OF_TRAINING = {"remat", "layerdrop", "dropout", "attention_dropout", "activation_dropout", "head_dropout"}
# Keys that decide neither which arrays a model has nor their shapes.
_FREE = {
    *_OF_TRAINING,
    *("selection", "keep", "threshold", "dynamic_scale", "scale_by_keep"),
    *("dtype", "trained_precision", "vector_precision"),
}


class Start(NamedTuple):
    """What a run begins with: the taken over `params`, all `fixed` arrays that its seed does not give, and lines for people."""

    params: Variables
    fixed: Variables
    report: list[str]


def source_of(run: RunConfig) -> TrainedModel | None:
    """The model that `run` begins with; None if there is none. Raises: UserError if it cannot be used or does not fit."""
    path = run.train.init_from
    if run.train.model_of:
        raise UserError(
            f"train.model_of is {run.train.model_of}, whose settings were not read; give it on the command line of main.py, or call "
            "one_layer.runs.model_of.with_model_of before resolve"
        )
    if not path:
        return None
    if Path(path).is_file():
        raise UserError(
            f"train.init_from is {path}, which is a file; give the folder of a run (a ticket has no scores to train)"
        )
    source = restore_source("train.init_from", path)
    _check_keys(run, source)
    _check_fixed(run, source)
    # All processes take part in this, and one writes.
    return dataclasses.replace(source, variables=fetch(source.variables))


def start(run: RunConfig, model: ModelConfig, corpus: Corpus, source: TrainedModel, tables: Variables) -> Start:
    """What fits of `source`, beside the `tables` of `model.embedding_path`. Raises: UserError if nothing fits, or for other tables."""
    theirs = flatten_dict(source.variables["params"])
    if source.config.shared_embedding and not model.shared_embedding and ("shared_embedding", "kernel") in theirs:
        theirs["source_embedding", "kernel"] = theirs.pop(("shared_embedding", "kernel"))
    own = {path[1:]: shape for path, shape in shapes(model).items() if path[0] == "params"}
    same_labels = corpus.target_vocabulary == source.assets.target_vocabulary
    taken = {
        path: theirs[path]
        for path, shape in own.items()
        if path in theirs and theirs[path].shape == shape and (same_labels or "head" not in words(path))
    }
    if not taken:
        raise UserError(
            f"nothing of {run.train.init_from} fits: it is a {source.config.network_family.describe(source.config)} with "
            f"model.weights={source.config.weights}, and this run has a {model.network_family.describe(model)} with "
            f"model.weights={model.weights}; give a config with the same layers"
        )
    report = [f"from {run.train.init_from} (update {source.step}): {_listed(taken)}"]
    report += [f"new: {_listed(own.keys() - taken.keys())}"]
    left = theirs.keys() - taken.keys()
    stored = _stored(run)
    _check_left(
        run, model, source, left if same_labels else {path for path in left if "head" not in words(path)}, stored
    )
    if reshaped := sorted(path for path in left & own.keys() if theirs[path].shape != own[path]):
        first = reshaped[0]
        report.append(
            f"not taken over, because their shapes differ: {_listed(reshaped)}; {'/'.join(first)} is {theirs[first].shape} there and "
            f"{own[first]} here"
        )
    if unknown := left - set(reshaped):
        report.append(f"not taken over: {_listed(unknown)}")
    if others := _others(model, source, _OF_TRAINING):
        report.append(f"settings by which the same arrays may compute other numbers: {others}")
    if run.data.bpe_merges:
        report.append(
            f"data.bpe_merges has no effect: the BPE codes and the vocabularies are those of {run.train.init_from}"
        )
    fixed = unflatten_dict(_placed(stored, model))
    theirs_fixed = fixed.get("frozen", {})
    for name in tables.keys() & theirs_fixed.keys():
        if not np.array_equal(tables[name]["kernel"], theirs_fixed[name]["kernel"]):
            raise UserError(
                f"the {name} of model.embedding_path={run.model['embedding_path']:.200} is not the one in {run.train.init_from} of "
                f"train.init_from, whose scores and layers belong to that of {source.config.embedding_path:.200}; give the same files, "
                "model.init_* keys, model.scale_by_keep, model.keep and seed"
            )
    return Start(unflatten_dict(taken), {**fixed, "frozen": {**tables, **theirs_fixed}}, report)


def _check_left(
    run: RunConfig, model: ModelConfig, source: TrainedModel, left: Iterable[ArrayPath], stored: Arrays
) -> None:
    """Raises: UserError if matrices that the other run has for a part of `model` would be left behind.

    These are its fixed arrays that no seed gives (`stored`), its scores, and trained matrices of another shape; of an imported model all
    matrices. The layers of a dense run may be left for masks: such a run often gives its tables alone.
    """
    here = shapes(model)
    parts = {path[1] for path in here}
    lost = [
        path
        for path in left
        if path[0] in parts
        and (
            path[-1] == "scores"
            or (path[-1] in ("kernel", *ADAPTERS) and (source.step == 0 or ("params", *path) in here))
        )
    ]
    lost += [path[1:] for path in stored if path[1] in parts and here.get(path) != stored[path].shape]
    if lost:
        raise UserError(
            f"{_listed(lost)} of {run.train.init_from} would be left behind by train.init_from: {_others(model, source, _FREE)}; give "
            f"train.model_of={run.train.init_from}, which takes its settings"
        )


def _check_keys(run: RunConfig, source: TrainedModel) -> None:
    """Raises: UserError that names all keys in which the runs differ, though they decide what the arrays compute or how text is read."""
    now, then = run.data, source.assets.source_preprocessing
    if then.codes is None and (now.bpe_merges or now.bpe_codes):
        raise UserError(
            f"data.bpe_merges is {now.bpe_merges} and data.bpe_codes is {now.bpe_codes!r:.200}, but {run.train.init_from} of "
            "train.init_from has no BPE; leave both out"
        )
    model = run.model_config(10, 10)
    both_have_reservoirs = all("R" in "".join(each.strings.values()) for each in (model, source.config))
    learned = ("max_positions",) if model.positions == "learned" else ()
    # Arrays of these two norms have the same names.
    scaled = ("norm",) if {model.norm, source.config.norm} == {"affine", "rms"} else ()
    pairs = [
        (f"model.{key}", getattr(model, key), getattr(source.config, key))
        for key in (*_SAME, *learned, *scaled, *(("reservoir",) if both_have_reservoirs else ()))
    ] + [
        (f"data.{key}", getattr(now, key), getattr(then, key))
        for key in STEPS
        if (key != "bpe_kind" or then.codes is not None) and (key != "normalize" or now.tokenize)
    ]
    if now.streamed and source.data.streamed:
        pairs.append(("data.unit", now.unit, source.data.unit))
    refuse_others(pairs, f"{run.train.init_from} of train.init_from does not fit")


def _check_fixed(run: RunConfig, source: TrainedModel) -> None:
    """Raises: UserError if the fixed matrices that both models have are not the same: scores and trained layers belong to them.

    The tables of `model.embedding_path` are only known with the text; `start` compares their values.
    """
    model = run.model_config(source.config.source_vocab, source.config.target_vocab)
    stored = _placed(_stored(run), model)
    ours, theirs = _fixed(model, run.seed), _fixed(source.config, source.seed)
    here, there = shapes(model), shapes(source.config)
    for module in sorted(ours.keys() & theirs.keys()):
        path, scores = (ours[module][0], *module, "kernel"), ("params", *module, "scores")
        kept = path in stored and there.get(path) == here[path]
        same_kind = ours[module][0] == theirs[module][0]
        left = same_kind and here[path] != there[path] and here.get(scores, ()) != there.get(scores)
        if ours[module] != theirs[module] and not kept and not left:
            seed = [f"seed is {run.seed} and {source.seed} there"] * (run.seed != source.seed)
            raise UserError(
                f"the fixed weights {'/'.join(module)} are others than in {run.train.init_from} of train.init_from, to whose weights its "
                f"scores and layers belong: {', '.join([*seed, _others(model, source)])}; give the same"
            )


def _fixed(model: ModelConfig, seed: int) -> dict[ArrayPath, tuple[Any, ...]]:
    """What decides each matrix that is not trained, by its module's path: its collection and, if it is drawn, its recipe and the seed."""
    drawn = recipes(model)
    known = {path[1:-1]: path[0] for path in shapes(model) if path[0] in ("random", "frozen") and path[-1] == "kernel"}
    return {module: (kind, drawn[module], seed) if kind == "random" else (kind,) for module, kind in known.items()}


def _others(model: ModelConfig, source: TrainedModel, free: Collection[str] = ()) -> str:
    """The keys, but for those that are `free`, in which the model differs from that of `source`, with both values."""
    keys = [key for key in MODEL_KEYS if getattr(model, key) != getattr(source.config, key) and key not in free]
    return ", ".join(
        f"model.{key} is {getattr(model, key)!r:.200} and {getattr(source.config, key)!r:.200} there" for key in keys
    )


def _placed(stored: Arrays, model: ModelConfig) -> Arrays:
    """Those of the `stored` arrays for which `model` has a place."""
    known = shapes(model)
    return {path: array for path, array in stored.items() if known.get(path) == array.shape}


def _stored(run: RunConfig) -> Arrays:
    """The fixed arrays of the other run that no seed gives."""
    arrays = read_frozen(RunFolder(run.train.init_from).frozen_file)
    return {tuple(name.split("/")): array for name, array in arrays.items()}


def _listed(paths: Iterable[ArrayPath]) -> str:
    """The modules of arrays with their numbers: `encoder/layers 16, source_embedding 1`."""
    counts = Counter("/".join(path[:-1][:2]) for path in sorted(paths))
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "nothing"

"""Reads pre-trained tables of the kind `model.embedding_source`, and sorts their rows by a model's vocabularies.

Rows are matched by token string, including special tokens if the source has them. If the source is a translation model with a table for
each language, each side gets the table of its language, whatever the direction of that model.
"""

import logging
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32

from one_layer.data.config import NO_LANGUAGE
from one_layer.data.special_tokens import PAD
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.languages import code
from one_layer.data.text.vocabulary import SPECIALS, Vocabulary
from one_layer.importers.fairseq_checkpoint import check_rows, read_checkpoint
from one_layer.importers.parameters import StateDict
from one_layer.importers.safetensors_files import roberta_positions, roberta_table
from one_layer.importers.text_embeddings import Table, check_vectors, read_embeddings
from one_layer.layers.materializing import materialize
from one_layer.layers.quantization import quantized
from one_layer.models import ModelConfig
from one_layer.runs.restore import restore_source
from one_layer.system.errors import UserError
from one_layer.tasks.model import TrainedModel

log = logging.getLogger(__name__)

Rows = Float32[np.ndarray, "vocab d"]


class Side(NamedTuple):
    """What a table of a model needs: rows for a vocabulary in a language, or in two if one table is for both sides."""

    vocabulary: Vocabulary
    languages: tuple[str, ...]


def table_sides(model: ModelConfig, assets: TextAssets) -> dict[str, Side]:
    """The vocabulary and languages of each table of a model, by the table's name."""
    vocabularies = {"source": assets.source_vocabulary, "target": assets.target_vocabulary}
    languages = dict(zip(("source", "target"), assets.languages, strict=True))
    return {
        table.name: Side(vocabularies[table.sides[-1]], tuple(languages[side] for side in table.sides))
        for table in model.network_family.tables(model)
    }


def embedding_rows(model: ModelConfig, sides: Mapping[str, Side]) -> dict[str, Rows]:
    """The rows of `model.embedding_path` for every side, NaN for tokens that were not found; {} without a path. Logs how many were found.

    With frozen `model.positions`, also returns the position table, under `position_embedding`. Raises: UserError of one sentence that
    names the file, if the file is missing or damaged, has values that are not numbers, has another dimension than `model.d_model`, or
    has no token of the vocabulary; and if the path has `{language}`, but one table is for both languages.
    """
    if not model.embedding_path:
        return {}
    languages = tuple(language for side in sides.values() for language in side.languages)
    if "{language}" in model.embedding_path and any(len(side.languages) > 1 for side in sides.values()):
        raise UserError(
            f"model.embedding_path={model.embedding_path} names a file for each language, but model.shared_embedding is one table for "
            "both; turn that off, or give one file with the tokens of both"
        )
    # A file or folder that serves both sides is read once.
    path, dictionary, roberta = model.embedding_path, model.embedding_vocabulary, cache(roberta_table)
    tables: dict[str, Callable[[Side], Table]] = {
        "run": partial(_of_run, model, cache(_restore)),
        "fairseq": partial(_of_fairseq, model, cache(read_checkpoint), languages),
        "roberta": lambda side: roberta(_path(path, side), _path(dictionary, side), model.d_model),
    }
    found = {}
    for name, side in sides.items():
        if model.embedding_source == "text":
            where = _path(path, side)
            rows = read_embeddings(where, side.vocabulary, model.d_model)
        else:
            table = tables[model.embedding_source](side)
            where, rows = table.name, table.rows_of(side.vocabulary)
        _report(name, rows, where)
        found[name] = rows
    if model.positions == "frozen":
        where = _path(path, next(iter(sides.values())))
        found["position_embedding"] = rows = roberta_positions(where, model.d_model)
        if len(rows) != model.max_positions + PAD + 1:
            raise UserError(
                f"{where} has positions for {len(rows) - PAD - 1} tokens, but model.max_positions is {model.max_positions}; "
                "make them equal"
            )
    return found


def run_tables(restored: TrainedModel) -> tuple[Rows, ...]:
    """The embedding tables of a model of a run or ticket (trained, fixed, or W ⊙ M): those of the source and of the target.

    A classifier and a masked language model have only the source's table, a causal language model only the target's. A table that both
    sides of a translation model share is returned twice.
    """
    tables = {
        collection: {name: module for name, module in tree.items() if name.endswith("embedding")}
        for collection, tree in restored.variables.items()
    }
    made = materialize(quantized(tables, restored.config.precisions), restored.config.supermask, packed=True)
    found = {name: np.asarray(module["kernel"]) for tree in made.values() for name, module in tree.items()}
    if restored.config.shared_embedding:
        return found["shared_embedding"], found["shared_embedding"]
    return tuple(found[name] for name in ("source_embedding", "target_embedding") if name in found)


def _path(template: str, side: Side) -> str:
    return template.replace("{language}", side.languages[0])


def _report(name: str, rows: Rows, where: str) -> None:
    """Logs how many rows were found. Raises: UserError if there are none besides special tokens, which every vocabulary has."""
    found = ~np.isnan(rows[:, 0])
    special = int(found[: len(SPECIALS)].sum())
    if found.sum() == special:
        raise UserError(
            f"{where} has none of the {len(rows) - len(SPECIALS):,} types of the model's vocabulary for {name}; give embeddings of "
            "the same language, tokens and BPE"
        )
    log.info(
        "%s: %s of %s types found in %s, %d of the 4 special ones among them; the other %s are drawn",
        name,
        f"{found.sum():,}",
        f"{len(rows):,}",
        where,
        special,
        f"{len(rows) - found.sum():,}",
    )


def _restore(path: str) -> tuple[TrainedModel, tuple[Rows, ...]]:
    """A trained run, and its tables."""
    restored = restore_source("model.embedding_path", path, ", or another model.embedding_source")
    return restored, run_tables(restored)


def _of_run(model: ModelConfig, restore: Callable[[str], tuple[TrainedModel, tuple[Rows, ...]]], side: Side) -> Table:
    path = _path(model.embedding_path, side)
    run, tables = restore(path)
    languages = run.assets.languages[: len(tables)]  # a model with one table has one language
    both = len(tables) == 2 and tables[0] is tables[1]
    shared = both or languages == (NO_LANGUAGE,)  # the table of a language model serves any language
    serving = _serving(shared, languages, side, path)
    name = f"{path} (its {languages[serving]} table, update {run.step})"
    check_vectors(tables[serving], model.d_model, name)
    return Table(name, run.assets.vocabularies[serving].ids, tables[serving])


def _of_fairseq(
    model: ModelConfig,
    read: Callable[[Path], tuple[StateDict, dict[str, object]]],
    languages: tuple[str, ...],
    side: Side,
) -> Table:
    path = Path(_path(model.embedding_path, side))
    dictionary = Path(_path(model.embedding_vocabulary or str(path.with_name("dict.{language}.txt")), side))
    state, options = read(path)
    stated = (options.get("source_lang"), options.get("target_lang"))
    theirs = tuple(map(str, stated)) if all(stated) else languages
    names = [f"{stack}.embed_tokens" for stack in ("encoder", "decoder")]
    if missing := [f"{name}.weight" for name in names if f"{name}.weight" not in state]:
        raise UserError(
            f"{path} has no {' and no '.join(missing)} (looked for: {', '.join(names)}); give the checkpoint of a fairseq "
            "Transformer for translation"
        )
    shared = np.array_equal(state[f"{names[0]}.weight"], state[f"{names[1]}.weight"])
    name = names[_serving(shared, theirs, side, str(path))]
    if f"{name}.scores" in state:
        raise UserError(
            f"{path}: {name} has scores, so that the model looks tokens up in a masked table; import it with "
            "python -m one_layer import_fairseq and use the run with model.embedding_source=run"
        )
    rows = state[f"{name}.weight"]
    check_vectors(rows, model.d_model, f"{path}: {name}.weight")
    vocabulary = Vocabulary.load(dictionary, fairseq=True)
    check_rows(vocabulary, dictionary, len(rows), f"{path}: {name}.weight")
    return Table(f"{path}: {name}.weight", vocabulary.ids, rows)


def _serving(shared: bool, theirs: tuple[str, ...], side: Side, where: str) -> int:
    """The index of the table for a side, among tables for the languages `theirs`: that of its language, or 0 for a shared table."""
    if shared:
        return 0
    codes = [*map(code, theirs)]
    missing = [language for language in side.languages if code(language) not in codes]
    if missing:
        raise UserError(
            f"{where} has tables for {' and '.join(theirs)}, but none for {missing[0]}; give a model of that language, or set "
            "data.source_language and data.target_language to the languages of the text"
        )
    if len(side.languages) > 1:
        raise UserError(
            f"{where} has a table for each of its languages, but model.shared_embedding is one for both; turn that off, or give a "
            "model with one table"
        )
    language = side.languages[0]
    serving = [place for place, each in enumerate(theirs) if each == language]
    serving = serving or [place for place, each in enumerate(codes) if each == code(language)]
    if len(serving) > 1:
        raise UserError(
            f"{where} has two tables for {language}, and nothing says which one serves here; give a model with one for each language"
        )
    return serving[0]

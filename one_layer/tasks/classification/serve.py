"""Raw texts in, labels out, by a trained classifier."""

from __future__ import annotations

import math

from one_layer.data.text.streams import read_input, write_output
from one_layer.errors import UserError
from one_layer.runs.restore import RestoredRun
from one_layer.tasks.classification.glue import task_named
from one_layer.tasks.classification.scores import Labeller, label_names
from one_layer.tasks.translation.generate import prepared


def classify(restored: RestoredRun, input_path: str, output_path: str) -> None:
    """Labels every line of `input_path` (empty: stdin): one line `label<TAB>probability` each, into `output_path` (empty: stdout).

    A line has as many texts as the task, with a tab between. What was done to the training text is done to them; an empty line
    stays empty.

    Raises: UserError for an input that cannot be used.
    """
    if not restored.model.classifies:
        raise UserError(f"{restored.source} is of a translation model, which has no labels; give --mode=translate")
    write_output(output_path, classify_lines(restored, read_input(input_path)))


def classify_lines(restored: RestoredRun, lines: list[str]) -> list[str]:
    """`label<TAB>probability` of every line, in order. Raises: UserError, with its number, for a line of too few or many texts."""
    data, assets = restored.run.data, restored.assets
    texts = len(task_named(data.labels).columns)
    full = [place for place, line in enumerate(lines) if line.strip()]
    for place in full:
        if (found := lines[place].count("\t") + 1) != texts:
            raise UserError(
                f"line {place + 1} has {found} texts, {lines[place][:60]!r}, but {data.labels} is of {texts}; a tab separates texts"
            )
    prepared_lines = assets.source_preprocessing.apply(lines[place] for place in full)
    ids = [assets.encode_source(line, data.max_length) for line in prepared_lines]
    given = [""] * len(lines)
    if ids:
        labeller, variables = (
            Labeller(restored.model, restored.run.evaluation),
            prepared(restored.model, restored.variables),
        )
        log_p = labeller(variables, ids, "classifying")
        for place, label, each in zip(full, label_names(assets, log_p), log_p, strict=True):
            given[place] = f"{label}\t{math.exp(each.max()):.4f}"
    return given

"""Raw lines in, translated lines out, by a trained run."""

from __future__ import annotations

from one_layer.data.text.streams import read_input, write_output
from one_layer.errors import UserError
from one_layer.runs.restore import RestoredRun
from one_layer.tasks.translation.generate import Generator


def translate(restored: RestoredRun, input_path: str, output_path: str) -> None:
    """Translates every line of `input_path` (empty: stdin) to one line of `output_path` (empty: stdout).

    What was done to the training text (Moses, lower-casing, BPE) is done to the lines and undone on the translations. An empty
    line stays empty.

    Raises: UserError for an input that cannot be used.
    """
    if restored.model.classifies:
        raise UserError(f"{restored.source} is of a classifier, which does not translate; give --mode=classify")
    lines = read_input(input_path)
    generator = Generator(restored.model, restored.run.evaluation)
    write_output(output_path, translate_lines(restored, generator, lines))


def translate_lines(restored: RestoredRun, generator: Generator, lines: list[str]) -> list[str]:
    """The translations of `lines`, in order, as plain text."""
    assets = restored.assets
    prepared = assets.source_preprocessing.apply(lines)
    # Control characters alone leave nothing either, or are no text.
    full = [place for place, line in enumerate(prepared) if line.strip() and lines[place].strip()]
    sentences = [assets.source_vocabulary.encode(prepared[place]) for place in full]
    translated = [""] * len(lines)
    if not sentences:
        return translated
    hypotheses = generator(generator.prepare(restored.variables), sentences, "translating")
    plain = assets.target_preprocessing.undo([assets.target_vocabulary.decode(h.tokens) for h in hypotheses])
    for place, line in zip(full, plain, strict=True):
        translated[place] = line
    return translated

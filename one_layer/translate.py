"""Raw lines in, translated lines out, by a trained run."""

from __future__ import annotations

import logging
import sys

from one_layer.data.text import read_lines, split_lines
from one_layer.errors import UserError
from one_layer.files import write_atomically
from one_layer.generate import Generator
from one_layer.restore import RestoredRun

log = logging.getLogger(__name__)


def translate(restored: RestoredRun, input_path: str, output_path: str) -> None:
    """Translates every line of `input_path` (empty: stdin) to one line of `output_path` (empty: stdout).

    What was done to the training text (Moses, lower-casing, BPE) is done to the lines and undone on the translations. An empty
    line stays empty.

    Raises: UserError for an input that cannot be used.
    """
    if input_path:
        lines = read_lines(input_path)
    else:
        lines = split_lines(sys.stdin.buffer.read(), "stdin")
        if not lines:
            raise UserError("stdin is empty; pipe lines to translate into it, or give --input=FILE")
    generator = Generator(restored.model, restored.run.evaluation)
    text = "".join(line + "\n" for line in translate_lines(restored, generator, lines))
    if output_path:
        write_atomically(output_path, text)
    else:
        sys.stdout.buffer.write(text.encode())  # UTF-8 as the input, whatever the terminal's encoding
        sys.stdout.buffer.flush()


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

"""Compares the translations and the speed of a ticket here with those of the same model in another engine (docs/engines.md).

    taskset -c 0 python -m launch.benchmarks.engines --ticket=FILE --source=test.en --reference=test.de

The other engine is CTranslate2, or with --engine=transformers that package. One row for each: lines that equal ours, tokenised BLEU, and
lines for each second of processor time. Beam 5. The engines take turns at the first `--timed` lines (200), `--rounds` times (3), so that a
busy machine slows all of them. On one core (`taskset`), processor time is what a machine without other work would take.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import one_layer
from one_layer.cli import command
from one_layer.data.text.lines import read_lines
from one_layer.data.text.vocabulary import PAD
from one_layer.importers import engines
from one_layer.system.errors import UserError
from one_layer.tasks.translation import bleu

Engine = Callable[[int], list[str]]  # from the number of lines to translations


def main() -> None:
    """Runs the command line."""
    parser = command.parser_of(__doc__)
    parser.add_argument("--ticket", type=Path, required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--engine", choices=("ctranslate2", "transformers"), default="ctranslate2")
    parser.add_argument("--timed", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    model: Any = one_layer.load(given.ticket)
    target = model.assets.target_preprocessing
    lines = model.assets.source_preprocessing.apply(read_lines(given.source))
    references = bleu.bleu_tokens(target, target.words(read_lines(given.reference)))
    with tempfile.TemporaryDirectory() as folder:
        others = {"ctranslate2": _ctranslate2, "transformers": _transformers}[given.engine]
        sides: dict[str, Engine] = {"one_layer": lambda count: model.lines_of_tokens(lines[:count])}
        sides |= others(model, lines, Path(folder) / "model")
        found = {name: side(len(lines)) for name, side in sides.items()}
        seconds = _in_turn({name: partial(side, given.timed) for name, side in sides.items()}, given.rounds)
    print(f"{'engine':24} {'equal lines':>12} {'BLEU':>7} {'lines a second':>15} {'times ours':>11}")
    for name, each in found.items():
        equal = sum(one == other for one, other in zip(each, found["one_layer"], strict=True))
        score = bleu.bleu_tokenized(bleu.bleu_tokens(target, target.join(each)), references)
        ratio = seconds["one_layer"] / seconds[name]
        print(f"{name:24} {equal:>6} of {len(lines)} {score:>7.2f} {given.timed / seconds[name]:>15.1f} {ratio:>11.2f}")


def _ctranslate2(model: Any, lines: list[str], folder: Path) -> dict[str, Engine]:
    """What translates the first lines of tokens in CTranslate2, by the kind of its numbers."""
    engines.export(model, "ctranslate2", folder)  # says in a sentence if the package is missing
    import ctranslate2

    sides: dict[str, Engine] = {}
    for kind in ("float32", "int8"):
        engine = ctranslate2.Translator(str(folder), compute_type=kind, inter_threads=1, intra_threads=1)
        sides[f"CTranslate2, {kind}"] = partial(_translate, engine, [line.split() for line in lines])
    return sides


def _transformers(model: Any, lines: list[str], folder: Path) -> dict[str, Engine]:
    """What translates the first lines of tokens in `transformers`: batches of 32 of similar length."""
    engines.export(model, "huggingface", folder)
    try:
        import torch
        import transformers
    except ImportError as error:
        raise UserError(f"--engine=transformers needs the packages torch and transformers: {error}") from None
    text, engine = model.assets, transformers.FSMTForConditionalGeneration.from_pretrained(folder)
    torch.set_num_threads(1)
    ids = [text.source_vocabulary.encode(line) for line in lines]

    def translate(count: int) -> list[str]:
        found = [""] * count
        order = sorted(range(count), key=lambda place: len(ids[place]))
        for first in range(0, count, 32):
            batch = order[first : first + 32]
            source = torch.full((len(batch), max(len(ids[place]) for place in batch)), PAD)
            for row, place in enumerate(batch):
                source[row, : len(ids[place])] = torch.tensor(ids[place]).long()
            with torch.no_grad():
                made = engine.generate(source, attention_mask=(source != PAD).long())
            for place, row in zip(batch, made[:, 1:].numpy(), strict=True):
                found[place] = text.target_vocabulary.decode(row[row != PAD])
        return found

    return {f"transformers {transformers.__version__}": translate}


def _translate(engine: Any, tokens: list[list[str]], count: int) -> list[str]:
    found = engine.translate_batch(tokens[:count], beam_size=5, length_penalty=1.0, max_batch_size=64)
    return [" ".join(each.hypotheses[0]) for each in found]


def _in_turn(sides: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median of the processor time of each side, in seconds; all have run once before."""
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for side in sides.values():
        side()
    for _ in range(rounds):
        for name, side in sides.items():
            start = time.process_time()
            side()
            taken[name].append(time.process_time() - start)
    return {name: statistics.median(each) for name, each in taken.items()}


if __name__ == "__main__":
    command.run(main)

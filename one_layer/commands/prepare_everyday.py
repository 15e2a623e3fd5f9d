"""Puts Tatoeba's everyday sentences and the captions of Multi30k together as training text, English and German.

    python -m one_layer prepare_everyday --tatoeba=deu.txt --multi30k=DIR --out=DIR

deu.txt is that of deu-eng.zip from manythings.org/anki: an English and a German sentence on each line, with a tab between them (and more
columns in newer files); plain or .gz. The folder of Multi30k holds train and test2016, .en and .de, raw, plain or .gz.

Afterwards DIR holds these, .en and .de, as they were written (case, signs and spaces), and manifest.json:
- everyday: 2,000 pairs of Tatoeba, for testing, and valid: 1,000 more, for validation;
- train: all other pairs of Tatoeba, and the captions, if neither side is a line of `everyday` or `valid`, whatever its case;
- test2016: that of Multi30k.

A hash of the English sentence in small letters decides which pairs are held out: those of the lowest hashes, with the first German
sentence of each, in the order of the hashes. So the sets depend on nothing but the text.
"""

import hashlib
from pathlib import Path

from one_layer.cli.command import parser_of
from one_layer.data.preparation import published
from one_layer.data.sources.table import Table
from one_layer.data.text.lines import existing_file, stream_parallel
from one_layer.runs.lock import locked
from one_layer.system.errors import UserError, counted

LANGUAGES = ("en", "de")
HELD_OUT = {"everyday": 2000, "valid": 1000}
Pairs = list[tuple[str, str]]


def prepare(tatoeba: Path, multi30k: Path, out: Path) -> None:
    """Writes the text of both corpora into the folder `out`. Raises: UserError for files that cannot be used."""
    given = [existing_file(tatoeba)]
    given += [existing_file(path) for name in ("train", "test2016") for path in _files(multi30k, name)]
    read = published.checksums(given)
    table = Table(tatoeba, ("1", "2"))
    if len(first := table.first()) < 2:
        raise UserError(
            f"--tatoeba={tatoeba}: its first line, {first[0]!r:.60}, has no tab; give deu.txt, with a tab between the two sentences"
        )
    everyday = [(row[0], row[1]) for _, row in table if row[0].strip() and row[1].strip()]
    held_out = held_out_of(everyday)
    captions = {name: list(stream_parallel(*_files(multi30k, name))) for name in ("train", "test2016")}
    train = without(held_out["everyday"] + held_out["valid"], everyday + captions["train"])
    parts = {"train": train, **held_out, "test2016": captions["test2016"]}
    outputs = [path for name, pairs in parts.items() for path in published.write_pairs(out, name, LANGUAGES, pairs)]
    counts = {name: len(pairs) for name, pairs in parts.items()}
    published.write_manifest(out, read, outputs, counts, corpus="Tatoeba and Multi30k, English and German")


def held_out_of(pairs: Pairs) -> dict[str, Pairs]:
    """The pairs of the parts of HELD_OUT: one of each English sentence, those of the lowest hashes, in their order.

    Raises: UserError if there are not enough sentences to leave as many for training.
    """
    first: dict[bytes, tuple[str, str]] = {}
    for pair in pairs:
        first.setdefault(hashlib.sha256(_key(pair[0]).encode()).digest(), pair)
    wanted = sum(HELD_OUT.values())
    if len(first) < 2 * wanted:
        raise UserError(
            f"--tatoeba has {counted(len(first), 'English sentence')}, too few to hold out {wanted:,} of them; give the whole file"
        )
    chosen = iter([first[digest] for digest in sorted(first)[:wanted]])
    return {name: [next(chosen) for _ in range(count)] for name, count in HELD_OUT.items()}


def without(held_out: Pairs, pairs: Pairs) -> Pairs:
    """The `pairs` of which neither side is one of the same language in `held_out`, whatever its case."""
    known = [{_key(pair[side]) for pair in held_out} for side in range(len(LANGUAGES))]
    return [pair for pair in pairs if all(_key(line) not in keys for line, keys in zip(pair, known, strict=True))]


def _key(line: str) -> str:
    return " ".join(line.casefold().split())


def _files(folder: Path, name: str) -> list[Path]:
    return [folder / f"{name}.{language}" for language in LANGUAGES]


def main(argv: list[str]) -> None:
    """Runs the command line."""
    parser = parser_of(__doc__)
    parser.add_argument(
        "--tatoeba", type=Path, required=True, help="deu.txt: English and German with a tab between them"
    )
    parser.add_argument("--multi30k", type=Path, required=True, help="the folder with train and test2016 .en and .de")
    parser.add_argument("--out", type=Path, required=True, help="the folder for the text")
    given = parser.parse_args(argv)
    if given.out.resolve() == given.multi30k.resolve():
        raise UserError(
            f"--out={given.out} is the folder of --multi30k, whose files would be replaced; give another one"
        )
    published.refuse_finished(given.out)
    with locked(given.out, "prepares a corpus in it"):
        prepare(given.tatoeba, given.multi30k, given.out)

"""Writes the tables of a run as text, in fairseq's format, for `model.embedding_path` of another run or for another program.

    python launch/dump_embeddings.py --workdir=RUN --out=DIR [--checkpoint=best]

leaves DIR/embeddings.LANGUAGE.txt for every language: `N d`, then N lines `token v1 ... vd`, special tokens among them. Numbers
read back to the same bits. A masked table is written as its model uses it, with its mask; a table of both languages twice.
Another run of this project needs no such file: --config.model.embedding_source=run takes the tables from RUN.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from launch import command
from one_layer.errors import UserError
from one_layer.importers.embeddings import run_tables
from one_layer.importers.text_embeddings import write_embeddings
from one_layer.runs.restore import restore_run

log = logging.getLogger(__name__)


def dump(workdir: Path, out: Path, checkpoint: str = "best") -> None:
    """Writes a file a language. Raises: UserError where there is no such checkpoint (see `restore_run`), or no place for them."""
    restored = restore_run(workdir, checkpoint)
    assets = restored.assets
    for language, vocabulary, rows in zip(assets.languages, assets.vocabularies, run_tables(restored), strict=False):
        path = out / f"embeddings.{language}.txt"
        try:
            write_embeddings(path, vocabulary.tokens, rows)
        except OSError as error:
            raise UserError(f"{path} cannot be written: {error.strerror}; give another --out") from None
        log.info("%s: %s vectors of %d features, of update %d", path, f"{len(rows):,}", rows.shape[1], restored.step)


def main(argv: list[str]) -> None:
    """Command line. Raises: UserError as `dump` does."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--workdir", type=Path, required=True, help="the run folder")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    parser.add_argument("--checkpoint", default="best", help="best, last, average:N, average-best:N or a step")
    arguments = parser.parse_args(argv)
    dump(arguments.workdir, arguments.out, arguments.checkpoint)


if __name__ == "__main__":
    logging.getLogger("jax").setLevel(logging.WARNING)
    logging.getLogger("absl").setLevel(logging.ERROR)  # Orbax warns of what is meant
    command.run(lambda: main(sys.argv[1:]))

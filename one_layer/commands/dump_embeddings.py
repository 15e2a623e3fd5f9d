"""Writes the embedding tables of a run as text in fairseq's format, for another program or another run's `model.embedding_path`.

    python -m one_layer dump_embeddings --workdir=RUN --out=DIR [--checkpoint=best]

It writes DIR/embeddings.LANGUAGE.txt for every language: `N d`, then N lines `token v1 ... vd`, including the special tokens. The
values read back bit for bit. A masked table is written with its mask applied, as the model uses it. A table that both languages
share is written twice. Another run of this project needs no such file: --config.model.embedding_source=run reads the tables of RUN.
"""

from __future__ import annotations

import logging
from pathlib import Path

from one_layer.cli.command import parser_of
from one_layer.importers.embeddings import run_tables
from one_layer.importers.text_embeddings import write_embeddings
from one_layer.runs.restore import restore_run
from one_layer.system.errors import UserError

log = logging.getLogger(__name__)


def dump(workdir: Path, out: Path, checkpoint: str = "best") -> None:
    """Writes one file per language, or per side where both sides have one language.

    Raises: UserError if the checkpoint is missing (see `restore_run`) or writing fails.
    """
    restored = restore_run(workdir, checkpoint)
    assets = restored.assets
    names = assets.languages if len(set(assets.languages)) > 1 or restored.data.streamed else ("source", "target")
    for name, vocabulary, rows in zip(names, assets.vocabularies, run_tables(restored), strict=False):
        path = out / f"embeddings.{name}.txt"
        try:
            write_embeddings(path, vocabulary.tokens, rows)
        except OSError as error:
            raise UserError(f"{path} cannot be written: {error.strerror}; give another --out") from None
        log.info("%s: %s vectors of %d features, from update %d", path, f"{len(rows):,}", rows.shape[1], restored.step)


def main(argv: list[str]) -> None:
    """Runs the command line. Raises: UserError as `dump` does."""
    parser = parser_of(__doc__)
    parser.add_argument("--workdir", type=Path, required=True, help="the run folder")
    parser.add_argument("--out", type=Path, required=True, help="the folder to write to")
    parser.add_argument("--checkpoint", default="best", help="best, last, average:N, average-best:N or a step")
    arguments = parser.parse_args(argv)
    dump(arguments.workdir, arguments.out, arguments.checkpoint)

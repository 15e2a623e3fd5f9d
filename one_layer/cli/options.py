"""The options of the modes."""

import argparse

from one_layer.cli.command import parser_of


def parser(documentation: str | None) -> argparse.ArgumentParser:
    """The parser of the options. Keys of the config (`--config.a.b=VALUE`) are none of them."""
    made = parser_of(documentation)
    made.add_argument("--config", help="the config, for instance configs/toy.py:one_layer")
    made.add_argument("--workdir", help="the run's folder; with --mode=report, the folder of the report")
    made.add_argument(
        "--mode",
        default="train",
        help="train, evaluate, translate, classify, generate, fill, export, page, inspect, report, collect or keys",
    )
    made.add_argument("--checkpoint", default="best", help="best, last, average:N or a step (default best)")
    made.add_argument(
        "--ticket",
        action="append",
        default=[],
        help="the ticket to evaluate, translate, classify, generate or fill with, to inspect, or to make a page of, instead of a "
        "checkpoint; a page may have several: --ticket=A --ticket=B",
    )
    made.add_argument(
        "--note",
        default="",
        help="for page: a sentence at its end, for instance what the model was trained on, and under which terms",
    )
    made.add_argument(
        "--ticket_mode",
        choices=["materialized", "packed"],
        default="materialized",
        help="materialized: apply the masks once, before the first line; packed: keep them as bits, which takes less memory",
    )
    made.add_argument(
        "--precision",
        choices=["float32", "bfloat16", "int8", "int4"],
        help="for export: the precision of a ticket's trained and fixed matrices (masks stay bits), by default model.trained_precision; "
        "or of another engine's matrices, by default float32",
    )
    made.add_argument(
        "--format",
        choices=["ticket", "ctranslate2", "huggingface"],
        default="ticket",
        help="for export: a ticket in the run's folder, or a new folder --output for another engine (docs/engines.md)",
    )
    made.add_argument(
        "--engine",
        choices=["jax", "ctranslate2", "ctranslate2-int8"],
        default="jax",
        help="what searches for translations: this program in JAX, or the package CTranslate2, in float32 or 8 bits (docs/engines.md)",
    )
    made.add_argument(
        "--n_best",
        type=int,
        metavar="N",
        help="for translate: the N best translations of each line, as LINE ||| TEXT ||| SCORE",
    )
    made.add_argument(
        "--split", default="test", help="what to evaluate: valid, the name of a test set, or test for all test sets"
    )
    made.add_argument("--version", action="store_true", help="print the version, and do nothing else")
    made.add_argument(
        "--distributed",
        default="",
        help="train or evaluate with several processes, which meet at HOST:PORT of the first one",
    )
    made.add_argument("--processes", type=int, default=1, help="with --distributed: how many processes there are")
    made.add_argument("--process", type=int, default=0, help="with --distributed: the number of this process, from 0")
    made.add_argument(
        "--input", default="", help="the lines to translate, classify, continue or fill; stdin by default"
    )
    made.add_argument(
        "--runs",
        default="",
        help="the folders of runs to report on or to collect, as a pattern, for instance 'runs/figure2/*'; or a collection",
    )
    made.add_argument(
        "--output",
        default="",
        help="the file for the lines that translate, classify, generate or fill write, stdout by default; for collect: a file "
        "NAME.jsonl.zst; for export with --format: a new folder; for page: the file of HTML, or NAME.js or NAME.mjs for an ES module",
    )
    return made

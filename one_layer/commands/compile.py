"""Compiles a config's training step for accelerators that are not here, and says what it needs there.

    python -m one_layer compile --config=configs/wmt14.py:one_layer_wider --target=h100x8

It prints, and with --output writes as JSON: whether the program fits, its memory on each device, its products by type, the bytes between
devices, kernels and loops, and a predicted time. Nothing is run, so the time is a prediction, from makers' data. --target takes several
targets with commas: one table compares them. --top=40 lists the 40 operations whose kernels read and write the most.
--config.a.b=VALUE changes a key.
"""

import json
import logging
from typing import Any

import jax
from rich.console import Console
from rich.table import Table

from one_layer.ahead.chips import Target
from one_layer.ahead.contents import contents
from one_layer.ahead.prediction import predict
from one_layer.ahead.programs import compiled
from one_layer.cli.command import parser_of, positive
from one_layer.cli.config_files import config_of
from one_layer.data.text.streams import check_output, write_content
from one_layer.models import ModelConfig
from one_layer.models.flops import update_flops
from one_layer.runs.settings import RunConfig, resolve
from one_layer.system.cuda_graphs import keep_loops_on_gpu
from one_layer.system.errors import UserError

log = logging.getLogger(__name__)


def main(argv: list[str]) -> None:
    """Runs the command line. Raises: UserError for a config, a target or a program that cannot be compiled."""
    parser = parser_of(__doc__)
    parser.add_argument(
        "--config", required=True, help="FILE or FILE:ARGUMENT, for instance configs/wmt14.py:one_layer_wider"
    )
    parser.add_argument(
        "--target",
        required=True,
        help="such as h100, h100x8, h200x8, a100x8, v5e-8, v5e-256, v6e-8; several with commas",
    )
    parser.add_argument(
        "--vocabularies", default="32768,32768", help="tokens of the source and of the target (default 32768,32768)"
    )
    parser.add_argument(
        "--length",
        type=positive,
        default=32,
        help="padded tokens of a text; of a stream, data.block counts (default 32)",
    )
    parser.add_argument(
        "--top", type=positive, default=0, help="list so many operations, those that read and write the most"
    )
    parser.add_argument("--output", help="also write everything that was found to this file, as JSON")
    arguments, rest = parser.parse_known_args(argv)
    if arguments.output:
        check_output(arguments.output)  # before minutes of compiling
    jax.config.update("jax_platforms", "cpu")  # nothing is run, whatever devices are here
    targets = [Target.of(name) for name in arguments.target.split(",")]
    keep_loops_on_gpu(exchanges=all(target.number <= target.chip.together for target in targets))  # as in a run
    run = _run(arguments.config, rest)
    config = run.model_config(*_sizes(arguments.vocabularies))
    length = run.data.block if run.data.streamed else arguments.length
    found = [_compiled(run, config, target, length, arguments.top) for target in targets]
    print(
        f"{arguments.config}, vocabularies {config.source_vocab:,} and {config.target_vocab:,}, texts of {length} tokens; nothing was run"
    )
    _print(found)
    for each in found:
        _print_largest(each)
        if not each["fits"]:
            print(
                f"{each['target']}, mesh {each['mesh']}, {each['max_tokens']:,} tokens: "
                f"{_mb(each['peak_bytes'] - each['chip_bytes'])} too much; lower data.max_tokens, raise optim.accumulate or mesh.model, "
                "set model.remat, or give more devices"
            )
    if arguments.output:
        write_content(arguments.output, (json.dumps(found, indent=1) + "\n").encode())


def _run(config: str, words: list[str]) -> RunConfig:
    made, _ = config_of(config, words)
    if not made.data.directory and made.data.source not in ("toy", "tfds"):
        made.data.directory = "."  # no text is read
    return resolve(made.to_dict())


def _sizes(text: str) -> tuple[int, int]:
    sizes = text.split(",")
    if len(sizes) != 2 or not all(each.isascii() and each.isdigit() for each in sizes):
        raise UserError(f"--vocabularies={text:.60} is no pair of numbers; give for instance 32768,32768")
    return int(sizes[0]), int(sizes[1])


def _compiled(run: RunConfig, config: ModelConfig, target: Target, length: int, top: int) -> dict[str, Any]:
    """What is known of the program for a target, as plain values."""
    data, model = run.mesh.data, run.mesh.model
    mesh = (target.number // model if data == -1 else data, target.number // data if model == -1 else model)
    program = compiled(run, config, target, length, mesh)
    inside = contents(program.text)
    operations = update_flops(config, run.optim.accumulate * program.rows, length, length)
    predicted = predict(inside, operations, target)
    transfers = sorted(inside.transfers, key=lambda each: -each.bytes)
    found: dict[str, Any] = {
        "target": target.name,
        "mesh": f"{mesh[0]}x{mesh[1]}",
        "max_tokens": run.data.max_tokens,
        "rows": program.rows,
        "fits": program.peak < target.chip.memory,
        "argument_bytes": program.arguments,
        "temporary_bytes": program.temporary,
        "peak_bytes": program.peak,
        "chip_bytes": round(target.chip.memory),
        "sent_bytes": round(sum(each.sent for each in inside.transfers)),
        "moved_bytes": inside.moved,
        "transfers": [{**vars(each), "bytes": round(each.bytes), "sent": round(each.sent)} for each in transfers],
        "products": dict(inside.products.most_common()),
        "kernels": inside.kernels,
        "bytes": round(inside.bytes),
        "open_loops": inside.open_loops,
        "largest": [vars(each) for each in inside.largest(top)],
        "compile_seconds": program.seconds,
        "operations": operations,
        "predicted_seconds": {**vars(predicted), "update": predicted.update},
    }
    log.info("%s, mesh %s: compiled in %.0f s", target.name, found["mesh"], program.seconds)
    return found


def _print(found: list[dict[str, Any]]) -> None:
    """One column for each program."""
    table = Table(box=None, header_style="", pad_edge=False)
    table.add_column("")
    for each in found:
        table.add_column(each["target"], justify="right")
    rows = {
        "mesh (data x model)": lambda each: each["mesh"],
        "tokens of an update": lambda each: f"{each['max_tokens']:,}",
        "rows of a micro-batch": lambda each: f"{each['rows']:,}",
        "fits": lambda each: "yes" if each["fits"] else "no",
        "a device: arguments": lambda each: _mb(each["argument_bytes"]),
        "a device: temporary": lambda each: _mb(each["temporary_bytes"]),
        "a device: peak, of": lambda each: f"{_mb(each['peak_bytes'])} of {_mb(each['chip_bytes'])}",
        "gathered": lambda each: _mb(each["moved_bytes"]["gathered"]),
        "reduced": lambda each: _mb(each["moved_bytes"]["reduced"]),
        "sent by a device": lambda each: _mb(each["sent_bytes"]),
        "kernels": lambda each: f"{each['kernels']:,}",
        "read and written": lambda each: _mb(each["bytes"]),
        "loops of unknown length": lambda each: str(len(each["open_loops"])),
        "operations": lambda each: f"{each['operations'] / 1e12:,.2f} T",
    }
    for name, cell in rows.items():
        table.add_row(name, *map(cell, found))
    for kinds in dict.fromkeys(kinds for each in found for kinds in each["products"]):
        table.add_row(f"products {kinds}", *(f"{each['products'].get(kinds, 0):,}" for each in found))
    for term in found[0]["predicted_seconds"]:
        table.add_row(f"predicted ms: {term}", *(f"{1e3 * each['predicted_seconds'][term]:,.2f}" for each in found))
    Console(width=200).print(table)


def _mb(size: float) -> str:
    return f"{size / 1e6:,.0f} MB"


def _print_largest(found: dict[str, Any]) -> None:
    """A line for each operation that was asked for, the largest first."""
    if not found["largest"]:
        return
    table = Table(box=None, header_style="", pad_edge=False, title=f"\n{found['target']}", title_justify="left")
    for heading, justify in (("MB", "right"), ("kernels", "right"), ("kind", "left"), ("made by", "left")):
        table.add_column(heading, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for each in found["largest"]:
        table.add_row(f"{each['bytes'] / 1e6:,.0f}", f"{each['number']:,}", each["kind"], each["made_by"])
    Console(width=200).print(table)

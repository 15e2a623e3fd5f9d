"""The modes of the command: what each does, with the options that it uses. A mode imports what it needs: some start without JAX."""

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from one_layer.cli import config_files
from one_layer.cli.given import Given
from one_layer.system.errors import UserError, counted

log = logging.getLogger(__name__)


class Mode(NamedTuple):
    """A mode's function, and the names of the options that it uses."""

    call: Callable[[Given], None]
    options: tuple[str, ...]


def _train(given: Given) -> None:
    from one_layer.runs.model_of import with_model_of
    from one_layer.runs.settings import resolve
    from one_layer.training.train import train

    folder = given.run_folder(or_ticket=False)
    if given.config is None:
        raise UserError("--config is missing; give one of configs/, for instance --config=configs/toy.py")
    words = [f"config={given.options.config}", *(f"config.{name}={value}" for name, value in given.overrides.items())]
    config = with_model_of(given.config, given.overrides.keys(), folder.path)
    train(resolve(config), folder.path, words)


def _evaluate(given: Given) -> None:
    from one_layer.runs.evaluate import evaluate

    folder = given.run_folder() if given.options.workdir else None
    if folder is not None:
        folder.check_folder()  # before anything is computed
        folder.writes = given.options.process == 0
    evaluate(given.model(), given.options.split, folder)


def _lines(given: Given) -> None:
    """Translates, classifies, continues or fills lines: what the model does must be the mode's name."""
    from one_layer.data.text.streams import check_output, read_input, write_output

    output = given.options.output
    check_output(output)  # before anything is computed
    model = given.model()
    model.check_verb(given.options.mode)  # before stdin is waited for
    if (n := given.options.n_best) is None:
        write_output(output, model.lines(read_input(given.options.input)))
        return
    model.n_best([], n)  # refuses what it cannot do, also before stdin is waited for
    found = enumerate(model.n_best(read_input(given.options.input), n))
    write_output(output, [f"{line} ||| {text} ||| {score:.4f}" for line, best in found for text, score in best])


def _export(given: Given) -> None:
    """Writes the ticket of a run into its folder, or a model into a new folder for another engine."""
    from one_layer import tickets
    from one_layer.importers import engines
    from one_layer.runs.restore import restore_run

    options = given.options
    if options.format == "ticket":
        for name in ("ticket", "output"):
            if name in given.present:
                raise UserError(
                    f"--{name} is for --format=ctranslate2 and huggingface; without --format, the ticket of a run is written into its "
                    f"folder: leave --{name} out, or give --format"
                )
        folder = given.run_folder(or_ticket=False)
        model = restore_run(folder, options.checkpoint)
        tickets.export(model, folder.ticket_in(options.precision), options.precision)
        return
    run = None if given.ticket else given.run_folder()
    output = Path(given.needed("output", f"give a new folder for --format={options.format}"))
    precision = options.precision or "float32"
    engines.check(options.format, output, precision)  # before the model is read
    model = tickets.restore_ticket(given.ticket) if run is None else restore_run(run, options.checkpoint)
    engines.export(model, options.format, output, precision)


def _page(given: Given) -> None:
    """Writes tickets as one file that computes in the browser: HTML, or an ES module for other programs."""
    from one_layer.data.text.streams import check_output, write_content
    from one_layer.page import document, module

    tickets = [Path(each) for each in given.options.ticket] or [given.run_folder().ticket_file]
    output = given.needed("output", "give the file of the page, for instance --output=page.html")
    check_output(output)
    is_module = Path(output).suffix in module.SUFFIXES
    if is_module and given.options.note:
        raise UserError(f"--note stands at the end of a page, and --output={output} is a module; leave it out")
    written = module.of_tickets(tickets) if is_module else document.of_tickets(*tickets, note=given.options.note)
    write_content(output, written)
    held = "ticket" if len(tickets) == 1 else f"{len(tickets)} tickets"
    sizes = f"{len(written):,}", held, f"{sum(each.stat().st_size for each in tickets):,}"
    log.info("%s: %s bytes with the %s of %s; %s", output, *sizes, "import it" if is_module else "open it in a browser")


def _inspect(given: Given) -> None:
    """Prints what a ticket contains."""
    from one_layer.tickets.inspection import describe, inspect

    print_text(describe(inspect(given.ticket or given.run_folder().ticket_file)))


def _report(given: Given) -> None:
    """Writes tables and figures from the folders of runs. Imports no JAX."""
    from one_layer.report.writing import report

    runs = given.needed("runs", "give the folders of runs, as a pattern")
    report(runs, Path(given.needed("workdir", "give a new folder")))


def _collect(given: Given) -> None:
    """Writes the results of runs into one file. Imports no JAX."""
    from one_layer.runs.collection import collect

    pattern, output = (
        given.needed(name, "--mode=collect needs --runs=PATTERN and --output=NAME.jsonl.zst")
        for name in ("runs", "output")
    )
    log.info("%s: %s", output, counted(collect(pattern, Path(output)), "run"))


def _keys(given: Given) -> None:
    """Prints every key of the config, its value and its meaning."""
    print_text(config_files.keys(given.config))


_TOGETHER = ("distributed", "processes", "process")
_OF_MODEL = ("config", "workdir", "checkpoint", "ticket", "ticket_mode", "engine")
MODES = {
    "train": Mode(_train, ("config", "workdir", *_TOGETHER)),
    "evaluate": Mode(_evaluate, (*_OF_MODEL, "split", *_TOGETHER)),
    "export": Mode(_export, ("workdir", "checkpoint", "ticket", "precision", "format", "output")),
    "page": Mode(_page, ("workdir", "ticket", "output", "note")),
    "inspect": Mode(_inspect, ("workdir", "ticket")),
    "report": Mode(_report, ("workdir", "runs")),
    "collect": Mode(_collect, ("runs", "output")),
    "keys": Mode(_keys, ("config",)),
}
# Of the verbs of the tasks: translate, classify, generate, fill.
LINES = Mode(_lines, (*_OF_MODEL, "input", "output", "n_best"))
NAMES = sorted({name for mode in (*MODES.values(), LINES) for name in mode.options})


def chosen(given: Given) -> Mode:
    """The mode of the command line.

    Raises: UserError for an unknown mode, and for an option that has no effect in this mode, or beside the others.
    """
    name, options, present = given.options.mode, given.options, given.present
    mode = MODES[name] if name in MODES else _of_verb(name)
    for each in present:
        if each in NAMES and each not in mode.options:
            raise UserError(f"--mode={name} has no use for --{each}; leave it out")
    if name != "page" and len(options.ticket) > 1:
        raise UserError(
            f"--ticket is given {len(options.ticket)} times, but --mode={name} takes one; only a page takes several"
        )
    if options.engine != "jax" and options.distributed:
        raise UserError(
            f"--engine={options.engine} searches on the cores of one machine, and not in several processes; leave --distributed out"
        )
    if "ticket" not in present:
        if "ticket_mode" in present:
            raise UserError("--ticket_mode needs --ticket; of a run's folder, masks are always materialized")
        return mode
    for each in ("checkpoint",) if name == "evaluate" else ("checkpoint", "workdir"):  # evaluate writes into --workdir
        if each in present:
            raise UserError(f"--{each} has no effect beside --ticket, which is the whole model; leave one of them out")
    return mode


def _of_verb(name: str) -> Mode:
    from one_layer.tasks import TASKS
    from one_layer.tasks.known import VERBS

    if name not in VERBS and name not in (verbs := [task.model.verb for task in TASKS.values()]):
        raise UserError(f"--mode={name} is unknown; known are {', '.join((*MODES, *verbs))}")
    return LINES


def print_text(text: str) -> None:
    """Prints a text in UTF-8: the terminal's encoding may lack the × and the √."""
    from one_layer.data.text.streams import check_output

    check_output("")
    sys.stdout.buffer.write(f"{text}\n".encode())
    sys.stdout.buffer.flush()

"""Beam search beside CTranslate2, on the same sentences with the same model: `launch/benchmark.py decode --peer=ctranslate2`."""

from __future__ import annotations

import dataclasses
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from launch.benchmarks.decode import longest
from launch.benchmarks.peers import Peer
from launch.benchmarks.workloads import LENGTH, PAIRS, random_ticket
from one_layer import tickets
from one_layer.data.text.lines import read_lines
from one_layer.importers import ctranslate2, engines
from one_layer.system.errors import UserError
from one_layer.tasks.model import TrainedModel
from one_layer.tasks.translation.engine import Engine
from one_layer.tasks.translation.generate import Generator, Hypothesis
from one_layer.tasks.translation.model import TranslationModel

KINDS = ("float32", "int8")
_Side = Callable[
    [], tuple[list[str], float]
]  # gives the translations as lines of tokens, and the processor time in seconds


def measure(size: str, quick: bool, ticket: Path | None, text: Path | None) -> dict[str, Any]:
    """Measures sentences per second with beams 5 and 1, in batches of 1, 8 and 32 sentences of similar length.

    The model and the text are those of a trained `ticket` and a file of raw lines. Without them, a random model of `size` translates 32
    sentences of 24 tokens, whose translations run to the longest that is allowed. All sides run in turn, CTranslate2 in a process of its
    own with as many threads as there are cores for each batch, and once more in this process, as `--engine=ctranslate2-int8` does, with a
    batch for each core. `seconds` are medians on the clock; on a busy machine, `processor_seconds` say more.
    `equal` counts the sentences whose translation is ours.

    Raises: UserError for a missing package, and for a ticket that translates nothing.
    """
    ctranslate2.import_package("--peer=ctranslate2")
    with tempfile.TemporaryDirectory() as folder:
        path = ticket or Path(folder) / "ticket.safetensors"
        if ticket is None:
            tickets.save(path, random_ticket(size))
        model = tickets.restore_ticket(path)
        if not isinstance(model, TranslationModel):
            raise UserError(f"--ticket={path} is a {model.task} model; give one that translates")
        lines = _random_lines(model) if text is None else model.assets.source_preprocessing.apply(read_lines(text))
        lines = [line for line in lines if line.strip()][: 64 if quick else None]
        ids = [model.assets.source_vocabulary.encode(line) for line in lines]
        engines.export(model, "ctranslate2", Path(folder) / "model")
        task = {
            "folder": str(Path(folder) / "model"),
            "kinds": KINDS,
            "tokens": [[model.assets.source_vocabulary.tokens[number] for number in each[:-1]] for each in ids],
            "longest": longest(max(map(len, ids))) + 1,
        }
        with Peer(peer_command(), task) as peer:
            rows = []
            for beam, batch in ((5, 8),) if quick else ((beam, batch) for beam in (5, 1) for batch in (1, 8, 32)):
                sides: dict[str, _Side] = {"one_layer": _ours(model, ids, beam, batch)}
                sides |= {f"CTranslate2 {kind}": _theirs(peer, kind, beam, batch) for kind in KINDS}
                sides["--engine=ctranslate2-int8"] = _engine(model, ids, beam, batch)
                rows += [{"beam": beam, "batch": batch, **row} for row in _rows(sides, len(ids), 1 if quick else 3)]
        about = peer.about
    return {"model": path.name if ticket else f"random {size}", "peer": about, "sentences": len(ids), "beside": rows}


def peer_command() -> list[str]:
    """The command of the peer."""
    return [sys.executable, "-m", "launch.benchmarks.ctranslate2_peer"]


def _random_lines(model: TrainedModel) -> list[str]:
    words = np.random.default_rng(0).choice(np.array(model.assets.source_vocabulary.tokens[4:]), (PAIRS, LENGTH - 1))
    return [" ".join(row) for row in words]


def _ours(model: TrainedModel, ids: list[np.ndarray], beam: int, batch: int) -> _Side:
    """This program's search. Batches are bounded by padded tokens, so that the batches of the widest sentences have `batch` rows."""
    widest = LENGTH * 2 ** max(0, int(np.ceil(np.log2(max(map(len, ids)) / LENGTH))))
    generator = Generator(model.config, dataclasses.replace(model.settings, max_tokens=batch * widest), beam)
    return _timed(model, lambda: generator(model.prepared, ids))


def _engine(model: TrainedModel, ids: list[np.ndarray], beam: int, batch: int) -> _Side:
    """CTranslate2 as this program's engine."""
    model = dataclasses.replace(model, settings=dataclasses.replace(model.settings, beam=beam))
    search = Engine("ctranslate2-int8", ctranslate2.write).opened(model, batch)
    return _timed(model, lambda: search(ids, ""))


def _timed(model: TrainedModel, search: Callable[[], list[Hypothesis]]) -> _Side:
    def translate() -> tuple[list[str], float]:
        start = time.process_time()
        found = search()
        seconds = time.process_time() - start
        return [model.assets.target_vocabulary.decode(hypothesis.tokens) for hypothesis in found], seconds

    return translate


def _theirs(peer: Peer, kind: str, beam: int, batch: int) -> _Side:
    def translate() -> tuple[list[str], float]:
        answer = peer({"kind": kind, "beam": beam, "batch": batch})
        return answer["lines"], answer["processor_seconds"]

    return translate


def _rows(sides: dict[str, _Side], sentences: int, rounds: int) -> list[dict[str, Any]]:
    """A row for each side. The first call of each compiles; it is not counted, but its translations are compared."""
    lines = {name: side()[0] for name, side in sides.items()}
    clock, processor = defaultdict(list), defaultdict(list)
    for _ in range(rounds):
        for name, side in sides.items():
            start = time.perf_counter()
            processor[name].append(side()[1])
            clock[name].append(time.perf_counter() - start)
    ours = statistics.median(processor["one_layer"])
    rows = []
    for name, each in lines.items():
        seconds = statistics.median(processor[name])
        rows.append(
            {
                "engine": name,
                "seconds": statistics.median(clock[name]),
                "processor_seconds": seconds,
                "sentences_per_processor_second": sentences / seconds,
                "times_ours": ours / seconds,
                "equal": sum(one == other for one, other in zip(each, lines["one_layer"], strict=True)),
            }
        )
    return rows

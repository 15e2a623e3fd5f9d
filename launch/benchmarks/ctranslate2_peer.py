"""Beam search in CTranslate2, which `launch/benchmark.py decode --peer=ctranslate2` measures: a peer (launch/benchmarks/peers.py)."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from typing import Any

import ctranslate2


def _threads() -> int:
    """As many as XLA has here: one for each core that the process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _translator(folder: str, kind: str) -> Any:
    return ctranslate2.Translator(folder, compute_type=kind, inter_threads=1, intra_threads=_threads())


def main() -> None:
    """Reads the task: `folder`, `kinds` of numbers, `tokens` of the sentences, and the `longest` translation. Says what runs here.

    Then it translates all sentences for each `kind`, `beam` and `batch` that it reads. It answers with the `lines` of tokens, and the
    `processor_seconds`.
    """
    task = json.loads(sys.stdin.readline())
    engines = {kind: _translator(task["folder"], kind) for kind in task["kinds"]}
    about = {"ctranslate2": ctranslate2.__version__, "threads": _threads(), "python": platform.python_version()}
    print(json.dumps(about), flush=True)
    for line in sys.stdin:
        side = json.loads(line)
        options = {"length_penalty": 1.0, "max_decoding_length": task["longest"], "max_batch_size": side["batch"]}
        start = time.process_time()
        found = engines[side["kind"]].translate_batch(task["tokens"], beam_size=side["beam"], **options)
        seconds = time.process_time() - start
        print(
            json.dumps({"lines": [" ".join(each.hypotheses[0]) for each in found], "processor_seconds": seconds}),
            flush=True,
        )


if __name__ == "__main__":
    main()

"""Peers: other programs that do the same work as a benchmark, each in a process of its own.

A peer imports and computes nothing in this process, where its threads and its memory would slow the side whose turn follows. It speaks
lines of JSON: it reads the task, answers with what it is (versions, threads), and then computes once for each name of a side that it
reads, and answers. While it waits for a line, it does nothing.
"""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from configs.common import SIZES
from launch.benchmarks import workloads
from one_layer.system.errors import UserError

_ROOT = Path(__file__).resolve().parent.parent.parent


def torch_command() -> list[str]:
    """The command of PyTorch's updates, in the Python that ONE_LAYER_TORCH names, else in this one. Raises: UserError without PyTorch."""
    python = os.environ.get("ONE_LAYER_TORCH") or (sys.executable if importlib.util.find_spec("torch") else "")
    if not python:
        raise UserError(
            "there is no PyTorch here; pip install -r requirements-torch.txt, or let ONE_LAYER_TORCH name a Python that has it"
        )
    return [python, "launch/torch_peer.py"]


def task_of(size: str, batch: Mapping[str, np.ndarray], **more: Any) -> dict[str, Any]:
    """The task of a peer: updates of a model of this size on this batch; `more` are further arguments of its `Training`."""
    arrays = {name: array.tolist() for name, array in batch.items()}
    return {"sizes": SIZES[size], "vocabularies": workloads.IWSLT14_VOCABULARIES, "batch": arrays, **more}


class Peer:
    """A running peer; `about` is what it says of itself. Use it in a `with` block, which ends it.

    Raises: UserError if the peer ends by itself, or answers with anything but JSON.
    """

    def __init__(self, command: Sequence[str], task: Any) -> None:
        waiting = {"OMP_WAIT_POLICY": "passive"}  # otherwise its threads go on spinning while it waits
        self._command, pipe = list(command), subprocess.PIPE
        self._process = subprocess.Popen(
            self._command, stdin=pipe, stdout=pipe, text=True, cwd=_ROOT, env={**os.environ, **waiting}
        )
        self.about: dict[str, Any] = self._ask(task)

    def __call__(self, side: Any) -> Any:
        """Computes `side` once: its name, or whatever JSON the peer takes for it."""
        return self._ask(side)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._process.kill()
        self._process.communicate()  # it ends with its input

    def _ask(self, question: Any) -> Any:
        assert self._process.stdin and self._process.stdout
        try:
            print(json.dumps(question), file=self._process.stdin, flush=True)
            return json.loads(self._process.stdout.readline())
        except (BrokenPipeError, ValueError):
            self._process.kill()
            raise UserError(
                f"the peer {' '.join(self._command)} gave no answer; its own error is above, if it had one"
            ) from None

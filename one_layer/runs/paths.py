"""The names of the files in a run's folder. Programs that only read them need nothing else: this module imports no JAX."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from one_layer.system.errors import UserError
from one_layer.system.files import at_home, json_object

SWEEP_FILE = "sweep.json"  # in the folder of a sweep, which `one_layer sweep` writes: its config, its name and its runs


class RunPaths:
    """The files in the folder `path` of one run; `one_layer.runs.folder.RunFolder` says what they hold."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(at_home(os.path.join(path, "")))

    def __str__(self) -> str:
        return str(self.path)

    @property
    def config_file(self) -> Path:
        """The resolved config. A folder without it holds no run."""
        return self.path / "config.json"

    @property
    def metrics_file(self) -> Path:
        """The metrics, with one JSON object per line."""
        return self.path / "metrics.jsonl"

    @property
    def identity_file(self) -> Path:
        """The fingerprints of the vocabularies, the fixed arrays and the text that the run began with."""
        return self.path / "identity.json"

    @property
    def curves_file(self) -> Path:
        """The curves of the metrics, drawn at each evaluation."""
        return self.path / "curves.svg"

    @property
    def result_file(self) -> Path:
        """The result, which is written when the run has ended."""
        return self.path / "result.json"

    @property
    def tensorboard(self) -> Path:
        """The folder for TensorBoard events."""
        return self.path / "tensorboard"

    @property
    def ticket_file(self) -> Path:
        """The ticket: the trained model in one file."""
        return self.path / "ticket.safetensors"

    def ticket_in(self, precision: str | None, layers: Mapping[str, str] | None = None) -> Path:
        """The ticket whose trained and fixed matrices have this precision; None: the one in which they were trained.

        `layers`: those that stay, by stack, if some are left out.
        """
        parts = [] if precision in (None, "float32") else [precision]
        parts += [f"{stack}-{numbers}" for stack, numbers in (layers or {}).items()]
        return self.path / f"{'-'.join(['ticket', *parts])}.safetensors"

    @property
    def frozen_file(self) -> Path:
        """Fixed arrays that no seed gives."""
        return self.path / "frozen.npz"

    @property
    def start_file(self) -> Path:
        """The trained arrays that a fine-tuned run begins with."""
        return self.path / "start.npz"

    @property
    def checkpoints_folder(self) -> Path:
        """The folder of the checkpoints; each has a folder in it, named after its update."""
        return self.path / "checkpoints"

    def hypotheses_file(self, split: str, suffix: str = "", kind: str = "plain") -> Path:
        """The hypotheses of a split; `suffix` says the checkpoint."""
        ending = ".txt" if kind == "plain" else f".{kind}.txt"
        return self.path / f"hypotheses-{_in_a_name(split)}{suffix}{ending}"

    def evaluation_file(self, split: str, suffix: str = "") -> Path:
        """The scores of a split by `--mode=evaluate`; `suffix` says the checkpoint."""
        return self.path / f"evaluation-{_in_a_name(split)}{suffix}.json"

    @property
    def holds_run(self) -> bool:
        """Whether a run has begun here."""
        return self.config_file.exists()


def _in_a_name(split: str) -> str:
    """The name of a split as a part of a file's name. A name with folders gets a digest, so that two of them stay apart."""
    if "/" not in split and "\\" not in split:
        return split
    words = re.sub(r"[^\w.]+", "-", split).strip("-.")
    return f"{words}-{hashlib.sha256(split.encode()).hexdigest()[:6]}"


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises: UserError for a file that is missing, damaged or no object."""
    try:
        return json_object(path)
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}); restore the file, or run again in a new folder") from None


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a `metrics.jsonl`; an empty list if there is no file. A last line that a kill cut short is left out.

    Raises: UserError, which names the line, for a file that is damaged.
    """
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [_read_line(path, number, line) for number, line in enumerate(lines, 1)]


def _read_line(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        values = json.loads(line)
        if not isinstance(values, dict) or not isinstance(values.get("step"), int):
            raise ValueError("it has no step")
        return values
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{path}, line {number} is damaged ({' '.join(str(error).split())}); remove the line, or the file, and run again"
        ) from None

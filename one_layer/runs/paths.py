"""The names of the files in a run's folder. Programs that only read them need nothing else: this module imports no JAX."""

import hashlib
import json
import math
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from one_layer.system.errors import UserError
from one_layer.system.files import at_home, json_object

SWEEP_FILE = "sweep.json"  # in the folder of a sweep, which `one_layer sweep` writes: its config, its name and its runs
NOT_FINITE = ("nan", "inf", "-inf")  # texts in metrics.jsonl that stand for numbers


class RunPaths:
    """The files in the folder `path` of one run; `one_layer.runs.folder.RunFolder` says what they hold."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(at_home(os.path.join(path, "")))
        self.config_file = self.path / "config.json"  # the resolved config; a folder without it holds no run
        self.metrics_file = self.path / "metrics.jsonl"  # one JSON object per line
        # The fingerprints of the vocabularies, the fixed arrays and the text that the run began with.
        self.identity_file = self.path / "identity.json"
        self.curves_file = self.path / "curves.svg"  # of the metrics, drawn at each evaluation
        self.result_file = self.path / "result.json"  # written when the run has ended
        self.tensorboard = self.path / "tensorboard"
        self.ticket_file = self.path / "ticket.safetensors"
        self.frozen_file = self.path / "frozen.npz"  # fixed arrays that no seed gives
        self.start_file = self.path / "start.npz"  # the trained arrays that a fine-tuned run begins with
        self.checkpoints_folder = self.path / "checkpoints"  # each has a folder in it, named after its update

    def __str__(self) -> str:
        return str(self.path)

    def ticket_in(self, precision: str | None) -> Path:
        """The ticket whose trained and fixed matrices have this precision; None: the one in which they were trained."""
        return self.ticket_file if precision in (None, "float32") else self.path / f"ticket-{precision}.safetensors"

    def hypotheses_file(self, split: str, suffix: str = "", kind: str = "plain") -> Path:
        """The hypotheses of a split; `suffix` says the checkpoint."""
        ending = ".txt" if kind == "plain" else f".{kind}.txt"
        return self.path / f"hypotheses-{_in_a_name(split)}{suffix}{ending}"

    def evaluation_file(self, split: str, suffix: str = "") -> Path:
        """The scores of a split by `--mode=evaluate`; `suffix` says the checkpoint."""
        return self.path / f"evaluation-{_in_a_name(split)}{suffix}.json"

    def of_end(self, tests: Iterable[str]) -> list[Path]:
        """The files that the end of a run with these test sets writes; the result last: without it, the run has not ended."""
        hypotheses = [self.hypotheses_file(split, kind=kind) for split in tests for kind in ("plain", "tokenized")]
        return [*hypotheses, self.ticket_file, self.result_file]

    @property
    def holds_run(self) -> bool:
        """Whether a run has begun here."""
        return self.config_file.exists()

    @property
    def finished(self) -> bool:
        """Whether the run has ended, so that its result can be read. The run's command writes a damaged one again."""
        try:
            return bool(json_object(self.result_file))
        except (OSError, ValueError):
            return False

    @property
    def is_of_run(self) -> bool:
        """Whether a report reads this folder. Folders of other programs have a config.json too; a damaged one is for the reader to say."""
        if self.result_file.is_file() or not self.config_file.is_file():
            return self.result_file.is_file()
        try:
            return "train" in json_object(self.config_file)
        except (OSError, ValueError):
            return True


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

    Raises: UserError, which names the line, for a file that is damaged. All values are numbers, or among `NOT_FINITE`; seconds are finite.
    """
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [_read_line(path, number, line) for number, line in enumerate(lines, 1)]


def _read_line(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        values = json.loads(line)
        if not isinstance(values, dict) or type(values.get("step")) is not int:
            raise ValueError("it has no step")
        for name, value in values.items():
            finite = type(value) in (int, float) and math.isfinite(value)
            if not (finite or (type(value) in (str, float) and str(value) in NOT_FINITE and name != "seconds")):
                raise ValueError(f"its {name} is {value!r:.100}, but must be a number")
        return values
    except (ValueError, OverflowError, RecursionError) as error:
        raise UserError(
            f"{path}, line {number} is damaged ({' '.join(str(error).split())}); remove the line, or the file, and run again"
        ) from None

"""The folder of a run: the names of its files, and the functions that check, read and write them."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import logging
import os
import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from one_layer.data.text.assets import TextAssets, load_text_assets, save_text_assets
from one_layer.errors import UserError
from one_layer.files import remove_leftovers, write_atomically
from one_layer.runs import frozen
from one_layer.runs.records import flatten
from one_layer.runs.settings import RunConfig, TrainConfig, may_change, resolve

if TYPE_CHECKING:
    from one_layer.runs.checkpoints import Checkpoints

log = logging.getLogger(__name__)

Variables = dict[str, Any]

_LOCK = ".lock"


class RunFolder:
    """The folder `path` of one run.

    | when | what |
    |---|---|
    | the run begins | vocabulary.*.txt, preprocessing.json, identity.json, frozen.npz (fixed arrays that no seed gives), config.json |
    | it trains | checkpoints/, metrics.jsonl, tensorboard/ |
    | it ends | result.json, ticket.safetensors, hypotheses-SPLIT.txt |
    | a checkpoint is evaluated | evaluation-SPLIT.json, hypotheses-SPLIT.txt; their names say what differs from result.json |

    When a run begins, config.json is written last: a folder without it holds no run.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def metrics_file(self) -> Path:
        """The metrics, with one JSON object per line."""
        return self.path / "metrics.jsonl"

    @property
    def tensorboard(self) -> Path:
        """The folder for TensorBoard events."""
        return self.path / "tensorboard"

    @property
    def ticket_file(self) -> Path:
        """The ticket: the trained model in one file."""
        return self.path / "ticket.safetensors"

    @property
    def frozen_file(self) -> Path:
        """Fixed arrays that no seed gives."""
        return self.path / "frozen.npz"

    @property
    def checkpoints_folder(self) -> Path:
        """The folder of the checkpoints; each has a folder in it, named after its update."""
        return self.path / "checkpoints"

    @property
    def holds_run(self) -> bool:
        """Whether a run has begun here."""
        return self._config_file.exists()

    @property
    def _config_file(self) -> Path:
        return self.path / "config.json"

    @property
    def _identity_file(self) -> Path:
        return self.path / "identity.json"

    def claim(self, run: RunConfig) -> bool:
        """Checks that the folder is new or holds a run with this config. Writes nothing.

        Returns: whether the folder already holds the run. Raises: UserError, which names the keys that differ.
        """
        if self.path.exists() and not self.path.is_dir():
            raise UserError(f"--workdir={self} is a file; give the name of a folder, which may be new")
        if not self.holds_run:
            if self.checkpoints_folder.exists():
                raise UserError(f"{self} holds checkpoints but no config.json; give a new --workdir")
            return False
        # Both are resolved: a key that an earlier version did not write has its default value.
        before, now = (flatten(json.loads(json.dumps(each.raw))) for each in (self.read_config(), run))
        differing = [name for name in sorted(before.keys() | now.keys()) if before.get(name) != now.get(name)]
        fatal = [name for name in differing if not may_change(name, run)]
        if fatal:
            keys = "; ".join(f"{name}: {before.get(name)!r} there, {now.get(name)!r} here" for name in fatal)
            raise UserError(
                f"{self} holds a run with another config ({keys}); give another --workdir, or the same values"
            )
        return True

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Locks the folder, so that no other process trains in it. The lock ends with the process, even after a kill.

        If the folder was created for the lock and is still empty, it is removed at the end. Raises: UserError, which names the process
        that already trains here.
        """
        new = not self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        file = self._lock_file()
        try:
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
            file.flush()
            remove_leftovers(self.path)
            yield
        finally:
            with suppress(OSError):  # the folder may be gone, and whatever ended the training matters more
                if self._is_lock(file):
                    (self.path / _LOCK).unlink()
                if new and not any(self.path.iterdir()):
                    self.path.rmdir()
            file.close()

    def _lock_file(self) -> TextIO:
        """The open lock file, locked. If another process has just unlocked and removed the file, it is created again."""
        while True:
            file = (self.path / _LOCK).open("a+", encoding="utf-8")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                holder = file.read().strip() or "another process"
                file.close()
                raise UserError(
                    f"{self} is in use: {holder} trains in it; wait for it, stop it, or give another --workdir"
                ) from None
            except OSError as error:
                if error.errno not in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
                    raise
                log.warning("%s: this file system has no locks; make sure that no other process trains there", self)
                return file
            if self._is_lock(file):
                return file
            file.close()

    def _is_lock(self, file: TextIO) -> bool:
        """Whether the open file is still the folder's lock file: somebody may have removed the folder and made it again."""
        path = self.path / _LOCK
        return path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat())

    def begin(self, assets: TextAssets, fixed: Variables, text: Mapping[str, str]) -> None:
        """Writes the files of a new run except config.json: text assets, fixed arrays by collection, and the text's fingerprints."""
        save_text_assets(assets, self.path)
        frozen.write_frozen(self.frozen_file, fixed)
        began = {**self.identity(assets), "text": dict(text)}
        write_atomically(self._identity_file, json.dumps(began, indent=1) + "\n")

    def began(self) -> dict[str, Any]:
        """The identity that the run began with: `vocabularies`, `frozen` and `text`; empty where an earlier version began it.

        Raises: UserError for a damaged file.
        """
        try:
            found = json.loads(self._identity_file.read_bytes()) if self._identity_file.exists() else {}
            if found and not (len(found["vocabularies"]) == 2 and isinstance(found["text"], dict)):
                raise ValueError("it has other content")
            return found
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(
                f"{self._identity_file} is damaged ({error}); restore it, or train in a new --workdir"
            ) from None

    def write_config(self, run: RunConfig) -> None:
        """Writes `config.json`. From then on, the folder holds this run."""
        write_atomically(self._config_file, json.dumps(run.raw, indent=1) + "\n")

    def read_config(self) -> RunConfig:
        """The config of the run. Raises: UserError if it is missing or damaged."""
        try:
            config = json.loads(self._config_file.read_text("utf-8"))
            if not isinstance(config, dict):
                raise ValueError("it is not a JSON object")
        except FileNotFoundError:
            raise UserError(
                f"{self} holds no run: there is no config.json; train first, or correct --workdir"
            ) from None
        except (OSError, ValueError) as error:
            raise UserError(
                f"{self._config_file} cannot be read ({error}); restore it, or train in a new --workdir"
            ) from None
        return resolve(config)

    def assets(self) -> TextAssets:
        """The run's vocabularies and preprocessing. Raises: UserError for a missing or damaged file."""
        return load_text_assets(self.path)

    def with_frozen(self, variables: Variables) -> Variables:
        """`variables` with the folder's fixed arrays in place of the initial ones. Raises: UserError for a file that does not fit."""
        return frozen.with_frozen(self.frozen_file, variables)

    def identity(self, assets: TextAssets) -> dict[str, Any]:
        """Fingerprints of the vocabularies and the fixed arrays. Checkpoints store them, to recognise their folder."""
        prints = [vocabulary.fingerprint for vocabulary in assets.vocabularies]
        return {"vocabularies": prints, "frozen": frozen.fingerprint(self.frozen_file)}

    def check_identity(self, progress: dict[str, Any], assets: TextAssets) -> None:
        """Checks that a checkpoint with this `progress` belongs to the folder. Raises: UserError if it does not."""
        now = self.identity(assets)
        for side, vocabulary, saved, found in zip(
            ("source", "target"), assets.vocabularies, progress["vocabularies"], now["vocabularies"], strict=True
        ):
            if found != saved:
                raise UserError(
                    f"{self.path / f'vocabulary.{side}.txt'} ({len(vocabulary):,} types) is not the {side} vocabulary that the "
                    "checkpoint was trained with: restore the run's own file, or train in a new --workdir"
                )
        if progress.get("frozen") != now["frozen"]:
            raise UserError(
                f"{self.frozen_file} is not the file that the checkpoint was made with, or should not exist; with other fixed arrays, "
                "the model is another: restore the run's own files, or train or import the model again"
            )

    def checkpoints(self, kept: TrainConfig | None = None, evaluate_every: int = 0) -> Checkpoints:
        """The run's checkpoints. `kept` says how many to keep; if it is None, they are only read."""
        from one_layer.runs.checkpoints import Checkpoints  # late: Orbax takes memory that a ticket does not need

        if kept is None:
            return Checkpoints(self.checkpoints_folder, read_only=True)
        keep_every = kept.keep_every * evaluate_every
        return Checkpoints(self.checkpoints_folder, kept.keep_last, keep_every, kept.keep_best)

    def write_scores(self, split: str, scored: str, scores: dict[str, Any]) -> None:
        """Writes `evaluation-SPLIT.json`; the name says what was `scored` unless that is the best checkpoint with the run's settings."""
        path = self.path / f"evaluation-{split}{self._suffix(scored)}.json"
        write_atomically(path, json.dumps(scores, indent=1) + "\n")

    def write_hypotheses(self, split: str, scored: str, hypotheses: Mapping[str, Iterable[str]]) -> None:
        """Writes hypotheses of the kind `plain` to `hypotheses-SPLIT.txt`. Files of other kinds have the kind's name before `.txt`."""
        for kind, lines in hypotheses.items():
            ending = ".txt" if kind == "plain" else f".{kind}.txt"
            path = self.path / f"hypotheses-{split}{self._suffix(scored)}{ending}"
            write_atomically(path, "".join(line + "\n" for line in lines))

    def _suffix(self, scored: str) -> str:
        """The part of a file's name that says what was scored. It is empty for `best`, which result.json describes, and in a folder
        without a run. A long one is cut, and its end is a digest."""
        if scored == "best" or not self.holds_run:
            return ""
        name = "-" + re.sub(r"[^\w.]+", "-", scored).strip("-.")
        return name if len(name.encode()) <= 100 else f"{name[:40]}-{hashlib.sha256(scored.encode()).hexdigest()[:12]}"

    def write_result(self, result: dict[str, Any]) -> None:
        """Writes `result.json`."""
        write_atomically(self.path / "result.json", json.dumps(result, indent=1) + "\n")

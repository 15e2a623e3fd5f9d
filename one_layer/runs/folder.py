"""The folder of a run: the functions that check, read and write its files, which `one_layer.runs.paths` names."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from one_layer.data.config import DataConfig
from one_layer.data.corpus import Corpus
from one_layer.data.text.assets import TextAssets, load_text_assets, save_text_assets
from one_layer.layers.trees import Variables
from one_layer.runs import frozen
from one_layer.runs.changes import changes, may_change
from one_layer.runs.lock import locked
from one_layer.runs.paths import RunPaths, read_object
from one_layer.runs.records import flatten
from one_layer.runs.settings import RunConfig, TrainConfig, left_open, resolve, with_values
from one_layer.system.errors import UserError
from one_layer.system.files import write_atomically, write_json
from one_layer.system.removed import without_idle

if TYPE_CHECKING:
    from one_layer.runs.checkpoints import Checkpoints


_LONGER = (
    ". {} falls to 0 at the end of its run, so the length of this run cannot change. To train longer, start anew in another --workdir with "
    "more updates, or with optim.schedule=inverse_sqrt and optim.softness=0, whose runs can be continued"
)


def _if_it_writes(method: Callable[..., None]) -> Callable[..., None]:
    """A method of `RunFolder` that does nothing in a process that does not write."""

    @wraps(method)
    def guarded(self: RunFolder, *arguments: Any, **named: Any) -> None:
        if self.writes:
            method(self, *arguments, **named)

    return guarded


class RunFolder(RunPaths):
    """The folder `path` of one run.

    | when | what |
    |---|---|
    | the run begins | vocabulary.*.txt, preprocessing.json, identity.json, frozen.npz (fixed arrays that no seed gives), config.json,
    start.npz (trained arrays of a fine-tuned run) |
    | it trains | checkpoints/, metrics.jsonl, curves.svg, tensorboard/ |
    | it ends | result.json, ticket.safetensors, hypotheses-SPLIT.txt |
    | a checkpoint is evaluated | evaluation-SPLIT.json, hypotheses-SPLIT.txt; their names say what differs from result.json |

    When a run begins, config.json is written last: a folder without it holds no run.
    """

    def __init__(self, path: str | Path, writes: bool = True) -> None:
        """Of several processes that train one run, only one `writes`; in the others, the methods that write do nothing."""
        super().__init__(path)
        self.writes = writes

    def check_folder(self) -> None:
        """Raises: UserError if the path is a file, or a folder that cannot be written to."""
        if self.path.exists() and not self.path.is_dir():
            raise UserError(f"--workdir={self} is a file; give the name of a folder, which may be new")
        if self.path.exists() and self.writes:
            try:
                tempfile.TemporaryFile(dir=self.path).close()
            except OSError as error:
                raise UserError(
                    f"--workdir={self}: {error.strerror}; give a folder and files that can be read and written"
                ) from None

    def claim(self, run: RunConfig) -> bool:
        """Checks that the folder is new or holds a run with this config. Writes nothing.

        Returns: whether the folder already holds the run. Raises: UserError, which names the keys that differ.
        """
        self.check_folder()
        if not self.holds_run:
            if self.checkpoints_folder.exists():
                raise UserError(f"{self} holds checkpoints but no config.json; give a new --workdir")
            return False
        before = flatten(self.read_config().raw)
        fatal = {name: each for name, each in changes(before, run).items() if not may_change(name, each, run)}
        if fatal:
            keys = "; ".join(f"{name}: {there!r} there, {here!r} here" for name, (there, here) in fatal.items())
            soft, schedule = run.optim.softness, run.optim.schedule
            falls = f"What optim.softness={soft} gives" if soft else f"The learning rate of optim.schedule={schedule}"
            longer = _LONGER.format(falls) if fatal.keys() <= {"train.updates", "train.epochs"} else ""
            raise UserError(
                f"{self} holds a run with another config ({keys}); give another --workdir, or the same values{longer}"
            )
        return True

    def filled(self, run: RunConfig) -> RunConfig:
        """`run` with the folder's values of the keys that it leaves open, so that a resumed run goes on with what it began with."""
        before = flatten(self.read_config().raw)
        return with_values(run, {name: before[name] for name in left_open(run)})

    def locked(self) -> AbstractContextManager[None]:
        """Locks the folder, so that no other process trains in it. Raises: UserError as `one_layer.runs.lock.locked` does."""
        return locked(self.path, "trains in it") if self.writes else nullcontext()

    @_if_it_writes
    def begin(
        self,
        assets: TextAssets,
        fixed: Variables,
        text: Mapping[str, str],
        start: Variables | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        """Writes the files of a new run except config.json: text assets, `fixed` arrays by collection, and the text's fingerprints.

        `more` is what else readers may want to know of its beginning. A fine-tuned run also has the trained arrays that it begins with, so
        that it needs the other run's folder no more: `start`.
        """
        save_text_assets(assets, self.path)
        frozen.write_frozen(self.frozen_file, fixed)
        frozen.write_frozen(self.start_file, {"params": start or {}})
        began = {**self.identity(assets), "text": dict(text), **(more or {})}
        write_json(self.identity_file, began)

    def began(self) -> dict[str, Any]:
        """What the run began with: `vocabularies`, `frozen`, `text`, `epoch_updates` and `sources` (`one_layer.runs.sources`).

        Raises: UserError for a damaged file.
        """
        found = read_object(self.identity_file) if self.identity_file.exists() else {}
        prints, text = found.get("vocabularies"), found.get("text")
        if found and not (isinstance(prints, list) and len(prints) == 2 and isinstance(text, dict)):
            raise UserError(f"{self.identity_file} has other content; restore it, or train in a new --workdir")
        return found

    @_if_it_writes
    def write_config(self, run: RunConfig) -> None:
        """Writes `config.json`. From then on, the folder holds this run."""
        write_json(self.config_file, run.raw)

    def read_config(self) -> RunConfig:
        """The config of the run. Raises: UserError if it is missing or damaged."""
        if self.path.is_file():
            raise UserError(f"{self} is a file; give the folder of a run, or a ticket as --ticket={self}")
        if not self.holds_run:
            raise UserError(f"{self} holds no run: there is no config.json; train first, or correct --workdir")
        return resolve(without_idle(read_object(self.config_file)))

    def assets(self) -> TextAssets:
        """The run's vocabularies and preprocessing. Raises: UserError for a missing or damaged file."""
        return load_text_assets(self.path)

    def with_frozen(self, variables: Variables) -> Variables:
        """`variables` with the folder's fixed arrays in place of the initial ones. Raises: UserError for a file that does not fit."""
        return frozen.with_frozen(self.frozen_file, variables)

    def with_start(self, variables: Variables, fine_tuned: bool) -> Variables:
        """`variables` as the run begins: with its fixed arrays and, if it is `fine_tuned`, with the arrays that it took over.

        Raises: UserError for a file that is missing or does not fit.
        """
        begun = self.with_frozen(variables)
        if not fine_tuned:
            return begun
        if not self.start_file.exists():
            raise UserError(f"{self.start_file} is missing; restore it, or train in a new --workdir")
        return frozen.with_frozen(self.start_file, begun)

    def identity(self, assets: TextAssets) -> dict[str, Any]:
        """Fingerprints of the vocabularies and the fixed arrays. Checkpoints store them, to recognise their folder."""
        prints = [vocabulary.fingerprint for vocabulary in assets.vocabularies]
        return {"vocabularies": prints, "frozen": frozen.fingerprint(self.frozen_file)}

    def check_identity(self, progress: Mapping[str, Any], assets: TextAssets) -> None:
        """Checks that a checkpoint with this `progress` belongs to the folder. Raises: UserError if it does not."""
        self.check_vocabularies(progress, assets)
        if progress.get("frozen") != frozen.fingerprint(self.frozen_file):
            raise UserError(
                f"{self.frozen_file} is not the file that the checkpoint was made with, or should not exist; with other fixed arrays, "
                "the model is another: restore the run's own files, or train or import the model again"
            )

    def check_vocabularies(self, began: Mapping[str, Any], assets: TextAssets) -> None:
        """Checks that the vocabularies are those with which a run `began`. Raises: UserError if they are not."""
        for side, vocabulary, saved in zip(
            ("source", "target"), assets.vocabularies, began["vocabularies"], strict=True
        ):
            if vocabulary.fingerprint != saved:
                raise UserError(
                    f"{self.path / f'vocabulary.{side}.txt'} ({len(vocabulary):,} types) is not the {side} vocabulary that the "
                    "checkpoint was trained with: restore the run's own file, or train in a new --workdir"
                )

    def check_beginning(self, began: Mapping[str, Any], corpus: Corpus, data: DataConfig) -> None:
        """Checks that the folder and the text are those that the run began with. Raises: UserError if not."""
        self.check_identity(began, corpus)
        for part, now in corpus.fingerprints().items():
            if began["text"].get(part) != now:
                raise UserError(
                    f"the {data.describe(part)} is not the text that this run began with; restore the run's own text, or train in a new "
                    "--workdir"
                )

    def checkpoints(self, kept: TrainConfig | None = None) -> Checkpoints:
        """The run's checkpoints. `kept` says how many to keep; if it is None, they are only read."""
        from one_layer.runs.checkpoints import Checkpoints  # late: Orbax takes memory that a ticket does not need

        if kept is None:
            return Checkpoints(self.checkpoints_folder, read_only=True)
        return Checkpoints(self.checkpoints_folder, kept.keep_last)

    @_if_it_writes
    def write_scores(self, split: str, scored: str, scores: dict[str, Any]) -> None:
        """Writes `evaluation-SPLIT.json`; the name says what was `scored` unless that is the best checkpoint with the run's settings."""
        write_json(self.evaluation_file(split, self._suffix(scored)), scores)

    @_if_it_writes
    def write_hypotheses(self, split: str, scored: str, hypotheses: Mapping[str, Iterable[str]]) -> None:
        """Writes hypotheses of the kind `plain` to `hypotheses-SPLIT.txt`. Files of other kinds have the kind's name before `.txt`."""
        for kind, lines in hypotheses.items():
            path = self.hypotheses_file(split, self._suffix(scored), kind)
            write_atomically(path, "".join(line + "\n" for line in lines))

    def _suffix(self, scored: str) -> str:
        """The part of a file's name that says what was scored. It is empty for `best`, which result.json describes. In a folder without a
        run, it is the engine alone, if there is one. One that is long, or may have the name of another, is cut and ends in a digest."""
        if not self.holds_run:
            scored = (re.findall(r"\bengine=\S+$", scored) or ["best"])[0]
        if scored == "best":
            return ""
        name = "-" + re.sub(r"[^\w.]+", "-", scored).strip("-.")
        if len(name.encode()) <= 100 and re.fullmatch(r"[\w.:=-]+( \w+=(?!-)[\w.-]*)*", scored):
            return name
        return f"{name[:40]}-{hashlib.sha256(scored.encode()).hexdigest()[:12]}"

    @_if_it_writes
    def write_result(self, result: dict[str, Any]) -> None:
        """Writes `result.json`."""
        write_json(self.result_file, result)

"""What a command line gives: options, a run's folder, a model, and keys of the config."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from one_layer.cli.config_files import config_of
from one_layer.cli.options import parser
from one_layer.cli.overrides import keys_given
from one_layer.system.errors import UserError

if TYPE_CHECKING:
    from one_layer.runs.folder import RunFolder
    from one_layer.tasks.model import TrainedModel


@dataclass(frozen=True)
class Given:
    """`options` has the value of each option, and `present` the names of those that are given.

    `config` is the config, as nested plain values, if there is one; `overrides` are the keys that the words give, by dotted names.
    """

    options: argparse.Namespace
    present: list[str]
    config: dict[str, Any] | None
    overrides: dict[str, Any]

    @classmethod
    def by(cls, words: Sequence[str], documentation: str | None = None) -> Given:
        """What these words give; help shows the `documentation`. Raises: UserError for words or a config that mean nothing."""
        options, rest = parser(documentation).parse_known_args(words)
        names = [word.split("=")[0] for word in words]
        present = [name for name in vars(options) if f"--{name}" in names]
        for name in present:
            value = getattr(options, name)
            if name != "note" and "" in (value if isinstance(value, list) else [value]):
                raise UserError(
                    f"--{name} is empty, as an unset variable of the shell is; give its value, or leave it out"
                )
            if name != "ticket" and names.count(f"--{name}") > 1:
                several = (
                    "; a folder, or a pattern in quotation marks, stands for several runs" if name == "runs" else ""
                )
                raise UserError(f"--{name} is given more than once; give it once{several}")
        for word in rest:
            if word.lstrip("-")[:1].isalpha() and word.startswith("-") and not keys_given([word]):
                raise _unknown(word.partition("=")[0], list(vars(options)))
        if options.config is not None:
            config, overrides = config_of(options.config, rest)
            return cls(options, present, config.to_dict(), overrides)
        if keys_given(rest):
            raise UserError(
                f"{rest[0]} needs --config; give one of configs/, for instance --config=configs/text.py:signs_mini"
            )
        if rest:
            raise UserError(f"unexpected argument {rest[0]!r}; give every option as --name=value")
        return cls(options, present, None, {})

    def needed(self, name: str, what: str) -> str:
        """The value of an option. Raises: UserError if it is not given, with `what` to give."""
        value: str | None = getattr(self.options, name)
        if not value:
            raise UserError(f"--{name} is missing; {what}")
        return value

    @property
    def ticket(self) -> str:
        """The one ticket that --ticket names; empty if it is not given."""
        return next(iter(self.options.ticket), "")

    def run_folder(self, or_ticket: bool = True) -> RunFolder:
        """The folder that --workdir names. Raises: UserError if it is not given. `or_ticket`: a ticket would do too."""
        from one_layer.runs.folder import RunFolder

        what = f"give the folder of the run{', or a ticket as --ticket=FILE' if or_ticket else ''}"
        return RunFolder(self.needed("workdir", what))

    def model(self) -> TrainedModel:
        """The model of the ticket or checkpoint. If a config is given, its section `evaluation` replaces the model's."""
        mesh = {name.removeprefix("mesh."): value for name, value in self.overrides.items() if name.startswith("mesh.")}
        if self.ticket:
            from one_layer.tickets import restore_ticket

            for name in mesh:
                raise UserError(
                    f"--config.mesh.{name} has no effect beside --ticket, whose model is on one device; leave it out"
                )
            found = restore_ticket(self.ticket, packed=self.options.ticket_mode == "packed")
        else:
            from one_layer.runs.restore import restore_run

            found = restore_run(self.run_folder(), self.options.checkpoint, mesh)
        if self.config is not None:
            from one_layer.runs.rescoring import rescored

            found = rescored(found, self.config, self.overrides)
        if self.options.engine == "jax":
            return found
        from one_layer.importers.ctranslate2 import searching

        return searching(found, self.options.engine)


def _unknown(word: str, known: list[str]) -> UserError:
    """The mistake of an option that does not exist."""
    name = word.lstrip("-")
    if name in ("gpu", "gpus", "device", "devices", "cuda", "cpu", "accelerator"):
        return UserError(
            f"{word} is unknown, and not needed: what JAX finds is used, and the log says what that is. For NVIDIA GPUs, "
            "pip install -r requirements-cuda.txt; JAX_PLATFORMS=cpu in the environment leaves them alone"
        )
    near = difflib.get_close_matches(name, known, 1)
    return UserError(f"{word} is unknown; {f'did you mean --{near[0]}?' if near else '--help tells of all options'}")

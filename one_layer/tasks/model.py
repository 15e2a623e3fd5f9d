"""A trained model, loaded from a run folder or a ticket, and its Python interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import jax

from one_layer.data.config import DataConfig
from one_layer.data.corpus import Split
from one_layer.data.text.assets import TextAssets
from one_layer.layers.matrix import computing, materialize
from one_layer.models import ModelConfig
from one_layer.models.sharding import Devices
from one_layer.supermask import Supermask
from one_layer.system.errors import UserError

if TYPE_CHECKING:
    from one_layer.tasks.protocol import Task

Variables = dict[str, Any]


@dataclass(frozen=True, eq=False)
class TrainedModel(ABC):
    """A network with its variables, its text assets and its task's settings; `one_layer.load` makes one.

    `variables` are the network's own, or those that `materialize` or a ticket gives. `step` is the update that they belong to; for an
    average, the last of its updates. `source` says where they come from: for instance `best`, `last` or the path of a ticket.
    `file_bytes` is the size of the ticket, and `ticket_checkpoint` the name of the checkpoint that it was made of, empty where it is not
    known; of a checkpoint, the size is None. `trained_with` is the resolved config of the run, as far as it is known.
    """

    task: Task
    config: ModelConfig
    seed: int
    step: int
    data: DataConfig
    settings: Any
    assets: TextAssets
    variables: Variables
    source: str
    trained_with: dict[str, Any]
    file_bytes: int | None = None
    ticket_checkpoint: str = ""

    verb: ClassVar[str]  # what the model does with raw lines; also the name of the command line's mode

    @property
    def main_score(self) -> str:
        """The name of the score, among those of `score`, by which checkpoints are compared (higher is better); empty for none."""
        return ""

    @abstractmethod
    def lines(self, lines: Iterable[str]) -> list[str]:
        """Returns one output line for each raw line, in order. The mode with the name `verb` writes these lines."""

    def lines_of_tokens(self, lines: list[str]) -> list[str]:
        """The same for lines that are prepared as the training text was; so are the lines that it returns. Raises: UserError by default."""
        raise UserError(f"a {self.task.name} model returns no lines of tokens; give it raw text")

    @abstractmethod
    def score(self, split: Split, title: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """Scores a split. Returns the scores, and the hypotheses by kind: `plain`, and others that the task keeps; none for a text.

        Also logs the scores under `title`. Raises: UserError if the model's outputs are not finite.
        """

    def given(self, lines: Iterable[str]) -> list[str]:
        """The texts that the model was given, as a list.

        Raises: UserError for anything but texts, and for one text by itself, each letter of which would pass for a line.
        """
        example = f'give a list of texts, for instance {self.verb}(["two dogs"])'
        if isinstance(lines, (str, bytes)) or not isinstance(lines, Iterable):
            raise UserError(f"{lines!r:.60} is no list of texts; {example}")
        texts = list(lines)
        for number, text in enumerate(texts, start=1):
            if not isinstance(text, str):
                raise UserError(f"text {number} of the list is {text!r:.60}, which is no text; {example}")
        return texts

    def check_verb(self, verb: str) -> None:
        """Raises: UserError if `verb` is not what this model does."""
        if verb != self.verb:
            raise UserError(f"this is a {self.task.name} model, which does not {verb}; give --mode={self.verb}")

    @cached_property
    def prepared(self) -> Variables:
        """The variables with all masks applied to their weights, computed once."""
        return prepared(self.config, self.variables)


def prepared(config: ModelConfig, variables: Variables) -> Variables:
    """`variables` with all masks applied to their weights, in the type that the model computes in.

    Without scores, they are returned unchanged and not copied.
    """
    leaves = jax.tree_util.tree_leaves_with_path(variables["params"])
    scored = any(path[-1].key == "scores" for path, _ in leaves)
    return _materialized(variables, config.supermask, config.dtype, Devices.holding(variables)) if scored else variables


@partial(jax.jit, static_argnames=("mask", "dtype", "devices"))
def _materialized(variables: Variables, mask: Supermask, dtype: str, devices: Devices) -> Variables:
    return devices.for_computing(computing(materialize(variables, mask, devices.selecting(mask)), dtype))

"""A trained model: what a run folder or a ticket becomes, and the Python interface to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import jax

from one_layer.data.config import DataConfig
from one_layer.data.corpus import Split
from one_layer.data.text.assets import TextAssets
from one_layer.errors import UserError
from one_layer.layers.matrix import materialize
from one_layer.models import ModelConfig

if TYPE_CHECKING:
    from one_layer.tasks.protocol import Task

Variables = dict[str, Any]


@dataclass(frozen=True, eq=False)
class TrainedModel(ABC):
    """A network with its variables, its text assets and its task's settings; `one_layer.load` makes one.

    `variables` are the network's, or what `materialize` or a ticket makes of them. `step` is the update that they are of (the last
    one of an average). `source` says where they come from: `best`, `last`, the path of a ticket. `trained_with` is the resolved
    config of the run, as far as it is known.
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

    verb: ClassVar[str]  # what it does with raw lines, and the name of the mode that does it

    @abstractmethod
    def lines(self, lines: Sequence[str]) -> list[str]:
        """Raw lines in, one line out for each of them, in order; what `--mode` with the name `verb` writes."""

    @abstractmethod
    def score(self, split: Split, title: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """The scores of a part of the corpus, and the hypotheses by their kind: `plain`, and what else is worth keeping.

        They are logged under `title` too. Raises: UserError where the model's numbers are not finite.
        """

    def serve(self, verb: str, lines: Sequence[str]) -> list[str]:
        """What `lines` gives. Raises: UserError where this is not what the model does."""
        if verb != self.verb:
            raise UserError(
                f"{self.source} is a {self.task.name} model, which does not {verb}; give --mode={self.verb}"
            )
        return self.lines(lines)

    @cached_property
    def prepared(self) -> Variables:
        """The variables with all masks multiplied out, once."""
        return prepared(self.config, self.variables)


def prepared(config: ModelConfig, variables: Variables) -> Variables:
    """`variables` with the masks multiplied out; as they are, and not copied, where there are no scores to select by."""
    leaves = jax.tree_util.tree_leaves_with_path(variables["params"])
    scored = any(path[-1].key == "scores" for path, _ in leaves)
    return _materialize(variables, mask=config.supermask) if scored else variables


_materialize = jax.jit(materialize, static_argnames="mask")

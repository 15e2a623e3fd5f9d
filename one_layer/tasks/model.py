"""A trained model, loaded from a run folder or a ticket, and its Python interface."""

from __future__ import annotations

import dataclasses
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import numpy as np

from one_layer.data.config import DataConfig
from one_layer.data.corpus import Split
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.preprocess import LABEL
from one_layer.layers.beside import BESIDE
from one_layer.layers.materializing import computing, materialize
from one_layer.layers.quantization import Precisions, quantized
from one_layer.layers.trees import Variables
from one_layer.models import ModelConfig, by_role
from one_layer.models.sharding import Devices
from one_layer.supermask import Supermask
from one_layer.system.errors import UserError
from one_layer.tasks.known import VERBS

Writer = Callable[["TrainedModel", Path, str], None]  # of a model into a folder, with matrices of a precision


def not_finite(does: str) -> UserError:
    """The mistake of a checkpoint that diverged. `does`: what was asked of it."""
    return UserError(f"the model's logits are not finite: this checkpoint cannot {does}; use another")


class _OtherVerb(UserError, AttributeError):
    """A mistake of the user that Python's `hasattr` understands too."""


@dataclass(frozen=True, eq=False, repr=False)
class TrainedModel(ABC):
    """A network with its variables, its text assets and its task's settings; `one_layer.load` makes one.

    `variables` are the network's own; those of a ticket, and of a copy with other masks, have masks as bits in the place of scores. With
    `packed`, masks stay bits while the model computes. `step` is the update that the variables belong to; for an average, the last of its
    updates. `source` says where they come from: for instance `best`, `last` or the path of a ticket.
    `file_bytes` is the size of the ticket, and `ticket_checkpoint` the name of the checkpoint that it was made of, empty where it is not
    known; of a checkpoint, the size is None. `trained_with` is the resolved config of the run, as far as it is known. `engine` is the name
    of the program that computes in the place of this one, on raw lines and splits; empty for none.
    """

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
    packed: bool = False
    engine: str = ""

    task: ClassVar[str]  # the name of its task in `one_layer.tasks.TASKS`, which users give as `task`
    verb: ClassVar[str]  # what the model does with raw lines; also the name of the command line's mode

    def __repr__(self) -> str:
        from one_layer.models.accounting import ticket_bytes

        config, masks = self.config, self.config.supermask
        kept = f"keep {masks.keep}" if masks.exact else masks.selection
        bytes_ = (
            f"{ticket_bytes(config):,} bytes in a ticket" if self.file_bytes is None else f"{self.file_bytes:,} bytes"
        )
        languages = " to ".join(each for each in dict.fromkeys(self.assets.languages) if each != LABEL)
        return (
            f"<{type(self).__name__}: {config.network_family.describe(config)}, {languages}; width {config.d_model}, feed-forward width "
            f"{config.ffn}, {config.heads} heads; {config.weights}{f', {kept}' if config.masked else ''}; {bytes_}; {self.source}, "
            f"update {self.step}>"
        )

    # The parts of the model by role, for instance `encoder/ffn/in` (`one_layer.models.by_role`). The arrays can only be read.

    @cached_property
    def masks(self) -> Mapping[str, np.ndarray]:
        """The masks by role, int8 [fan_in, fan_out], or [layers, fan_in, fan_out] where each layer has its own; none in a dense model."""
        return by_role.masks(self.config, self.variables)

    @cached_property
    def random(self) -> Mapping[str, np.ndarray]:
        """The matrices that are never trained, by role: drawn from the seed, or pre-trained. The first axis is as in `masks`."""
        return by_role.matrices(self.config, self.variables, "random", "frozen")

    @cached_property
    def scores(self) -> Mapping[str, np.ndarray]:
        """The scores by role, in the shapes of `masks`. Raises: UserError for a ticket, and for a copy with other masks."""
        if "packed" in self.variables:
            raise UserError(
                f"{self.source} has no scores, because a ticket keeps only the masks that they give; load the folder of the run instead"
            )
        return by_role.matrices(self.config, self.variables, "params", leaf="scores")

    def with_masks(self, masks: Mapping[str, Any]) -> TrainedModel:
        """A copy that computes with other masks: those of `masks` by role, and this model's for other roles.

        It shares the compiled programs of this model. Masks may keep any number of weights. Raises: UserError for an unknown role, a wrong
        shape, and values that masks of `model.selection` do not have.
        """
        if not isinstance(masks, Mapping):
            raise UserError(
                f"{masks!r:.60} gives no masks by role; give them as a dict, for instance with_masks({{role: 1 - mask for role, mask in "
                "model.masks.items()})"
            )
        changed = by_role.with_masks(self.config, self.variables, masks)
        copy = dataclasses.replace(self, variables=changed, source=f"{self.source} with other masks", file_bytes=None)
        programs = {name: value for name, value in vars(self).items() if name.startswith("_")}
        vars(copy).update(programs)
        return copy

    def with_engine(self, name: str, write: Writer) -> TrainedModel:
        """A copy for which another program computes, from a folder that `write` writes. Raises: UserError where there is none."""
        raise UserError(f"--engine={name} is for translation, and this is a {self.task} model; leave it out")

    @abstractmethod
    def lines(self, lines: Iterable[str]) -> list[str]:
        """Returns one output line for each raw line, in order. The mode with the name `verb` writes these lines."""

    def lines_of_tokens(self, lines: list[str]) -> list[str]:
        """The same for lines that are prepared as the training text was; so are the lines that it returns. Raises: UserError by default."""
        raise UserError(f"a {self.task} model returns no lines of tokens; give it raw text")

    def n_best(self, lines: Iterable[str], n: int = 1) -> list[list[tuple[str, float]]]:
        """The `n` best outputs of each raw line, with their scores, best first. Raises: UserError where lines have one output."""
        raise UserError(f"--n_best is for translation, and this is a {self.task} model; leave it out")

    @abstractmethod
    def score(self, split: Split, title: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """Scores a split. Returns the scores, and the hypotheses by kind: `plain`, and others that the task keeps; none for a text.

        Also logs the scores under `title`. Raises: UserError if the model's outputs are not finite.
        """

    def given(self, lines: Iterable[Any]) -> list[str]:
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
            if half := re.search("[\ud800-\udfff]", text):
                raise UserError(
                    f"text {number} of the list has half of a surrogate pair, {half.group()!r}, which is no character; leave it out"
                )
        return texts

    if not TYPE_CHECKING:  # a type checker shall go on to find misspelt names

        def __getattr__(self, name: str) -> Any:
            """Raises: _OtherVerb for what models of other tasks do, and AttributeError for any other name."""
            if name in VERBS:
                raise _OtherVerb(f"this is a {self.task} model, which does not {name}; call {self.verb}([...])")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def check_verb(self, verb: str) -> None:
        """Raises: UserError if `verb` is not what this model does."""
        if verb != self.verb:
            raise UserError(f"this is a {self.task} model, which does not {verb}; give --mode={self.verb}")

    @cached_property
    def prepared(self) -> Variables:
        """The variables with all masks applied to their weights, computed once."""
        return self.variables if self.packed else prepared(self.config, self.variables)


def prepared(config: ModelConfig, variables: Variables) -> Variables:
    """`variables` with all masks applied to their weights, and all trained arrays as a ticket of the model's precisions holds them, in
    the type that the model computes in.

    Without masks and in float32, they are returned unchanged and not copied.
    """
    leaves = jax.tree_util.tree_leaves_with_path(variables["params"])
    masked = "packed" in variables or any(path[-1].key in ("scores", *BESIDE) for path, _ in leaves)
    if not masked and config.precisions == Precisions():
        return variables
    devices = Devices.holding(variables)
    return _program(config.supermask, config.dtype, config.precisions, devices)(variables)


@lru_cache(maxsize=8)  # a run prepares variables of the same shapes at every evaluation
def _program(mask: Supermask, dtype: str, precisions: Precisions, devices: Devices) -> Callable[[Variables], Variables]:
    def materialized(variables: Variables) -> Variables:
        made = materialize(quantized(variables, precisions), mask, devices.selecting(mask), packed=True)
        return devices.for_computing(computing(made, dtype))

    return jax.jit(materialized)

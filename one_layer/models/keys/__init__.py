"""The keys of a model's settings, as users type them: one frozen record, and what follows from it without knowing any network.

The record is flat, but each file here has the keys of one subject, with their checks. Each of its classes adds its keys to those of the
class before: `shape`, `masks`, `initialisation`, `blocks`, `tables`, `reservoirs`, `precision`. configs/common.py says what each key means.
What fits a family of networks is checked by the family (`one_layer.models.families`), and what fits a stack of layers where the stack is
made (`one_layer.models.layers`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from one_layer.layers.freezing import Freezing
from one_layer.models.keys.masks import MASKS
from one_layer.models.keys.precision import PrecisionKeys

__all__ = ["FOR_TRAINING", "MASKS", "MODEL_KEYS", "ModelKeys"]


@dataclass(frozen=True)
class ModelKeys(PrecisionKeys):
    """All keys (paper A, section 4; arXiv 2012.15045). `one_layer.models.ModelConfig` is the record of checked keys that others use.

    Keys that are None follow from `weights`, `init_preset` and others: see `follows`.
    """

    train_only: str = ""
    freeze: str = ""

    def __post_init__(self) -> None:
        followed = {name: value for name, value in self.follows().items() if getattr(self, name) is None}
        for name, value in followed.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_followed", frozenset(followed))

    @property
    def freezing(self) -> Freezing:
        """Which parts are trained."""
        return Freezing(self.train_only, self.freeze)


# Keys that the sections `train` and `optim` give, and all that users do not give in the section `model`: text and task decide the others.
FOR_TRAINING = ("backskip", "train_only", "freeze")
_DECIDED = ("source_vocab", "target_vocab", "family", *FOR_TRAINING)
MODEL_KEYS = tuple(each.name for each in fields(ModelKeys) if each.name not in _DECIDED)

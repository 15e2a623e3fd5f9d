"""The keys of a model's settings, as users type them: one frozen record, and what follows from it without knowing any network.

The record is flat, but each file here has the keys of one subject, with their checks. Each of its classes adds its keys to those of the
class before: `shape`, `masks`, `blocks`, `tables`, and here those of reservoirs and precisions. configs/common.py says what each key
means. What fits a family of networks is checked by the family (`one_layer.models.families`), and what fits a stack of layers where the
stack is made (`one_layer.models.config`).
"""

from dataclasses import dataclass, fields

from one_layer.layers.freezing import Freezing
from one_layer.layers.quantization import PRECISIONS, Precisions
from one_layer.layers.settings import BLOCKS
from one_layer.models.keys.masks import MASKS
from one_layer.models.keys.shape import one_of
from one_layer.models.keys.tables import TableKeys
from one_layer.system.errors import UserError

__all__ = ["FOR_TRAINING", "MASKS", "MODEL_KEYS", "ModelKeys"]


@dataclass(frozen=True)
class ModelKeys(TableKeys):
    """All keys (paper A, section 4; arXiv 2012.15045). `one_layer.models.ModelConfig` is the record of checked keys that others use.

    Keys that are None follow from `weights`, `init_preset` and others: see `follows`. `dtype` is that of the computation. The precisions
    are those in which training and tickets see arrays. With `remat`, the backward pass computes some values again. A reservoir (the letter
    R) that is a `gru` or `conv` sees both sides in encoders, and the past alone in decoders; `backskip` says how gradients pass through it
    (arXiv 2012.15045).
    """

    reservoir: str = one_of(*BLOCKS)
    backskip: str = "off"
    dtype: str = one_of("float32", "bfloat16")
    trained_precision: str = one_of(*PRECISIONS)
    vector_precision: str = one_of(*PRECISIONS)
    remat: bool = False
    train_only: str = ""
    freeze: str = ""

    def __post_init__(self) -> None:
        followed = {name: value for name, value in self.follows().items() if getattr(self, name) is None}
        for name, value in followed.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_followed", frozenset(followed))

    def check(self) -> None:
        """Raises: UserError as `ShapeKeys.check` does."""
        super().check()
        if self.backskip not in ("off", "identity", "policy"):
            raise UserError(f"train.backskip is {self.backskip!r:.200}; known are off, identity and policy")
        if self.backskip != "off" and not any("R" in string for string in self.strings.values()):
            raise UserError(
                f"train.backskip is {self.backskip!r:.200}, but neither model.encoder_layers nor model.decoder_layers has a reservoir "
                "(R); give a layer string with R, or train.backskip=off"
            )

    @property
    def precisions(self) -> Precisions:
        """In which precisions training and tickets see the trained and fixed arrays."""
        return Precisions(self.trained_precision, self.vector_precision)

    @property
    def freezing(self) -> Freezing:
        """Which parts are trained."""
        return Freezing(self.train_only, self.freeze)


# Keys that the sections `train` and `optim` give, and all that users do not give in the section `model`: text and task decide the others.
FOR_TRAINING = ("backskip", "train_only", "freeze")
_DECIDED = ("source_vocab", "target_vocab", "family", *FOR_TRAINING)
MODEL_KEYS = tuple(each.name for each in fields(ModelKeys) if each.name not in _DECIDED)

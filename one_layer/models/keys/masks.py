"""The masks of random matrices, and what is trained beside them."""

from dataclasses import dataclass, fields
from functools import cached_property

from one_layer.layers.beside import ADAPTERS, GAINS
from one_layer.models.keys.shape import ShapeKeys, one_of
from one_layer.own_selection import is_own, own_class
from one_layer.supermask import SELECTIONS, Supermask
from one_layer.system.errors import UserError


@dataclass(frozen=True)
class MaskKeys(ShapeKeys):
    """How masks are selected, and what is trained beside them."""

    selection: str = "magnitude"
    keep: float = 0.5
    threshold: float = 0.0
    dynamic_scale: bool = False
    gains: str = one_of(*GAINS)
    adapter_rank: int = 0

    @cached_property
    def supermask(self) -> Supermask:
        """How the scores of every matrix become its mask."""
        kind = own_class(self.selection) if is_own(self.selection) else Supermask
        return kind(self.keep, self.selection, self.threshold, self.dynamic_scale)

    @property
    def beside(self) -> tuple[str, ...]:
        """The arrays that are trained beside the masks of layers (`one_layer.layers.beside`)."""
        return (*GAINS[self.gains], *ADAPTERS[: 2 * bool(self.adapter_rank)])

    def check(self) -> None:
        """Raises: UserError as `ShapeKeys.check` does."""
        super().check()
        if not is_own(self.selection) and self.selection not in SELECTIONS:
            raise UserError(
                f"model.selection is {self.selection!r:.200}; known are {', '.join(SELECTIONS)}, and module:Class for one's own"
            )
        if not 0.0 < self.keep <= 1.0:
            raise UserError(
                f"model.keep is {self.keep}; it must lie in (0, 1], as the fraction of the weights that masks keep"
            )
        self._check_selection()
        if not 0 <= self.adapter_rank <= self.d_model:
            raise UserError(
                f"model.adapter_rank is {self.adapter_rank}; it must lie in [0, model.d_model {self.d_model}]"
            )
        for key, value, none in (("gains", self.gains, "none"), ("adapter_rank", self.adapter_rank, 0)):
            if value != none and not (self.masked or self.shares_trained):
                raise UserError(
                    f"model.{key} is {value!r}, but model.weights is dense, whose matrices are trained themselves; leave model.{key} "
                    "out, or give model.sharing=weights, with which all layers share theirs"
                )

    def _check_selection(self) -> None:
        if self.selection == "sigmoid_threshold" and not 0.0 < self.threshold < 1.0:
            raise UserError(
                f"model.threshold is {self.threshold}; it is compared with a sigmoid, so it must lie in (0, 1), for instance 0.5"
            )
        if self.selection == "sign" and self.keep != 1.0:
            raise UserError(f"model.selection='sign' drops no weight: give model.keep=1 (it is {self.keep})")
        if self.selection == "signed_threshold" and not self.threshold >= 0.0:
            raise UserError(
                f"model.selection='signed_threshold' needs a model.threshold of at least 0 (it is {self.threshold})"
            )
        if self.dynamic_scale and -1 in self.supermask.values:
            raise UserError(
                f"model.dynamic_scale counts ones, and model.selection={self.selection!r:.200} has -1 too: give model.dynamic_scale=False"
            )


MASKS = tuple(each.name for each in fields(MaskKeys) if each.name not in ShapeKeys.__dataclass_fields__)

"""In which precision arrays are computed with, trained and stored, and what the backward pass computes again."""

from __future__ import annotations

from dataclasses import dataclass

from one_layer.layers.quantization import PRECISIONS, Precisions
from one_layer.models.keys.choices import check_known
from one_layer.models.keys.reservoirs import ReservoirKeys


@dataclass(frozen=True)
class PrecisionKeys(ReservoirKeys):
    """`dtype` is that of the computation. The precisions are those in which training and tickets see arrays."""

    dtype: str = "float32"
    trained_precision: str = "float32"
    vector_precision: str = "float32"
    remat: bool = False

    @property
    def precisions(self) -> Precisions:
        """In which precisions training and tickets see the trained and fixed arrays."""
        return Precisions(self.trained_precision, self.vector_precision)

    def check(self) -> None:
        """Raises: UserError as `ShapeKeys.check` does."""
        super().check()
        known = {
            "dtype": ("float32", "bfloat16"),
            "trained_precision": PRECISIONS,
            "vector_precision": PRECISIONS,
        }
        check_known(self, known)

"""A prediction of the time of one update: a roofline (Williams et al. 2009) from what a compiled program has and what a chip can do.

Nobody has measured these programs on these chips. Real programs reach neither the peak of the products nor that of the memory, so an update
takes longer than its prediction; the terms say which limit comes first.
"""

from dataclasses import dataclass

from one_layer.ahead.chips import Target
from one_layer.ahead.contents import Contents


@dataclass(frozen=True)
class Prediction:
    """Seconds of one update: its products, the memory that kernels read and write, transfers and starts of kernels."""

    products: float
    memory: float
    wire: float
    launches: float

    @property
    def update(self) -> float:
        """All of it. Products and memory overlap, so the longer of the two counts; the other terms are added."""
        return max(self.products, self.memory) + self.wire + self.launches


def predict(contents: Contents, operations: float, target: Target) -> Prediction:
    """The roofline of an update with `operations` in its products on all devices together."""
    chip = target.chip
    wide = sum(number for kinds, number in contents.products.items() if "f32" in kinds.partition(" ->")[0])
    share = wide / max(1, contents.products.total())  # of products with a float32 factor
    rate = 1 / ((1 - share) / chip.operations + share / chip.float32_operations)
    return Prediction(
        products=operations / target.number / rate,
        memory=contents.bytes / chip.bandwidth,
        wire=sum(
            each.sent / (chip.network if each.leaves(chip.together) else chip.link) for each in contents.transfers
        ),
        launches=contents.kernels * chip.launch,
    )

"""What a reservoir is (the letter R of layer strings), and how gradients pass through it (arXiv 2012.15045)."""

from __future__ import annotations

from dataclasses import dataclass

from one_layer.layers.settings import BLOCKS
from one_layer.models.keys.choices import check_known, refuse_if
from one_layer.models.keys.tables import TableKeys


@dataclass(frozen=True)
class ReservoirKeys(TableKeys):
    """A `gru` or `conv` sees both sides in encoders, and the past alone in decoders."""

    reservoir: str = "transformer"
    reservoir_conv: str = "dynamic"
    reservoir_width: int = 7
    backskip: str = "off"

    def check(self) -> None:
        """Raises: UserError as `ShapeKeys.check` does."""
        super().check()
        check_known(self, {"reservoir": BLOCKS, "reservoir_conv": ("lightweight", "dynamic")})
        refuse_if(
            not 1 <= self.reservoir_width < 2**10,
            f"model.reservoir_width is {self.reservoir_width}; it must be a number of positions from 1 to 1023",
        )
        refuse_if(
            self.backskip not in ("off", "identity", "policy"),
            f"train.backskip is {self.backskip!r:.200}; known are off, identity and policy",
        )
        refuse_if(
            self.backskip != "off" and not any("R" in string.upper() for string in self.strings.values()),
            f"train.backskip is {self.backskip!r:.200}, but neither model.encoder_layers nor model.decoder_layers has a reservoir "
            "(R); give a layer string with R, or train.backskip=off",
        )

"""How random matrices are drawn."""

from __future__ import annotations

from dataclasses import dataclass

from one_layer.initializers import SCHEMES
from one_layer.models.keys.choices import check_known
from one_layer.models.keys.masks import MaskKeys


@dataclass(frozen=True)
class InitialisationKeys(MaskKeys):
    """Preset `paper` follows the text of paper A, and `reference` its code, which also draws rows of zeros for pad.

    `init_embedding` can give random tables another scheme than `init_scheme`.
    """

    init_preset: str = "paper"
    init_scheme: str = "kaiming_uniform"
    init_attention: str | None = None
    init_embedding: str = ""
    scale_by_keep: bool | None = None

    @property
    def reference(self) -> bool:
        """Whether values begin as in the paper's code."""
        return self.init_preset == "reference"

    def follows(self) -> dict[str, object]:
        """The values of keys that were not given."""
        return {
            **super().follows(),
            "init_attention": "xavier" if self.reference else "scheme",
            "scale_by_keep": not (self.reference or self.dynamic_scale),  # each makes up for what masks leave out
        }

    def check(self) -> None:
        """Raises: UserError as `ShapeKeys.check` does."""
        super().check()
        known = {
            "init_preset": ("paper", "reference"),
            "init_scheme": tuple(SCHEMES),
            "init_attention": ("scheme", "xavier", "xavier_constant"),
            "init_embedding": ("", *SCHEMES),
        }
        check_known(self, known)

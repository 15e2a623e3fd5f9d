"""The CPU devices that are here, in the place of described ones: what is compiled for them needs no package."""

from dataclasses import replace
from typing import Any

import jax

from one_layer.ahead.chips import CHIPS, Target


class Here(Target):
    """One CPU device."""

    def devices(self) -> Any:
        return jax.devices()[:1]


HERE = Here("here", replace(CHIPS["v5e"], platform="cpu"), 1)

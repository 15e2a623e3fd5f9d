"""The settings of classification."""

from __future__ import annotations

from dataclasses import dataclass

from one_layer.system.errors import UserError


@dataclass(frozen=True)
class LabellingSettings:
    """`max_tokens`: the most padded tokens of a batch; `buckets`: the number of padded lengths. Raises: UserError for values below 1."""

    max_tokens: int = 4096
    buckets: int = 4

    def __post_init__(self) -> None:
        for name in ("max_tokens", "buckets"):
            if getattr(self, name) < 1:
                raise UserError(f"evaluation.{name} is {getattr(self, name)}; it must be at least 1")

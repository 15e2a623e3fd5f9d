"""The settings of classification."""

from __future__ import annotations

from dataclasses import dataclass

from one_layer.system.errors import check_least


@dataclass(frozen=True)
class LabellingSettings:
    """`max_tokens`: the most padded tokens of a batch; `buckets`: the number of padded lengths. Raises: UserError for values below 1."""

    max_tokens: int = 4096
    buckets: int = 4

    def __post_init__(self) -> None:
        check_least("evaluation", self, max_tokens=1, buckets=1)

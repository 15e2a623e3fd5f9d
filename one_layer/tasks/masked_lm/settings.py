"""The settings of a masked language model: how it is scored."""

from __future__ import annotations

from dataclasses import dataclass

from one_layer.system.errors import check_least


@dataclass(frozen=True)
class MaskedSettings:
    """`max_tokens`: tokens of a batch; `valid_tokens`: tokens of the validation text that are scored in training (0: all).

    Raises: UserError for a value out of range.
    """

    max_tokens: int = 4096
    valid_tokens: int = 0

    def __post_init__(self) -> None:
        check_least("evaluation", self, max_tokens=1, valid_tokens=0)

"""The settings of beam search."""

import math
from dataclasses import dataclass

from one_layer.system.errors import UserError, check_least

TOKENIZERS = ("13a", "zh", "char", "intl", "ja-mecab", "ko-mecab", "flores101", "flores200", "none")  # of sacreBLEU


@dataclass(frozen=True)
class SearchSettings:
    """configs/common.py comments on every key. Raises: UserError for a value out of range."""

    beam: int = 5
    valid_beam: int = 1
    length_penalty: float = 1.0
    max_length_a: float = 1.2
    max_length_b: int = 10
    max_tokens: int = 4096
    buckets: int = 4
    tokenize: str = ""

    def __post_init__(self) -> None:
        check_least("evaluation", self, beam=1, valid_beam=0, max_tokens=1, buckets=1)
        if self.tokenize not in ("", *TOKENIZERS):
            raise UserError(
                f"evaluation.tokenize is {self.tokenize!r:.60}; give one of {', '.join(TOKENIZERS)}, or leave it empty"
            )
        if not 0 <= self.length_penalty < math.inf:
            raise UserError(f"evaluation.length_penalty is {self.length_penalty}; it must be a number of at least 0")
        for name, least, most in (("max_length_a", 0, 1000), ("max_length_b", 1, 10**6)):
            if not least <= getattr(self, name) <= most:
                raise UserError(f"evaluation.{name} is {getattr(self, name)}; it must lie in [{least}, {most:,}]")

    def longest(self, length: int) -> int:
        """The most tokens of a translation, without eos. `length` counts the source's tokens with eos, as in fairseq."""
        return int(self.max_length_a * length + self.max_length_b)

"""The settings of a causal language model: how it is scored, and how it writes."""

from __future__ import annotations

from dataclasses import dataclass

from one_layer.system.errors import UserError, check_least

_LEAST_TEMPERATURE = 1e-6  # but for 0; logits are divided by it, in float32


@dataclass(frozen=True)
class LanguageModelSettings:
    """configs/common.py comments on every key.

    `stride`, `valid_tokens` and `max_tokens` are for scoring: tokens between two windows, tokens of the validation text that are scored in
    training (0: all), and tokens of a batch. The others are for sampling; `top_k` 0 and `top_p` 1 leave no token out, and
    `temperature` 0 always takes the most probable one. Raises: UserError for a value out of range.
    """

    stride: int = 256
    valid_tokens: int = 0
    max_tokens: int = 4096
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    sample_length: int = 200
    sample_seed: int = 1

    def __post_init__(self) -> None:
        check_least("evaluation", self, stride=1, max_tokens=1, sample_length=1, valid_tokens=0, top_k=0, sample_seed=0)
        if self.sample_seed >= 2**32:
            raise UserError(f"evaluation.sample_seed is {self.sample_seed}; it must be below 2**32")
        if self.temperature != 0.0 and not _LEAST_TEMPERATURE <= self.temperature < float("inf"):
            raise UserError(
                f"evaluation.temperature is {self.temperature}; it must be 0, which takes the most probable token, or a number of at "
                f"least {_LEAST_TEMPERATURE:g}"
            )
        if not 0.0 < self.top_p <= 1.0:
            raise UserError(f"evaluation.top_p is {self.top_p}; it must lie in (0, 1], where 1 leaves no token out")

"""How much memory and time a ticket may ask for, reckoned from its settings before anything is made.

A few kilobytes can describe a model of any depth and a search of any width. What no honest ticket comes near is refused. Bounds that
depend on the size of the file are in `one_layer.tickets.content`.
"""

from __future__ import annotations

from one_layer.errors import UserError
from one_layer.models.config import ModelConfig
from one_layer.runs.settings import EvaluationConfig

_MOST_LAYERS = 256  # of a stack: each may have random matrices of its own, and a cache
_MOST_TYPES = 2**20  # of a vocabulary, whose words are objects of Python
_LONG_LINE, _SHORT_LINE = 256, 16  # tokens
_MOST_BYTES = {
    "line": 2**31,
    "batch": 2**37,
}  # of a long line; of as many short ones as a batch has, which the user must give
_MOST_OPERATIONS = 2**43  # of a long line


def check_work(config: ModelConfig, evaluation: EvaluationConfig) -> None:
    """Raises: UserError that says what is too much."""
    for name, most in (
        *((f"{stack}_layers", _MOST_LAYERS) for stack in ("encoder", "decoder")),
        *((f"{side}_vocab", _MOST_TYPES) for side in ("source", "target")),
    ):
        if (value := getattr(config, name)) > most:
            raise UserError(f"model.{name} is {value:,}; a ticket's is at most {most:,}")
    search = "" if config.classifies else f" with evaluation.beam {evaluation.beam:,}"
    lines = max(1, evaluation.max_tokens // _SHORT_LINE)
    for what, size in (
        ("line", line_bytes(config, evaluation, _LONG_LINE)),
        ("batch", lines * line_bytes(config, evaluation, _SHORT_LINE)),
    ):
        if size > _MOST_BYTES[what]:
            raise UserError(
                f"its model{search} would take {size:,} bytes for a {what}, of which a ticket may ask for {_MOST_BYTES[what]:,}"
            )
    if (operations := line_operations(config, evaluation, _LONG_LINE)) > _MOST_OPERATIONS:
        raise UserError(
            f"its model{search} would take {operations:,} operations for a line, of which a ticket may ask for {_MOST_OPERATIONS:,}"
        )


def line_bytes(config: ModelConfig, evaluation: EvaluationConfig, tokens: int) -> int:
    """About the memory, in bytes, of translating or classifying a line: caches, and the largest of what is computed at a time."""
    c, longest = config, _longest(evaluation, tokens)
    encoder = tokens * (8 * c.d_model + c.ffn + c.heads * tokens)
    if c.classifies:
        return 4 * encoder
    memory = tokens * 2 * c.decoder_layers * c.d_model
    cache = longest * 2 * c.decoder_layers * c.d_model
    step = 2 * c.target_vocab + c.ffn + c.heads * (longest + tokens)
    return 4 * (
        encoder + memory + longest * c.d_model + evaluation.beam * (2 * cache + step)
    )  # beams change places in a copy


def line_operations(config: ModelConfig, evaluation: EvaluationConfig, tokens: int) -> int:
    """About the multiplications and additions of translating or classifying a line to the greatest length."""
    c, longest = config, _longest(evaluation, tokens)
    attention, feed_forward = 4 * c.d_model**2, 2 * c.d_model * c.ffn
    encoder = 2 * tokens * c.encoder_layers * (attention + feed_forward + 2 * tokens * c.d_model)
    if c.classifies:
        return encoder
    decoder = c.decoder_layers * (2 * attention + feed_forward + 2 * (longest + tokens) * c.d_model)
    return encoder + 2 * longest * evaluation.beam * (decoder + c.target_vocab * c.d_model)


def _longest(evaluation: EvaluationConfig, tokens: int) -> int:
    """The places of a hypothesis of a line, the first eos among them."""
    return int(evaluation.max_length_a * tokens + evaluation.max_length_b) + 1

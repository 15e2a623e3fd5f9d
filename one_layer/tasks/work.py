"""Estimates of the memory and time that one line takes, from settings alone. They limit what a ticket from a stranger may demand.

Every layer counts as one with attention; a reservoir takes less, or not much more.
"""

from typing import NamedTuple

from one_layer.layers.settings import BLOCK
from one_layer.models import ModelConfig


class Work(NamedTuple):
    """Bytes of memory, and the number of multiplications and additions."""

    bytes: int
    operations: int


def encoder_work(config: ModelConfig, tokens: int) -> Work:
    """The work of the encoder for a line of `tokens` tokens."""
    c = config
    kept = tokens * (8 * c.d_model + c.ffn + c.heads * tokens)
    return Work(4 * kept, 2 * tokens * c.depth("encoder") * _layer(c, 1, tokens))


def decoder_work(config: ModelConfig, tokens: int) -> Work:
    """The work of a decoder alone that reads or writes `tokens` tokens one by one."""
    c, layers = config, config.depth("decoder")
    kept = tokens * (2 * layers * c.d_model + c.d_model) + 2 * c.target_vocab + c.ffn + c.heads * tokens
    return Work(4 * kept, 2 * tokens * (layers * _layer(c, 1, tokens) + c.target_vocab * c.d_model))


def search_work(config: ModelConfig, tokens: int, beam: int, longest: int) -> Work:
    """The work of an encoder and of a beam search to `longest` tokens, for a line of `tokens` tokens.

    Every beam attends to the entries of all beams and hides those that are not its own past (see `one_layer.models.decoding`), so memory
    and time grow with the square of the beam.
    """
    c, encoder = config, encoder_work(config, tokens)
    positions = -(-longest // BLOCK) * BLOCK
    memory, cache = (places * 2 * c.depth("decoder") * c.d_model for places in (tokens, positions))
    hypotheses = 5 * positions  # tokens and their log p, of the alive and of the finished ones; and ancestors
    step = 2 * c.target_vocab + c.ffn + c.heads * (2 * BLOCK * beam + tokens)
    kept = memory + longest * c.d_model + beam * (cache + hypotheses + step)
    visible = positions * beam**2  # of one byte each
    seen = beam * (longest + BLOCK) // 2 + tokens  # entries that a query attends to, in the mean over all steps
    multiplied = c.depth("decoder") * _layer(c, 2, seen) + c.target_vocab * c.d_model
    return Work(encoder.bytes + 4 * kept + visible, encoder.operations + 2 * longest * beam * multiplied)


def _layer(config: ModelConfig, attentions: int, seen: int) -> int:
    """The multiplications for a token in a layer with one attention or two, which attend to `seen` entries in all."""
    return 4 * attentions * config.d_model**2 + 2 * config.d_model * config.ffn + 2 * seen * config.d_model

"""Beam search under its public name."""

from one_layer.tasks.translation.beam_search import beam_search

__all__ = ["beam_search"]

"""Masked language modelling: an encoder predicts the tokens of a text that were masked, from those around them."""

from one_layer.tasks.masked_lm.model import MaskedLM

__all__ = ["MaskedLM"]

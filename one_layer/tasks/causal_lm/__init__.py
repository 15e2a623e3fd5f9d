"""Causal language modelling: a decoder alone predicts each byte, character or piece of a text from those before it."""

from one_layer.tasks.causal_lm.model import CausalLM

__all__ = ["CausalLM"]

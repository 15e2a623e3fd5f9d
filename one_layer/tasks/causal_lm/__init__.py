"""Causal language modelling: a decoder alone predicts each byte, character or piece of a text from those before it."""

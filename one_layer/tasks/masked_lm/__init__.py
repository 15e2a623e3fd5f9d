"""Masked language modelling: an encoder predicts the tokens of a text that were masked, from those around them."""

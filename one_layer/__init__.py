"""Supermasks over one random Transformer layer, in JAX and Flax."""

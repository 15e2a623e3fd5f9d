"""Text, vocabularies and batches: NumPy only, no JAX."""

"""Flax modules of which networks are built.

`matrix` has trained, random and masked matrices and what uses one: projections, embeddings and norms. `attention` is multi-head
attention, `blocks` the encoder and decoder layer, and `stack` scans one layer with many masks. `materializing` multiplies masks with their
matrices beforehand.
"""

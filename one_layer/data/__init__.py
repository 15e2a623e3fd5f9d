"""Data: from raw text to batches of token ids, with NumPy alone and without JAX.

`config` says which corpus a run reads, `corpus` reads it, `tokens` stores its ids and `batches` makes padded batches.
`text` converts between text and tokens, `sources` reads the formats of corpora, `preparation` handles large corpora.
"""

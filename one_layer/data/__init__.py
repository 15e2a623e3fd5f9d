"""Data: from raw text to batches of token ids, with NumPy alone and without JAX.

`config` says which corpus a run reads, `loading` reads it by a `reader`, `corpus` has its records, `tokens` stores its ids and `batches`
makes padded batches. `stream_corpus` and `stream` do the same for language models.
`text` converts between text and tokens, `sources` reads the formats of corpora, `preparation` handles large corpora.
"""

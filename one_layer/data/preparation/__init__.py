"""Preparation of large corpora, with little memory.

It offers downloading and checking of archives (`archives`), parallel processes (`parallel`, `streaming`, `spill`), stored token ids
(`store`), and what preparations of published corpora have in common (`published`).
"""

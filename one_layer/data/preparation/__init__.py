"""Preparation of large corpora, with little memory.

It offers downloading and checking of archives (`archives`), extraction of their text (`markup`), parallel processes (`parallel`,
`streaming`, `spill`), stored token ids (`store`) and manifests (`manifest`).
"""

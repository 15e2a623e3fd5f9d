"""Text: converts raw lines to tokens and back.

It offers line reading (`lines`), all steps together (`preprocess`), pieces that hold their spaces (`metaspace`), Moses tokenisation
(`moses`), learning BPE codes (`bpe_learning`), GPT-2's byte-level BPE (`byte_level`), vocabularies, and the files that a run keeps of them
(`assets`).
"""

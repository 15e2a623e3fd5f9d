"""Translation: beam search, BLEU, and the translation model as Python and the command line use it."""

from one_layer.tasks.translation.task import Translation

__all__ = ["Translation"]

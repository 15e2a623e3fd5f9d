"""Translation: beam search, BLEU, and the trained translation model that Python and the command line use."""

from one_layer.tasks.translation.task import Translation

__all__ = ["Translation"]

"""Classification of texts and pairs of texts: the files and scores of GLUE tasks, and the trained classifier that users call."""

from one_layer.tasks.classification.task import Classification

__all__ = ["Classification"]

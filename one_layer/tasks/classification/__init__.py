"""Classification of texts and pairs of texts: the GLUE tasks' files and measures, and the classifier as it is used."""

from one_layer.tasks.classification.task import Classification

__all__ = ["Classification"]

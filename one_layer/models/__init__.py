"""The models: what they are (`ModelConfig`), how they compute (`build`) and where their weights come from (`initialize`)."""

from one_layer.models.classifier import Classifier
from one_layer.models.config import ModelConfig
from one_layer.models.translation import Transformer
from one_layer.models.weights import initialize, pretrained_tables, random_collection, recipes, shapes

__all__ = [
    "Classifier",
    "ModelConfig",
    "Transformer",
    "build",
    "initialize",
    "pretrained_tables",
    "random_collection",
    "recipes",
    "shapes",
]


def build(config: ModelConfig) -> Transformer | Classifier:
    """The module; `build(config).apply(variables, source, target_in)` gives logits [batch, target length, target vocab].

    A classifier's `apply(variables, source)` gives logits [batch, labels].
    """
    return Classifier(config) if config.classifies else Transformer(config)

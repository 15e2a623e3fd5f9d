"""Whole networks: `ModelConfig` describes one, `build` makes its Flax module and `initialize` its variables.

Every network belongs to a family (`one_layer.models.families`): a translation model (encoder and decoder), or a classifier (encoder
and head).
"""

from typing import Any

from one_layer.models.classifier import Classifier
from one_layer.models.config import ModelConfig
from one_layer.models.translation import Transformer
from one_layer.models.weights import abstract, initialize, pretrained_tables, random_collection, recipes, roles, shapes

__all__ = [
    "Classifier",
    "ModelConfig",
    "Transformer",
    "abstract",
    "build",
    "initialize",
    "pretrained_tables",
    "random_collection",
    "recipes",
    "roles",
    "shapes",
]


def build(config: ModelConfig) -> Any:
    """The Flax module of the config's family.

    For a translation model, `build(config).apply(variables, source, target_in)` gives logits [batch, target length, target vocab]. For
    a classifier, `apply(variables, source)` gives logits [batch, labels].
    """
    return config.network_family.network(config)

"""Whole networks: what they are (`ModelConfig`), how they compute (`build`) and where their weights come from (`initialize`).

A network belongs to a family (`one_layer.models.families`): an encoder and a decoder that translate, or an encoder with a head.
"""

from typing import Any

from one_layer.models.classifier import Classifier
from one_layer.models.config import ModelConfig
from one_layer.models.translation import Transformer
from one_layer.models.weights import initialize, pretrained_tables, random_collection, recipes, roles, shapes

__all__ = [
    "Classifier",
    "ModelConfig",
    "Transformer",
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

    A translation model's `build(config).apply(variables, source, target_in)` gives logits [batch, target length, target vocab], a
    classifier's `apply(variables, source)` gives logits [batch, labels].
    """
    return config.network_family.network(config)

"""The Flax module of each family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from one_layer.models.causal import CausalModel
from one_layer.models.classifier import Classifier
from one_layer.models.config import ModelConfig
from one_layer.models.masked import MaskedModel
from one_layer.models.translation import Transformer

# By the names in `one_layer.models.families.FAMILIES`.
NETWORKS: dict[str, Callable[[ModelConfig], Any]] = {
    "translation": Transformer,
    "classifier": Classifier,
    "decoder": CausalModel,
    "masked_lm": MaskedModel,
}

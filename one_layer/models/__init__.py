"""Whole networks: `ModelConfig` describes one, `build` makes its Flax module and `initialize` its variables.

Every network belongs to a family (`one_layer.models.families`): a translation model (encoder and decoder), a classifier (encoder and
head), a causal language model (decoder alone), or a masked language model (encoder, and a head for the masked tokens).
"""

from typing import Any

from one_layer.models.config import ModelConfig
from one_layer.models.weights import abstract, initialize, pretrained_tables, recipes, roles, shapes

__all__ = ["ModelConfig", "abstract", "build", "initialize", "pretrained_tables", "recipes", "roles", "shapes"]


def build(config: ModelConfig) -> Any:
    """The Flax module of the config's family. `build(config).apply(variables, ...)` gives logits, float32.

    - `translation`: `apply(variables, source, target_in)` gives [batch, target length, target vocab].
    - `classifier`: `apply(variables, source)` gives [batch, labels].
    - `decoder`: `apply(variables, tokens)` gives [batch, length, target vocab], for the token after each token.
    - `masked_lm`: `apply(variables, source, places)` gives [batch, places, source vocab], for the tokens at these places.
    """
    from one_layer.models.networks import NETWORKS  # the networks need Flax, and much else here does not

    return NETWORKS[str(config.family)](config)

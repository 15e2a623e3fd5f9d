"""A tiny model in RoBERTa's format: its options, its tokens and its tensors."""

import numpy as np

from one_layer.data.text import byte_level
from one_layer.data.text.units import MASK
from one_layer.data.text.vocabulary import SPECIALS

MERGES = "#version: 0.2\nĠ t\nĠt h\nĠth e\n"
TOKENS = (*SPECIALS, *byte_level.pieces(MERGES), MASK)
D, FFN, LAYERS, ROWS = 8, 12, 2, 18
OPTIONS = {
    **{"architectures": ["RobertaForMaskedLM"], "model_type": "roberta", "vocab_size": len(TOKENS)},
    **{"hidden_size": D, "intermediate_size": FFN, "num_attention_heads": 2, "num_hidden_layers": LAYERS},
    **{"max_position_embeddings": ROWS, "layer_norm_eps": 1e-3, "hidden_dropout_prob": 0.2, "type_vocab_size": 1},
    **{"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "hidden_act": "gelu"},
}
CLASSIFIER = {"architectures": ["RobertaForSequenceClassification"], "classifier_dropout": None}
HEADS = {"lm_head": {"dense": D, "layer_norm": None}, "classifier": {"dense": D, "out_proj": 2}}


def tensors(head="lm_head"):
    """All tensors of a RoBERTa, by the names that Hugging Face gives them."""
    random, found, tokens = np.random.default_rng(1), {}, len(TOKENS)

    def add(name, *shape):
        found[name] = random.normal(0, 0.3, shape).astype(np.float32)

    for name, rows in {"word": tokens, "position": ROWS, "token_type": 1}.items():
        add(f"roberta.embeddings.{name}_embeddings.weight", rows, D)
    projections = {f"attention.self.{name}": (D, D) for name in ("query", "key", "value")}
    projections |= {"attention.output.dense": (D, D), "intermediate.dense": (FFN, D), "output.dense": (D, FFN)}
    names = {f"roberta.encoder.layer.{layer}.{name}": s for layer in range(LAYERS) for name, s in projections.items()}
    for name, features in HEADS.get(head, {}).items():
        names |= {f"{head}.{name}": (features, D)} if features else {}
    for name, shape in names.items():
        add(f"{name}.weight", *shape)
        add(f"{name}.bias", shape[0])
    norms = [
        f"roberta.encoder.layer.{layer}.{name}" for layer in range(LAYERS) for name in ("attention.output", "output")
    ]
    norms = [f"{name}.LayerNorm" for name in (*norms, "roberta.embeddings")]
    for name in (*norms, *(["lm_head.layer_norm"] if head == "lm_head" else [])):
        add(f"{name}.weight", D)
        add(f"{name}.bias", D)
    if head == "lm_head":
        add("lm_head.bias", tokens)
    return found

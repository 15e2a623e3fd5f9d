"""What the log of fine-tuning says of keys by which the same arrays compute other numbers."""

from __future__ import annotations

import numpy as np

from one_layer.layers.trees import flatten_dict
from one_layer.models import ModelConfig, build
from one_layer.tasks.model import prepared
from one_layer.training.other_function import other_function
from tests.tiny_tickets import trained


def test_every_key_that_changes_what_taken_arrays_compute_is_listed_and_no_other():
    """Each change is told exactly if it changes the logits that the same arrays give."""
    base = {"weights": "dense", "d_model": 8, "ffn": 12, "heads": 2, "encoder_layers": "LRL", "decoder_layers": 1}
    config, masked = ModelConfig(9, 9, **base), ModelConfig(9, 9, **{**base, "weights": "one_layer", "keep": 0.6})
    masks = {"keep": 0.3, "selection": "score", "coats": 2}
    changes = {"dtype": "bfloat16", "trained_precision": "int4", "vector_precision": "int4", "layerdrop": 0.1}
    changes |= {"dropout": 0.3, "score_init": "constant", "remat": True, "threshold": 0.02}
    text = np.array([[5, 6, 7, 8]])
    for first, changed in ((config, changes | {"encoder_layers": "LLR"}), (masked, changes | masks)):
        variables = trained(first)
        taken = {path: np.asarray(leaf) for path, leaf in flatten_dict(variables["params"]).items()}
        for key, value in changed.items():
            second = first.replace(**{key: value})
            ours, theirs = (build(each).apply(prepared(each, variables), text, text) for each in (first, second))
            told = [line.split()[0] for line in other_function(second, first, taken)]
            assert told == [f"model.{key}"] * (not np.array_equal(ours, theirs)), key

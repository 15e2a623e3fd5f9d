"""The numbers of the paper's own code: outputs, loss, gradients of every score, and what its beam search finds."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from flax.traverse_util import flatten_dict

from one_layer.losses import label_smoothed_nll
from one_layer.models import build
from tests import golden

CLOSE = {"atol": 1e-5, "rtol": 1e-5}


@pytest.fixture(scope="module", params=["masked_pr0.5", "fully_weighted"])
def case(request, shared):
    arrays = golden.read(shared / "golden" / f"{request.param}.npz")
    config = golden.model_config(masked=request.param.startswith("masked"))
    variables = golden.variables(arrays, config)
    model = build(config)
    source, target_in = arrays["in/src_tokens"], arrays["in/prev_output_tokens"]

    def loss(params):
        logits, state = model.apply({**variables, "params": params}, source, target_in, mutable=["intermediates"])
        total, nll, tokens = label_smoothed_nll(logits, arrays["in/target"], 0.1)
        return total, (nll, tokens, logits, state["intermediates"])

    (total, rest), gradients = jax.jit(jax.value_and_grad(loss, has_aux=True))(variables["params"])
    return arrays, total, rest, gradients


def test_loss_and_logits(case):
    arrays, total, (nll, tokens, logits, _), _ = case
    np.testing.assert_allclose(logits, arrays["out/logits"], **CLOSE)
    np.testing.assert_allclose(total, arrays["out/loss"], **CLOSE)
    np.testing.assert_allclose(nll, arrays["out/nll_loss"], **CLOSE)
    assert tokens == arrays["in/ntokens"]


def test_every_layer(case):
    arrays, _, (_, _, _, intermediates), _ = case
    for name, theirs in zip(intermediates["input"], ("encoder", "decoder"), strict=True):
        np.testing.assert_allclose(name, arrays[f"out/{theirs}_input"], **CLOSE)
    for stack in ("encoder", "decoder"):
        outputs = intermediates[stack]["layers"]["output"][0]
        for layer in range(3):
            np.testing.assert_allclose(outputs[layer], arrays[f"out/{stack}_layer_{layer}"], **CLOSE)


def test_every_gradient(case):
    arrays, _, _, gradients = case
    found = flatten_dict(gradients)
    assert len(found) >= 18
    for path, gradient in found.items():
        np.testing.assert_allclose(gradient, golden.find(arrays, path, "grad/"), **CLOSE, err_msg="/".join(path))

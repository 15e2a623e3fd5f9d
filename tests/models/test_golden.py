"""The numbers of the paper's own code: outputs, loss, gradients of every score, and what its beam search finds."""

import jax
import numpy as np
import pytest
from flax.traverse_util import flatten_dict

from one_layer.layers.materializing import materialize
from one_layer.models import build
from one_layer.tasks.losses import label_smoothed_nll
from one_layer.tasks.translation.generate import search
from tests import golden, mostly_slow

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


SEARCHES = {
    "masked_pr0.5": {"beam5_lenpen1.0": ("beam5_lenpen1.0", (3, 7)), "beam1_lenpen1.0": ("beam5_lenpen1.0", (7,))},
    "fully_weighted": {"beam5_lenpen1.0": ("beam5_lenpen1.0_fully_weighted", (5,))},
}

_EVERY = [(model, setting) for model in SEARCHES for setting in SEARCHES[model]]


def beam_search(config, variables, source, beam):
    """As the reference runs it: max_len_a 1.2 of the padded width, max_len_b 10, length penalty 1."""
    options = {"beam": beam, "max_length": int(1.2 * source.shape[1] + 10), "length_penalty": 1.0}
    return jax.device_get(jax.jit(lambda tokens: search(config, variables, tokens, **options))(source))


def assert_found(found, arrays, prefix, rows):
    """Every hypothesis of the golden sentences `rows` is that of the same row of `found`: tokens exactly."""
    for row, golden_row in enumerate(rows):
        lengths = arrays[f"{prefix}/lengths"][golden_row]
        assert found.lengths[row].tolist() == lengths.tolist()
        assert np.count_nonzero(found.lengths[row]) == arrays[f"{prefix}/n_hypotheses"][golden_row]
        np.testing.assert_allclose(found.scores[row], arrays[f"{prefix}/scores"][golden_row], **CLOSE)
        for n, length in enumerate(lengths):
            expected = arrays[f"{prefix}/tokens"][golden_row, n, :length]
            np.testing.assert_array_equal(found.tokens[row, n, :length], expected)


@pytest.mark.parametrize("case", mostly_slow(_EVERY, _EVERY[:1]), ids="-".join)
def test_every_hypothesis_of_beam_search(shared, case):
    """In one left-padded batch, and alone without padding, where a hypothesis may be less long."""
    model, setting = case
    file, alone = SEARCHES[model][setting]
    arrays, beam = golden.read(shared / "golden" / f"{file}.npz"), int(setting[4])
    config = golden.model_config(masked=model.startswith("masked"))
    variables = golden.variables(golden.read(shared / "golden" / f"{model}.npz"), config)
    variables = jax.jit(materialize, static_argnums=1)(variables, config.supermask)
    source, lengths = arrays["in/src_tokens"], arrays["in/src_lengths"]
    batch = beam_search(config, variables, source, beam)
    assert_found(batch, arrays, f"{setting}/batch", range(len(source)))
    assert_found(batch, arrays, f"{setting}/single", [0])  # the longest has no padding in the batch either
    for row in alone:
        found = beam_search(config, variables, source[row : row + 1, -lengths[row] :], beam)
        assert_found(found, arrays, f"{setting}/single", [row])

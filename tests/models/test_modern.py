"""The modern block: RMSNorm, rotary positions, SwiGLU and no biases, beside the papers' block."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer.layers.attention import rotated
from one_layer.models import ModelConfig, build, initialize, shapes
from one_layer.tasks.model import prepared
from tests.compiling import jit
from tests.models.test_translation import SOURCE, token_by_token

pytestmark = pytest.mark.slow

MODERN = {"d_model": 8, "ffn": 12, "heads": 2, "block": "modern", "norm_position": "pre"}
ALONE = {"encoder_layers": 0, "family": "decoder"}
DENSE = ModelConfig(20, 20, **MODERN, **ALONE, decoder_layers=1, weights="dense", rotary_base=300.0, norm_epsilon=0.1)
TOKENS = np.random.default_rng(1).integers(4, 20, (2, 7)).astype(np.int32)


def rms(x, scale):
    return x / np.sqrt(np.mean(x**2, -1, keepdims=True) + 0.1) * scale


def turned(x):
    """Pairs of features as complex numbers, turned by an angle that grows with the position."""
    length, size = x.shape
    pairs = x[:, : size // 2] + 1j * x[:, size // 2 :]
    pairs = pairs * np.exp(1j * np.arange(length)[:, None] * 300.0 ** (-2 * np.arange(size // 2) / size))
    return np.concatenate([pairs.real, pairs.imag], -1)


def test_it_is_the_block_of_the_description():
    """One layer in NumPy, sentence by sentence and head by head."""
    variables = initialize(DENSE, 5)
    noise = np.random.default_rng(2)
    params = jax.tree.map(lambda leaf: leaf + noise.normal(0, 0.3, leaf.shape).astype(np.float32), variables["params"])
    layer = jax.tree.map(lambda leaf: np.asarray(leaf[0], np.float64), params["decoder"]["layers"])
    table = np.asarray(params["target_embedding"]["kernel"], np.float64)
    found = build(DENSE).apply({**variables, "params": params}, TOKENS)
    for sentence, logits in zip(TOKENS, np.asarray(found), strict=True):
        x = table[sentence] * np.sqrt(8)
        y, heads = rms(x, layer["self_attention_norm"]["layer_norm"]["scale"]), []
        q, k, v = (y @ layer["self_attention"][name]["kernel"] for name in ("query", "key", "value"))
        for head in (slice(0, 4), slice(4, 8)):
            scores = turned(q[:, head]) @ turned(k[:, head]).T / 2
            weights = np.exp(np.where(np.tril(np.ones((7, 7), bool)), scores, -np.inf))
            heads.append(weights / weights.sum(-1, keepdims=True) @ v[:, head])
        x = x + np.concatenate(heads, -1) @ layer["self_attention"]["output"]["kernel"]
        y = rms(x, layer["ffn_norm"]["layer_norm"]["scale"])
        gate = y @ layer["ffn_gate"]["kernel"]
        x = x + (gate / (1 + np.exp(-gate)) * (y @ layer["ffn_in"]["kernel"])) @ layer["ffn_out"]["kernel"]
        x = rms(x, np.asarray(params["decoder"]["final_norm"]["layer_norm"]["scale"]))
        np.testing.assert_allclose(logits, x @ table.T, atol=2e-4)


def test_products_of_rotated_vectors_depend_on_the_difference_of_positions_alone():
    q, k = (jnp.asarray(np.random.default_rng(seed).normal(size=(1, 1, 1, 6)), jnp.float32) for seed in (1, 2))

    def product(one, other):
        return float(jnp.sum(rotated(q, jnp.array([one])) * rotated(k, jnp.array([other]))))

    assert product(3, 1) == pytest.approx(product(40, 38), abs=1e-4) != pytest.approx(product(3, 2), abs=1e-3)
    assert product(0, 0) == pytest.approx(float(jnp.sum(q * k)), abs=1e-5)


@pytest.mark.parametrize("changes", [{}, {"weights": "dense"}, {"decoder_layers": "SRL", "reservoir": "ffn"}])
def test_no_layer_has_a_bias_and_every_feed_forward_network_has_a_gate(changes):
    paths = shapes(ModelConfig(20, 20, **MODERN, **{**ALONE, "decoder_layers": 2, **changes}))
    assert not any(path[-1] == "bias" for path in paths)
    modules = {path[1:-1] for path in paths}
    assert all((*path[:-1], "ffn_gate") in modules for path in modules if path[-1] == "ffn_in")


def test_the_cached_decoder_of_a_translation_model_equals_the_whole_one():
    config = ModelConfig(20, 20, **MODERN, encoder_layers=1, decoder_layers=2, rotary_base=300.0, norm_epsilon=0.1)
    variables = prepared(config, initialize(config, 3))
    whole = jit(build(config).apply)
    found, tokens = token_by_token(config, variables, 6, beams=2)
    for beam in range(2):
        np.testing.assert_allclose(found[beam::2], whole(variables, SOURCE, tokens[beam::2]), atol=2e-5)

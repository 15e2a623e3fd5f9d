"""The decoder alone: causal, equal to itself token by token, and without the attention to a source."""

import jax
import numpy as np
import pytest

from one_layer.models import ModelConfig, build, initialize, shapes
from one_layer.models.decoding import CausalDecoder
from one_layer.models.flops import update_flops
from one_layer.tasks.model import prepared

pytestmark = pytest.mark.slow

VOCAB, LENGTH = 20, 11
SMALL = {"d_model": 16, "ffn": 24, "heads": 2, "encoder_layers": 0, "decoder_layers": 2, "family": "decoder"}
MODELS = {
    "one_layer": {},
    "multi_layer": {"weights": "multi_layer", "norm_position": "pre"},
    "dense": {"weights": "dense"},
    "conv": {"weights": "dense", "decoder_layers": "LRL", "reservoir": "conv", "norm_position": "pre"},
    "modern": {"weights": "dense", "block": "modern", "norm_position": "pre"},
    "modern_mixed": {"block": "modern", "norm_position": "pre", "decoder_layers": "SRL", "reservoir": "ffn"},
    "gru": {"decoder_layers": "SRL", "reservoir": "gru"},
}


def config(**changes: object) -> ModelConfig:
    return ModelConfig(VOCAB, VOCAB, **{**SMALL, **changes})  # type: ignore[arg-type]


def tokens(rows: int = 3, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(4, VOCAB, (rows, LENGTH)).astype(np.int32)


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    chosen = config(**MODELS[request.param])
    return chosen, prepared(chosen, initialize(chosen, seed=3))


def test_no_output_depends_on_a_later_token(model):
    chosen, variables = model
    first = tokens()
    second = first.copy()
    second[:, 6:] = tokens(seed=2)[:, 6:]
    one, other = (jax.jit(build(chosen).apply)(variables, each) for each in (first, second))
    assert np.array_equal(one[:, :6], other[:, :6]) and not np.allclose(one[:, 6:], other[:, 6:])


def test_token_by_token_equals_whole_sequences_with_rows_at_positions_of_their_own(model):
    """The second row begins three steps later, and the third begins anew after four: what the cache held of it is forgotten."""
    chosen, variables = model
    ids = tokens()
    whole = jax.jit(build(chosen).apply)(variables, ids)
    decoder = CausalDecoder(chosen, variables)
    step = jax.jit(lambda now, places, cache: decoder.step(now, places, cache, LENGTH))
    cache = decoder.start(3, LENGTH)
    for time in range(LENGTH):
        places = np.array([time, max(time - 3, 0), time if time < 4 else time - 4], np.int32)
        logits, cache = step(ids[np.arange(3), places], places, cache)
        np.testing.assert_allclose(logits, whole[np.arange(3), places], atol=2e-5)


def test_it_has_no_attention_to_a_source_and_no_encoder():
    paths = shapes(config())
    assert any("self_attention" in path for path in paths)
    assert not any("cross_attention" in path or "encoder" in path for path in paths)


def test_flops_count_the_attention_to_itself_alone():
    """By hand: four projections and two of the feed-forward network, scores and mixing, and the tied projection; three times each."""
    c = config(weights="dense", decoder_layers=1)
    products = 2 * LENGTH * (4 * 16 * 16 + 2 * 16 * 24) + 2 * 2 * LENGTH * LENGTH * 16 + 2 * LENGTH * VOCAB * 16
    assert update_flops(c, 1, LENGTH) == 3 * products
    learned = c.replace(positions="learned")
    given = learned.replace(embedding="frozen", embedding_path="given")  # its positions are trained below the layers
    assert update_flops(learned, 1, LENGTH) - update_flops(given, 1, LENGTH) == 2 * LENGTH * VOCAB * 16

"""The masked language model's network: its head, its tied projection, and what of it is trained."""

import jax
import numpy as np
import pytest
from scipy.special import erf

from one_layer.models import ModelConfig, build, initialize, recipes, roles, shapes
from one_layer.models.flops import update_flops
from one_layer.tasks.model import prepared
from tests import ROOT
from tests.tiny_tickets import shaken

VOCAB = 14
PLAIN = ModelConfig(
    VOCAB, VOCAB, d_model=8, ffn=12, heads=2, encoder_layers=2, decoder_layers=0, keep=0.6, family="masked_lm"
)
CONFIGS = {"one_layer": PLAIN, "dense": PLAIN.replace(weights="dense", activation="gelu", embedding_norm=True)}
SOURCE = np.array([[0, 5, 13, 6, 2, 7], [0, 8, 13, 2, 1, 1]], np.int32)
PLACES = np.array([[2, 5], [2, 0]], np.int32)


@pytest.fixture(scope="module", params=CONFIGS)
def case(request):
    """A config, variables in which no array is 0 or 1 alone, and its network."""
    config = CONFIGS[request.param]
    return config, prepared(config, shaken(initialize(config, 7))), jax.jit(build(config).apply)


def test_the_head_is_that_of_the_description(case):
    """In NumPy, from the last hidden vectors: dense, exact GELU, LayerNorm, the embedding, a bias."""
    config, variables, apply = case
    network = build(config)
    table = network.apply(variables, method=lambda module: module.source_embedding())
    hidden = np.asarray(network.apply(variables, table, SOURCE, method="encoded"))
    head, norm = variables["params"]["head_dense"], variables["params"]["head_dense_norm"]["layer_norm"]
    x = np.take_along_axis(hidden, PLACES[..., None], axis=1) @ np.asarray(head["kernel"]) + head["bias"]
    x = x * (1 + erf(x / np.sqrt(2))) / 2
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * norm["scale"] + norm["bias"]
    expected = x @ np.asarray(table).T + variables["params"]["head_output"]["bias"]
    np.testing.assert_allclose(apply(variables, SOURCE, PLACES), expected, atol=2e-5)


def test_the_page_on_the_ticket_format_names_what_layers_do_not_have():
    """Positions, the norm of the embeddings, and the head with its norm and its output that has only a bias."""
    page = (ROOT / "docs" / "ticket-format.md").read_text("utf-8")
    config = PLAIN.replace(positions="learned", max_positions=9, embedding_norm=True, norm="affine")
    named = roles(config)
    outside = [path for path in shapes(config) if path[1] not in ("encoder", "source_embedding")]
    assert len(outside) == 8
    for collection, *module, leaf in outside:
        role = named[tuple(module)]
        assert f"`{role}`" in page and (role == "encoder/embedding/norm" or f"`{collection}/{role}" in page), role
        assert f"`{leaf}`" in page


def test_both_sides_of_a_mask_are_seen(case):
    _, variables, apply = case
    for place in (1, 5):
        other = SOURCE.copy()
        other[0, place] = 9
        one, two = (apply(variables, source, PLACES) for source in (SOURCE, other))
        assert not np.allclose(one[0, 0], two[0, 0]) and np.array_equal(one[1], two[1])


def test_only_the_head_of_a_masked_model_has_trained_weights():
    trained = {path[1:] for path in shapes(PLAIN) if path[0] == "params" and path[-1] != "scores"}
    assert trained == {
        ("head_dense", "kernel"),
        ("head_dense", "bias"),
        ("head_dense_norm", "layer_norm", "scale"),
        ("head_dense_norm", "layer_norm", "bias"),
        ("head_output", "bias"),
    }
    assert ("head_output",) not in recipes(PLAIN)
    named = roles(PLAIN)
    assert len({named[path[1:-1]] for path in shapes(PLAIN)}) == len({path[1:-1] for path in shapes(PLAIN)})


def test_flops_count_the_head_at_the_predicted_places_alone():
    config = PLAIN.replace(weights="dense")
    one, two = (update_flops(config, 3, 6, places) for places in (1, 2))
    assert two - one == 3 * 2 * 3 * (8 * 8 + VOCAB * 8)

"""What is trained beside masks: what the network multiplies by, wherever the mask comes from, and which matrices have it."""

import jax.numpy as jnp
import numpy as np
import pytest

from one_layer.layers.beside import ADAPTERS, COLUMNS, GAINS
from one_layer.layers.materializing import materialize
from one_layer.layers.matrix import Projection
from one_layer.layers.trees import flatten_dict
from one_layer.models import initialize, shapes
from one_layer.models.accounting import ticket_bytes
from one_layer.supermask import Supermask, topk_mask
from tests import user_error
from tests.tiny_tickets import TINY

DICE = np.random.default_rng(0)
W, S = (jnp.asarray(DICE.normal(size=(3, 4)), jnp.float32) for _ in range(2))
COLUMN_GAINS = jnp.asarray(DICE.normal(size=4), jnp.float32)
A, B = (jnp.asarray(DICE.normal(size=(2, size)), jnp.float32) for size in W.shape)


@pytest.mark.parametrize("keep", [0.5, 1.0], ids=["under a mask", "without a mask"])
@pytest.mark.parametrize("adapted", [False, True], ids=["", "with an adapter"])
@pytest.mark.parametrize("gains", GAINS)
def test_a_projection_multiplies_by_all_of_it(gains, adapted, keep):
    own = dict.fromkeys(GAINS[gains], COLUMN_GAINS) | (dict(zip(ADAPTERS, (A, B), strict=True)) if adapted else {})
    scores = {"scores": S} if keep < 1 else {}
    variables = {"params": {**scores, **own}, "random": {"kernel": W}}
    expected = W * (topk_mask(S, keep) if keep < 1 else 1) * own.get(COLUMNS, 1.0) + (A.T @ B if adapted else 0)
    projection = Projection(4, "masked", Supermask(keep), False, "float32")
    once = materialize(variables, Supermask(keep))
    for each in (variables, once, materialize(once, Supermask(keep))):
        np.testing.assert_allclose(projection.apply(each, jnp.eye(3)), expected, rtol=1e-5, atol=1e-6)
    assert not own or not once["params"], "they are in the product"


def test_each_depth_has_its_own_and_tables_have_none():
    config = TINY.replace(gains="columns", decoder_layers="SLS")
    found = {path: shape for path, shape in shapes(config).items() if path[-1] == COLUMNS}
    assert found["params", "encoder", "layers", "ffn_in", COLUMNS] == (2, 12)
    masked = {path[1:-1] for path in shapes(config) if path[-1] == "scores" and not path[-2].endswith("embedding")}
    assert {path[1:-1] for path in found} == masked, "of trained layers beside masked ones neither"
    more = 4 * sum(int(np.prod(shape)) for shape in found.values())
    assert ticket_bytes(config) == ticket_bytes(config.replace(gains="none")) + more


def test_an_adapter_begins_as_no_change_and_is_stored_as_a_matrix():
    config = TINY.replace(adapter_rank=2, trained_precision="int4", decoder_layers="SLS")
    found = {path[1:]: leaf for path, leaf in flatten_dict(initialize(config, 1)).items() if path[-1] in ADAPTERS}
    for (*module, name), leaf in found.items():
        assert leaf.shape[:2] == (2, 2) and bool(jnp.any(leaf)) == (name == "adapter_in"), module
    assert len(found) == 2 * sum(path[-1] == "scores" and "embedding" not in path[-2] for path in shapes(config))
    plain = TINY.replace(decoder_layers="SLS", trained_precision="int4")
    more = sum(leaf.size // 2 + 4 * leaf.size // leaf.shape[-1] for leaf in found.values())
    assert ticket_bytes(config) == ticket_bytes(plain) + more


def test_a_dense_model_has_none():
    with user_error(r"model.adapter_rank is 1, but model.weights is dense"):
        TINY.replace(weights="dense", adapter_rank=1)
    with user_error(r"model.adapter_rank is 7; it must lie in \[0, model.d_model 6\]"):
        TINY.replace(adapter_rank=7)
    with user_error(r"model.gains is 'columns', but model.weights is dense"):
        TINY.replace(weights="dense", gains="columns")

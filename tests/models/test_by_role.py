"""Masks, random weights and scores by role, and other masks in their place, in models of every kind."""

import numpy as np
import pytest

from one_layer.layers.trees import flatten_dict
from one_layer.models import ModelConfig, by_role, recipes
from one_layer.supermask import kept_count
from one_layer.tasks.model import prepared
from one_layer.tickets import variables as of_ticket
from tests import mostly_slow, user_error
from tests.tiny_tickets import CASES, QUICK, TINY, ticket_of, trained

RESERVOIRS = {
    "reservoirs": {"weights": "dense", "encoder_layers": "LRL", "decoder_layers": "RLR", "reservoir": "gru"},
    "mixed": {"encoder_layers": "SRS", "decoder_layers": "SRLS", "reservoir": "conv"},
}
KINDS = {name: each for name, each in CASES.items() if each.get("weights") != "dense" or "sharing" not in each}
KINDS |= {name: {"embedding": None, "norm": None, "bias": None} | each for name, each in RESERVOIRS.items()}
DICE = np.random.default_rng(0)
SCORES = DICE.normal(size=(3, 5, 7)).astype(np.float32)


def products(config: ModelConfig, variables: dict) -> dict[str, np.ndarray]:
    """What the network multiplies by, by role."""
    return dict(by_role.matrices(config, prepared(config, variables), "materialized"))


@pytest.mark.parametrize("name", mostly_slow(KINDS, QUICK))
def test_masks_times_random_weights_are_what_the_network_computes_with(name):
    """As training leaves it, from its ticket, and with its own masks given to it."""
    config = TINY.replace(**KINDS[name])
    variables = trained(config)
    masks = by_role.masks(config, variables)
    packed = [of_ticket(ticket_of(config, variables=variables), packed=True)]
    packed += [by_role.with_masks(config, each, masks) for each in (variables, *packed)]
    random = by_role.matrices(config, variables, "random", "frozen")
    assert set(random) >= set(masks) and set(random) <= {recipe.role for recipe in recipes(config).values()}
    assert set(by_role.matrices(config, variables, "params", leaf="scores")) == set(masks)
    expected = products(config, variables)
    assert expected.keys() == masks.keys() and bool(masks) == (name not in ("dense", "no mask", "reservoirs"))
    for each in packed:
        ours = by_role.masks(config, each)
        again = by_role.matrices(config, each, "random", "frozen")
        made = products(config, each)
        for role, product in expected.items():
            np.testing.assert_array_equal(ours[role], masks[role])
            np.testing.assert_array_equal(again[role], random[role])
            np.testing.assert_allclose(made[role], product, rtol=1e-6)
            if not config.dynamic_scale and config.gains == "none" and not config.adapter_rank:
                np.testing.assert_array_equal(masks[role] * random[role], product)
    for role, mask in masks.items() if config.supermask.exact else ():
        size = mask.shape[-2] * mask.shape[-1]
        assert ((mask > 0).sum(axis=(-2, -1)) == kept_count(size, config.keep)).all(), role
    if config.sharing == "masks":
        assert {mask.ndim for mask in masks.values()} == {2}


def test_the_masks_that_are_given_are_those_that_are_there():
    config = TINY.replace(**CASES["signs"])
    variables = trained(config)
    before = {path: np.array(leaf) for path, leaf in flatten_dict(variables).items()}
    own = by_role.masks(config, variables)
    given = {role: DICE.integers(-1, 2, own[role].shape) for role in ("encoder/ffn/in", "decoder/embedding")}
    found = by_role.masks(config, by_role.with_masks(config, variables, given))
    assert found.keys() == own.keys()
    for role, mask in found.items():
        np.testing.assert_array_equal(mask, given.get(role, own[role]))
    for path, leaf in flatten_dict(variables).items():
        np.testing.assert_array_equal(leaf, before[path])
    with pytest.raises(ValueError, match="read-only"):
        own["encoder/ffn/in"][0] = 0


@pytest.mark.parametrize(
    ("role", "mask", "message"),
    [
        ("encoder/ffn/up", np.ones((2, 6, 12)), r"has the role 'encoder/ffn/up'; give one of encoder/self_attention/query, "),
        ("encoder/ffn/in", np.ones((6, 12)), r"mask of encoder/ffn/in has the shape \(6, 12\); give one of the shape \(2, 6, 12\)"),
        ("encoder/ffn/in", np.full((2, 6, 12), 0.5), r"has the value 0\.5; with model\.selection=magnitude its values are 0, 1"),
        ("encoder/ffn/in", np.full((2, 6, 12), -1), r"has the value -1; "),
        ("encoder/ffn/in", np.full((2, 6, 12), np.nan), r"has the value nan; "),
        ("encoder/ffn/in", np.full((2, 6, 12), "1"), r"has the value 1; "),
    ],
)  # fmt: skip
def test_what_is_no_mask_of_the_model_is_refused(role, mask, message):
    with user_error(message):
        by_role.with_masks(TINY, trained(TINY), {role: mask})


def test_a_model_without_masks_takes_none():
    config = TINY.replace(**CASES["dense"])
    assert not by_role.masks(config, trained(config))
    with user_error("has the role 'encoder/ffn/in'; this model has no masks"):
        by_role.with_masks(config, trained(config), {"encoder/ffn/in": np.ones((2, 6, 12))})


def packed(mask: np.ndarray) -> np.ndarray:
    return np.packbits(mask.reshape(*mask.shape[:-2], -1), axis=-1, bitorder="little")


@pytest.mark.parametrize("drawn", [(5, 7), (3, 5, 7)])
@pytest.mark.parametrize("masked", [(5, 7), (3, 5, 7)])
def test_each_layer_has_a_row_of_bits(drawn, masked):
    weights, bits = DICE.normal(size=drawn), packed(DICE.random(masked) < 0.5)
    found = by_role.with_bits({("random", "m", "kernel"): weights}, {("m", "mask"): bits})["packed"]["m"]["mask"]
    np.testing.assert_array_equal(found, np.broadcast_to(bits, (*np.broadcast_shapes(drawn, masked)[:-2], 5)))

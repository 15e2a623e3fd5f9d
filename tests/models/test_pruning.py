"""Layers left out of a trained model: what stays is the model made of the layers that stay."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from one_layer import tickets
from one_layer.layers.blocks import EncoderLayer
from one_layer.layers.groups import layers_apart
from one_layer.layers.stack import Stack
from one_layer.models import ModelConfig, initialize
from one_layer.models.pruning import kept_layers, pruned
from one_layer.runs.rescoring import rescored
from one_layer.system.errors import UserError
from tests import tiny
from tests.tiny_tickets import TINY, flat, same_numbers, ticket_of, trained

pytestmark = pytest.mark.slow

SIZES = {"d_model": 8, "ffn": 12, "heads": 2, "decoder_layers": 2}
STRINGS = {
    "updatable": ({"weights": "dense", "encoder_layers": "LRLR", "reservoir": "ffn"}, "LrlR"),
    "a group is gone": ({"weights": "dense", "encoder_layers": "LRL", "norm_position": "pre"}, "LrL"),
    "all reservoirs": (
        {"weights": "dense", "encoder_layers": "LRL", "reservoir": "ffn", "backskip": "identity"},
        "LrL",
    ),
    "one layer": ({"encoder_layers": 3, "norm": "affine", "share_norm_scale": True}, "sSS"),
    "own layers": ({"weights": "multi_layer", "encoder_layers": "SLSS"}, "SLsS"),
    "one mask": ({"weights": "multi_layer", "sharing": "masks", "encoder_layers": 3}, "SsS"),
}


def model(changes):
    return ModelConfig(6, 7, **{**SIZES, **changes})


@pytest.fixture(params=STRINGS, name="case")
def case_fixture(request):
    changes, kept = STRINGS[request.param]
    return model(changes), kept


def test_the_seed_gives_what_stays_the_same_bits(case):
    config, kept = case
    smaller, variables = pruned(config, initialize(config, 5), encoder_layers=kept)
    same_numbers(flat(variables), flat(initialize(smaller, 5)))


def test_it_computes_the_layers_that_stay_and_no_other(case):
    config, kept = case
    variables = trained(config)
    smaller, fewer = pruned(config, variables, encoder_layers=kept)
    x = jnp.asarray(np.random.default_rng(0).standard_normal((2, 3, 8)), jnp.float32)
    visible = jnp.ones((2, 1, 1, 3), bool)
    whole, part = ({n: t["encoder"] for n, t in each.items() if "encoder" in t} for each in (variables, fewer))
    found = Stack(EncoderLayer, smaller.stack("encoder")).apply(part, x, visible)
    settings = config.stack("encoder")
    for letter, (layer, own) in zip(kept, layers_apart(whole, settings), strict=True):
        if letter.isupper():
            x = EncoderLayer(layer).apply(own, x, visible)
    if settings.final_norm:
        scale, shift = (whole["params"]["final_norm"]["layer_norm"][name] for name in ("scale", "bias"))
        x = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale + shift
    np.testing.assert_allclose(found, x, rtol=1e-5, atol=1e-5)


def test_a_ticket_of_what_stays_is_smaller_and_has_the_same_numbers(case, tmp_path):
    config, kept = case
    variables = trained(config)
    smaller, fewer = pruned(config, variables, encoder_layers=kept)
    whole, part = ticket_of(config, variables=variables), ticket_of(smaller, variables=fewer)
    assert not [path for path in part.arrays if path[0] == "random"]  # recipes alone
    sizes = [tickets.save(tmp_path / f"{number}", each) for number, each in enumerate((whole, part))]
    if config.sharing != "masks":  # then the layers had only random weights of their own, which take no bytes
        assert sizes[1]["total"] < sizes[0]["total"]
    again = tickets.load(tmp_path / "1")
    assert again.config == smaller.replace(backskip="off")  # which a ticket need not know
    same_numbers(flat(tickets.variables(again)), flat(pruned(config, tickets.variables(whole), encoder_layers=kept)[1]))


def test_masks_kept_as_bits_are_left_out_too():
    config = model({"weights": "multi_layer", "encoder_layers": 3})
    packed = tickets.variables(ticket_of(config), packed=True)
    smaller, fewer = pruned(config, packed, encoder_layers="sSs", decoder_layers="Ss")
    for name, leaf in flat(fewer["packed"]).items():
        before = flat(packed["packed"])[name]
        kept = {"encoder": before[1:2], "decoder": before[:1]}.get(name.partition("/")[0], before)
        np.testing.assert_array_equal(leaf, kept)
    assert kept_layers(smaller) == {"encoder": "2", "decoder": "1"} and not kept_layers(config)


@pytest.mark.parametrize("value", ["LRL", "RLRL", "", 3, "lrlr", "LRLr "])
def test_another_string_is_refused_by_name(value):
    config = model(STRINGS["updatable"][0])
    with pytest.raises(UserError, match=r"model\.encoder_layers is "):
        pruned(config, initialize(config, 1), encoder_layers=value)


def test_what_was_left_out_stays_out():
    config, variables = model({"encoder_layers": "SsS"}), initialize(model({"encoder_layers": "SsS"}), 1)
    with pytest.raises(UserError, match=r"trained with the layers SsS"):
        pruned(config, variables, encoder_layers="SSS")
    assert pruned(config, variables, encoder_layers="Sss")[0].depth("encoder") == 1


def test_a_trained_model_is_scored_without_some_of_its_layers(tmp_path):
    tickets.save(tmp_path / "ticket", ticket_of(TINY))
    restored = tickets.restore_ticket(tmp_path / "ticket")
    same = rescored(restored, tiny.config(), {"model.encoder_layers": TINY.encoder_layers})
    assert same.config == TINY
    fewer = rescored(restored, tiny.config(), {"model.encoder_layers": "Ss", "model.decoder_layers": "sSS"})
    assert (fewer.config.depth("encoder"), fewer.config.depth("decoder")) == (1, 2)
    assert fewer.trained_with == restored.trained_with
    with pytest.raises(UserError, match=r"model\.encoder_layers is 'L', but the model was trained with the layers SS"):
        rescored(restored, tiny.config(), {"model.encoder_layers": "L"})

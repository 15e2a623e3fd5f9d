"""Masks of several coats (`model.coats`): nested masks that add up, and what a ticket takes for them."""

from __future__ import annotations

import dataclasses
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from one_layer import tickets
from one_layer.models import by_role, initialize, shapes
from one_layer.models.accounting import account, ticket_bytes, ticket_size
from one_layer.models.sharding import Devices
from one_layer.supermask import Supermask, kept_count
from one_layer.system.errors import UserError
from one_layer.tickets import file as ticket_file
from one_layer.tickets.coats import nested_bits
from one_layer.training.flips import flipped_share, masks_of
from tests.numpy_transformer import mask_of
from tests.page.engine import outcomes, run
from tests.tiny_tickets import TINY, ticket_of, trained

CONFIG = TINY.replace(coats=3, keep=0.5)


def scores(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(8, 9)).astype(np.float32)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    st.integers(0, 10**6), st.sampled_from(["magnitude", "score"]), st.integers(1, 5), st.sampled_from([0.02, 0.4, 1.0])
)
def test_the_mask_is_the_sum_of_nested_masks_also_among_ties(seed, selection, coats, keep):
    ties = np.random.default_rng(seed).integers(-2, 3, (8, 9)).astype(np.float32)
    config = CONFIG.replace(selection=selection, coats=coats, keep=keep)
    found = np.asarray(Supermask(keep, selection, coats=coats).select(ties))
    np.testing.assert_array_equal(found, mask_of(config, ties))
    k = kept_count(72, keep)
    assert [(found > below).sum() for below in range(coats)] == [
        math.ceil(k * (coats - i) / coats) for i in range(coats)
    ]


@pytest.mark.parametrize("selection", ["magnitude", "score"])
def test_the_gradient_passes_straight_through_the_sum(selection):
    given_, ours = scores(2), scores(1)
    gradient = jax.grad(lambda s: jnp.sum(Supermask(0.5, selection, coats=3)(s) * given_))(ours)
    np.testing.assert_array_equal(gradient, given_ * np.sign(ours) if selection == "magnitude" else given_)


def test_products_have_the_variance_of_the_weights_without_masks():
    """The mean of M² is that which the weights are divided by."""
    found = np.asarray(
        Supermask(0.5, coats=3).select(np.random.default_rng(0).normal(size=(60, 60)).astype(np.float32))
    )
    assert np.mean(np.square(found, dtype=np.float64)) == pytest.approx(Supermask(0.5, coats=3).mean_square, rel=1e-3)
    plain, own = (
        initialize(CONFIG.replace(coats=coats), 1)["random"]["source_embedding"]["kernel"] for coats in (1, 3)
    )
    np.testing.assert_allclose(plain, own * math.sqrt(14 / 3), rtol=1e-6)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("coats") / "t"
    ticket = ticket_of(CONFIG)
    tickets.save(path, ticket)
    return ticket, path


def test_a_ticket_takes_the_entropy_of_the_values_and_gives_every_mask_back(saved):
    ticket, path = saved
    file, bits, entropy = ticket_file.read(path), 0, 0.0
    for module, size, layers in [
        (p[1:-1], s[-2] * s[-1], s[:-2]) for p, s in shapes(CONFIG).items() if p[-1] == "scores"
    ]:
        k = kept_count(size, 0.5)
        role, sizes = ticket.drawn[module].recipe.role, (size, k, math.ceil(k * 2 / 3))
        for kind, count in zip(("mask", "coat2", "coat3"), sizes, strict=True):
            assert file.shape(f"{kind}/{role}") == (*layers, math.ceil(count / 8))
            bits += math.prod(layers) * math.ceil(count / 8)
        counts = [size - k, *(sizes[n] - (*sizes, math.ceil(k / 3))[n + 1] for n in (1, 2)), math.ceil(k / 3)]
        ways = math.lgamma(size + 1) - sum(math.lgamma(count + 1) for count in counts)
        entropy += math.prod(layers) * ways / math.log(2) / 8
    assert ticket_bytes(CONFIG) == bits == ticket_size(CONFIG)[1] == account(CONFIG)["bytes"]["ticket"]
    assert ticket_size(CONFIG)[0] == math.floor(entropy)
    loaded = tickets.load(path)
    for name, packed in ticket.masks.items():
        np.testing.assert_array_equal(loaded.masks[name], packed)
    ours, theirs = by_role.masks(CONFIG, trained(CONFIG)), by_role.masks(CONFIG, tickets.variables(loaded, packed=True))
    for role, mask in ours.items():
        np.testing.assert_array_equal(mask, theirs[role])


def test_coats_that_keep_other_numbers_are_not_stored(saved):
    ticket, _ = saved
    path = next(path for path, bits in ticket.masks.items() if path[-1] == "coat2" and bits.ndim == 1)
    with pytest.raises(UserError, match=r"the coats of \S+embedding keep other numbers of weights"):
        tickets.content.to_bytes(dataclasses.replace(ticket, masks={**ticket.masks, path: 0 * ticket.masks[path]}))


def test_a_page_has_every_value_and_counts_every_bit(saved):
    ticket, path = saved
    script = """
        const model = opened(given.path), depths = ({ depths }) => Array.from({ length: depths }, (_, depth) => depth);
        const entries = [...model.network.matrices].map(([role, each]) => [role, depths(each).map((depth) => [...each.entries(depth)])]);
        return [Object.fromEntries(entries), model.describe().masked, model.describe().coats];
    """
    found, bits, coats = run(script, path=str(path))
    masks = by_role.masks(CONFIG, trained(CONFIG))
    for role, mask in masks.items():
        np.testing.assert_array_equal(np.array(found[role]).reshape(mask.shape), mask)
    assert set(np.concatenate([np.ravel(mask) for mask in masks.values()])) == {0, 1, 2, 3}
    packed = sum(math.prod(bits.shape[:-1]) * 8 * bits.shape[-1] for bits in nested_bits(ticket.masks, CONFIG).values())
    assert 0 <= packed - bits < 8 * sum(math.prod(bits.shape[:-1]) for bits in ticket.masks.values()) and coats == 3


@pytest.mark.parametrize("kind", ["mask", "coat2", "coat3"])
def test_a_page_refuses_coats_that_keep_other_numbers_as_the_reader_does(kind, saved, tmp_path):
    _, path = saved
    file = ticket_file.read(path)
    name = next(name for name in file.tensors if name.startswith(f"{kind}/") and name.endswith("ffn/in"))
    assert name not in file.coded
    (tmp_path / "t").write_bytes(
        ticket_file.to_bytes(file.metadata, {**file.tensors, name: file.tensors[name] & ~np.uint8(1)})
    )
    with pytest.raises(UserError, match=f"{name} keeps"):
        tickets.load(tmp_path / "t")
    (sentence,) = outcomes([tmp_path / "t"])
    assert re.search(f"{name} keeps", sentence)


def test_a_change_of_the_value_alone_is_a_flip():
    """The two largest change places with the next two: four of eight entries have other values, and all stay kept."""
    before, after = (
        {"a": {"scores": jnp.asarray([row])}} for row in ([8.0, 7, 6, 5, 4, 3, 2, 1], [6.0, 5, 8, 7, 4, 3, 2, 1])
    )
    masks = [masks_of(each, Supermask(0.5, coats=2)) for each in (before, after)]
    assert flipped_share(*masks) == 0.5


def test_many_devices_multiply_whole_masks_and_not_their_bits():
    devices = Devices.holding(())
    many = dataclasses.make_dataclass("Many", [], bases=(Devices,), namespace={"many": True}, frozen=True)(devices.mesh)
    weights, mask = jnp.full((8, 9), 2.0), Supermask(0.5, coats=3)
    entries = mask(scores(1))
    made = many.selecting(mask).multiply(("a", "kernel"), weights, entries)
    np.testing.assert_array_equal(made, 2 * np.asarray(entries))

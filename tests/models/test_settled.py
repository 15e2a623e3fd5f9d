"""Weights that the seed settles (`model.pruned`, `model.locked`): which, how many, and that only the others are trained and stored."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from one_layer import tickets
from one_layer.importers.by_layer import placed
from one_layer.importers.fairseq_options import write_options
from one_layer.initializers import Settled
from one_layer.layers.materializing import materialize
from one_layer.layers.trees import flatten_dict
from one_layer.models import by_role, initialize, shapes
from one_layer.models.accounting import account, ticket_bytes, ticket_size
from one_layer.models.pruning import pruned
from one_layer.supermask import Supermask, kept_count
from one_layer.system.errors import UserError
from one_layer.tickets import file as ticket_file
from one_layer.tickets.inspection import inspect
from one_layer.training.flips import packed_masks
from tests.numpy_transformer import mask_of
from tests.tiny_tickets import TINY, ticket_of, trained

P, Q = 0.3, 0.2
CONFIG = TINY.replace(pruned=P, locked=Q, keep=0.45, keep_ffn=0.6)
SETTLED = Settled("a/settled", (8, 9), 20, 10)


def modules(tree) -> dict[tuple[str, ...], dict[str, np.ndarray]]:
    """The leaves of each module that has settled weights."""
    found: dict[tuple[str, ...], dict[str, np.ndarray]] = {}
    for path, leaf in flatten_dict(tree).items():
        found.setdefault(path[1:-1], {})[path[-1]] = np.asarray(leaf)
    return {module: leaves for module, leaves in found.items() if "settled" in leaves}


def test_the_seed_and_the_role_decide_which_weights_are_settled_and_exactly_how_many():
    drawn = SETTLED.draw(1)
    assert drawn.shape == (8, 9) and drawn.dtype == np.int8
    assert [(drawn == value).sum() for value in (-1, 0, 1)] == [20, 42, 10]
    np.testing.assert_array_equal(drawn, SETTLED.draw(1))
    layers = dataclasses.replace(SETTLED, layers=(0, 2)).draw(1)
    np.testing.assert_array_equal(layers[1], dataclasses.replace(SETTLED, role="a/settled#2").draw(1))
    others = (SETTLED.draw(2), dataclasses.replace(SETTLED, role="b/settled").draw(1), *layers)
    assert all(np.mean(each == drawn) < 0.8 for each in others)
    # More pruned weights are more of the same order.
    more = dataclasses.replace(SETTLED, pruned=30, locked=0).draw(1)
    assert ((drawn == -1) <= (more == -1)).all() and (((drawn == 1) & (more == -1)).sum()) == 10


def test_the_positions_belong_to_the_weights_so_one_layer_has_the_same_at_all_depths():
    shared, own = (flatten_dict(initialize(CONFIG.replace(weights=w), 1)) for w in ("one_layer", "multi_layer"))
    path = ("random", "decoder", "layers", "ffn_in", "settled")
    assert shared[path].shape == (6, 12) and own[path].shape == (3, 6, 12)
    assert not np.array_equal(own[path][0], own[path][1])
    for variables in (shared, own):
        fixed = [path for path in variables if path[-1] == "settled"]
        assert fixed == [(("random"), *path[1:-1], "settled") for path in variables if path[-1] == "scores"]


def test_every_mask_keeps_what_is_locked_drops_what_is_pruned_and_has_the_exact_count():
    variables = initialize(CONFIG, 1)
    products = {
        path[:-1]: leaf for path, leaf in flatten_dict(materialize(variables, CONFIG.supermask)["materialized"]).items()
    }
    found = modules(variables)
    assert found.keys() == products.keys() and len(found) > 10
    for module, leaves in found.items():
        kept = np.asarray(products[module]) != 0
        size = leaves["settled"].size
        assert [(leaves["settled"] == value).sum() for value in (-1, 1)] == [int(P * size), int(Q * size)]
        assert kept[..., leaves["settled"] > 0].all() and not kept[..., leaves["settled"] < 0].any()
        keep = CONFIG.keep_ffn if "ffn" in module[-1] else CONFIG.keep
        assert (kept.sum(axis=(-2, -1)) == kept_count(size, keep)).all(), module


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(0, 10**6), st.sampled_from(["magnitude", "score", "sign"]), st.sampled_from([0.25, 0.45, 0.68]))
def test_the_largest_of_the_free_scores_are_chosen_also_among_ties(seed, selection, keep):
    """Whatever the scores of settled weights are."""
    dice = np.random.default_rng(seed)
    fixed = dataclasses.replace(SETTLED, pruned=int(P * 72), locked=int(Q * 72)).draw(seed)
    scores = dice.integers(-2, 3, fixed.shape).astype(np.float32)
    scores[fixed != 0] *= dice.choice([0.0, 1.0, 1e30])
    config = CONFIG.replace(selection=selection, keep=1.0 if selection == "sign" else keep, keep_ffn=None)
    found = np.asarray(config.supermask.select_free(scores, fixed))
    np.testing.assert_array_equal(found, mask_of(config, scores, keep, fixed))


def test_where_nothing_is_settled_the_masks_are_those_of_today():
    scores = np.random.default_rng(0).normal(size=(8, 9)).astype(np.float32)
    none = np.zeros((8, 9), np.int8)
    for selection in ("magnitude", "score"):
        mask = Supermask(0.3, selection)
        np.testing.assert_array_equal(mask.select_free(scores, none), mask.select(scores))
    assert shapes(TINY.replace(pruned=0.0, locked=0.0)) == shapes(TINY)


@pytest.mark.parametrize("selection", ["magnitude", "score", "sign"])
def test_no_gradient_reaches_a_settled_score_and_the_others_have_the_usual_one(selection):
    fixed, dice = SETTLED.draw(1), np.random.default_rng(0)
    scores, given = (dice.normal(size=fixed.shape).astype(np.float32) for _ in range(2))
    mask = Supermask(0.5, selection, pruned=20.5 / 72, locked=10.5 / 72)
    ours, usual = (
        jax.grad(lambda s, settled=settled: jnp.sum(mask(s, settled=settled) * given))(scores)
        for settled in (fixed, None)
    )
    np.testing.assert_array_equal(ours, np.where(fixed == 0, usual, 0))


def test_a_nan_among_the_free_scores_breaks_the_whole_mask():
    scores, fixed = np.ones((8, 9), np.float32), SETTLED.draw(1)
    scores[tuple(np.argwhere(fixed == 0)[3])] = np.nan
    assert np.isnan(Supermask(0.5, pruned=20.5 / 72, locked=10.5 / 72)(scores, settled=fixed)).all()


@pytest.fixture(scope="module")
def ticket():
    return ticket_of(CONFIG)


def test_a_file_has_a_bit_for_every_free_weight_and_no_more(ticket, tmp_path):
    tickets.save(tmp_path / "t", ticket)
    file, known = ticket_file.read(tmp_path / "t"), 0
    for path, shape in shapes(CONFIG).items():
        if path[-1] == "scores":
            size = shape[-2] * shape[-1]
            bits = (*shape[:-2], math.ceil((size - int(P * size) - int(Q * size)) / 8))
            assert file.shape(f"mask/{next(r.recipe.role for m, r in ticket.drawn.items() if m == path[1:-1])}") == bits
            known += math.prod(bits)
    fewest, most = ticket_size(CONFIG)
    assert known == ticket_bytes(CONFIG) == most > fewest > known / 2
    assert sum(matrix.packed for matrix in inspect(tmp_path / "t").matrices) == known
    loaded = tickets.load(tmp_path / "t")
    for path, bits in ticket.masks.items():
        np.testing.assert_array_equal(loaded.masks[path], bits)


def test_a_mask_that_contradicts_the_seed_is_not_stored(ticket):
    """It has as many bits as it must, but one of a pruned weight in the place of a locked one."""
    path, bits = next((path, bits) for path, bits in ticket.masks.items() if bits.ndim == 1)
    settled = np.asarray(initialize(CONFIG, ticket.seed)["random"][path[0]]["settled"]).ravel()
    ones = np.unpackbits(bits, bitorder="little")
    ones[np.flatnonzero(settled == -1)[0]], ones[np.flatnonzero(settled == 1)[0]] = 1, 0
    wrong = dataclasses.replace(ticket, masks={**ticket.masks, path: np.packbits(ones, bitorder="little")})
    with pytest.raises(UserError, match="the mask of encoder/embedding drops weights that the seed 7 locks"):
        tickets.content.to_bytes(wrong)


def test_masks_are_the_same_by_role_from_scores_and_from_bits(ticket):
    ours, theirs = by_role.masks(CONFIG, trained(CONFIG)), by_role.masks(CONFIG, tickets.variables(ticket, packed=True))
    assert ours.keys() == theirs.keys()
    for role, mask in ours.items():
        np.testing.assert_array_equal(mask, theirs[role])


def test_counts_are_those_of_the_free_weights():
    variables = initialize(CONFIG, 1)
    free = sum(
        (np.broadcast_to(leaves["settled"], leaves["scores"].shape) == 0).sum()
        for leaves in modules(variables).values()
    )
    found = account(CONFIG)["parameters"]
    assert found["trained"] == free
    assert found["random"] == account(CONFIG.replace(pruned=0.0, locked=0.0))["parameters"]["random"]
    ones = [mask.sum() for mask in by_role.masks(CONFIG, variables).values()]
    assert found["kept"] == sum(ones)
    assert found["shared_used"] < found["shared"] * (1 - P) + 1
    bits = packed_masks(
        variables["params"],
        CONFIG.supermask,
        settled={(*module, "scores"): jnp.asarray(leaves["settled"]) for module, leaves in modules(variables).items()},
    )
    assert sum(each.count for each in bits.values()) == free
    assert sum(int(jnp.bitwise_count(each.bits).sum()) for each in bits.values()) == sum(ones)


def test_layers_that_are_left_out_leave_the_positions_of_the_others():
    config = CONFIG.replace(weights="multi_layer")
    smaller, variables = pruned(config, initialize(config, 1), decoder_layers="SsS")
    assert {path: leaf.shape for path, leaf in flatten_dict(variables).items()} == shapes(smaller)
    again = initialize(smaller, 1)["random"]["decoder"]["layers"]["ffn_in"]["settled"]
    np.testing.assert_array_equal(variables["random"]["decoder"]["layers"]["ffn_in"]["settled"], again)


@pytest.mark.parametrize("call", [lambda: placed(CONFIG, {}), lambda: write_options(CONFIG, ("de", "en"))])
def test_weights_of_other_programs_have_no_seed_that_settles_them(call):
    with pytest.raises(UserError, match=r"model\.pruned is 0\.3 and model\.locked 0\.2"):
        call()

"""A keep for the matrices of attention, of feed-forward networks or of tables alone."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from one_layer.importers.fairseq_options import write_options
from one_layer.layers.materializing import materialize
from one_layer.layers.trees import flatten_dict
from one_layer.models import build, initialize
from one_layer.models.accounting import ticket_size
from one_layer.supermask import kept_count
from one_layer.system.errors import UserError
from tests.tiny_tickets import TINY

KEEPS = {"attention": 0.5, "ffn": 0.25, "embedding": 0.75}
OWN = TINY.replace(keep=0.4, **{f"keep_{part}": keep for part, keep in KEEPS.items()})
IDS = np.array([[4, 5, 2]])


def keep_of(path: tuple[str, ...]) -> float:
    return KEEPS[
        "embedding" if path[-2].endswith("embedding") else "ffn" if path[-2].startswith("ffn") else "attention"
    ]


def test_each_mask_keeps_the_fraction_of_its_part():
    made = flatten_dict(materialize(initialize(OWN, 1), OWN.supermask)["materialized"])
    assert len(made) > 10
    for path, product in made.items():
        layers = np.asarray(product).reshape(-1, *product.shape[-2:])
        wanted = kept_count(layers[0].size, keep_of(path))
        assert [np.count_nonzero(layer) for layer in layers] == [wanted] * len(layers), path


def test_the_network_selects_the_same_masks_where_nothing_was_multiplied_before():
    variables = initialize(OWN, 1)
    run = jax.jit(build(OWN).apply)
    np.testing.assert_allclose(
        run(variables, IDS, IDS), run(materialize(variables, OWN.supermask), IDS, IDS), rtol=1e-4, atol=1e-5
    )


def test_weights_are_scaled_by_the_keep_of_their_part():
    plain, own = (flatten_dict(initialize(config, 1)["random"]) for config in (TINY.replace(keep=0.4), OWN))
    for path, leaf in own.items():
        np.testing.assert_allclose(leaf, plain[path] * np.sqrt(0.4 / keep_of(path)), rtol=1e-6)


@pytest.mark.parametrize("part", KEEPS)
def test_a_part_with_the_keep_of_all_is_no_change(part):
    config = TINY.replace(keep=0.4)
    same, other = (ticket_size(config.replace(**{f"keep_{part}": keep})) for keep in (0.4, 0.1))
    assert same == ticket_size(config) != other
    without = flatten_dict(initialize(config.replace(**{f"keep_{part}": 1.0}), 1)["params"])
    assert {keep_of(path) for path in without} == {keep for name, keep in KEEPS.items() if name != part}


def test_the_papers_code_has_one_keep():
    with pytest.raises(UserError, match=r"model\.keep_attention is 0\.5, which cannot be exported"):
        write_options(OWN, ("de", "en"))

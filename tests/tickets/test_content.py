"""What is written of a ticket's parts, and what is drawn and compared when it is read."""

import dataclasses
import hashlib

import numpy as np
import pytest

from one_layer import tickets
from one_layer.initializers import Recipe
from one_layer.system.errors import UserError
from one_layer.tickets import content as ticket_content
from one_layer.tickets import file as ticket_file
from one_layer.tickets import limits
from one_layer.tickets.content import checksum, from_file, to_bytes
from tests.tiny_tickets import TINY, ticket_of


def test_a_checksum_is_blake2b_of_128_bits():
    weights = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    assert checksum(weights) == hashlib.blake2b(weights.astype("<f4").tobytes(), digest_size=16).hexdigest()


def test_orthogonal_matrices_of_reservoirs_are_read_within_a_limit_of_time(monkeypatch):
    """Two layers of a GRU, whose matrices are drawn for reservoirs alone."""
    ticket = ticket_of(TINY.replace(encoder_layers="SRR", reservoir="gru"))
    drawn = {(ticket.seed, each.recipe): each for each in ticket.drawn.values()}
    file = ticket_file.from_bytes(to_bytes(ticket)[0])
    by_hand = 2 * 2 * 3 * (6 * 3**2 + 3 * 3**2)  # layers, directions, gates, and the input's and the state's matrices
    monkeypatch.setattr(limits, "_MOST_ORTHOGONAL", by_hand)
    assert from_file(file, drawn).drawn.keys() == ticket.drawn.keys()
    monkeypatch.setattr(limits, "_MOST_ORTHOGONAL", by_hand - 1)
    with pytest.raises(UserError, match=f"take {by_hand} multiplications.* at most {by_hand - 1}$"):
        from_file(file, drawn)


@pytest.mark.parametrize("layers", [None, 2])
def test_a_matrix_is_drawn_once_and_must_have_its_checksum(layers):
    recipe = Recipe("r", (3, 4), "kaiming_uniform", 0.5, 7, layers, 1)
    entry = {**vars(recipe), "checksum": checksum(recipe.draw(3)), "shape": [3, 4]}
    read, digest = ticket_content._recipe({**entry, "layers": layers})
    assert (read, digest) == (recipe, entry["checksum"])
    drawn = {}
    first = ticket_content._draw(3, recipe, digest, drawn)
    assert drawn == {(3, recipe): first} and first.checksum == digest
    np.testing.assert_array_equal(first.weights, recipe.draw(3))
    assert ticket_content._draw(3, recipe, digest, drawn) is first
    for other in ("0" * 32, "f" * 32):
        with pytest.raises(UserError, match="the seed 3 does not give the r of the model: another generator"):
            ticket_content._draw(3, recipe, other, drawn)


def test_what_could_not_be_loaded_is_not_written(tmp_path):
    """Each limit of a reader is one of the writer too, and the old file stays."""
    (tmp_path / "t").write_bytes(b"the old one")
    ticket = ticket_of(TINY)
    name, bits = next(iter(ticket.masks.items()))
    texts = dataclasses.replace(ticket.assets, source_vocabulary=ticket.assets.target_vocabulary)
    wrong = {
        "keeps 0 weights where model.keep 0.5 keeps": {"masks": {**ticket.masks, name: 0 * bits}},
        "evaluation.beam is 5000; a ticket's is at most 1000": {
            "evaluation": dataclasses.replace(ticket.evaluation, beam=5000)
        },
        "text/source_vocabulary has 6 types.*its model's table has 12 rows": {"assets": texts},
        "its data have the name '../../.bashrc'": {
            "data": dataclasses.replace(ticket.data, source="text", directory="d", tests=("../../.bashrc",))
        },
    }
    for message, change in wrong.items():
        with pytest.raises(UserError, match=message):
            tickets.save(tmp_path / "t", dataclasses.replace(ticket, **change))
    assert (tmp_path / "t").read_bytes() == b"the old one"

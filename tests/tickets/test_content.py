"""A ticket is read from its file as it was written, and a file whose parts do not fit together is refused."""

from __future__ import annotations

import dataclasses
import hashlib
import json

import numpy as np
import pytest

from one_layer.initializers import SCHEMES, Recipe
from one_layer.supermask import kept_count
from one_layer.system.errors import UserError
from one_layer.tickets import content as ticket_content
from one_layer.tickets import file as ticket_file
from one_layer.tickets import limits
from one_layer.tickets.content import checksum, from_file, to_bytes
from one_layer.tickets.file import TicketFile
from tests.random_tickets import CONFIG, DICE, masks_of, packed, ticket_of

TICKET = ticket_of()
DRAWN = {(1, drawn.recipe): drawn for drawn in TICKET.drawn.values()}
CONTENT, STORED_SIZES = to_bytes(TICKET)


@pytest.mark.parametrize(
    "changes",
    [{}, {"weights": "multi_layer"}, {"embedding": "frozen"}, {"weights": "multi_layer", "sharing": "masks"}],
    ids=str,
)
def test_a_ticket_is_read_as_it_was_written(changes):
    ticket = ticket_of(CONFIG.replace(**changes))
    content, sizes = to_bytes(ticket)
    file = ticket_file.from_bytes(content)
    assert sizes == {name: tensor.nbytes for name, tensor in file.tensors.items()}
    found = from_file(file, {(1, drawn.recipe): drawn for drawn in ticket.drawn.values()})
    for name in ("task", "config", "seed", "step", "data", "evaluation", "assets", "checkpoint", "training"):
        assert getattr(found, name) == getattr(ticket, name)
    assert found.drawn.keys() == ticket.drawn.keys()
    assert all(found.drawn[module] is ticket.drawn[module] for module in ticket.drawn)
    for ours, theirs in ((found.masks, ticket.masks), (found.arrays, ticket.arrays)):
        assert ours.keys() == theirs.keys()
        for name in ours:
            np.testing.assert_array_equal(ours[name], theirs[name])


def test_a_ticket_is_a_record_that_equals_itself_alone():
    assert dataclasses.replace(TICKET) != TICKET == TICKET
    for record in (TICKET, next(iter(TICKET.drawn.values()))):
        with pytest.raises(dataclasses.FrozenInstanceError):
            record.seed = 1


def test_a_checksum_is_blake2b_of_128_bits():
    weights = DICE.normal(size=(3, 4)).astype(np.float32)
    assert checksum(weights) == hashlib.blake2b(weights.astype("<f4").tobytes(), digest_size=16).hexdigest()


def test_a_tensor_or_a_text_that_has_no_place_is_named():
    file = ticket_file.from_bytes(CONTENT)
    for name, message in (("params/x", "its model has no place for the tensor params/x"), ("mask/x", "tensor mask/x")):
        with pytest.raises(UserError, match=message):
            from_file(dataclasses.replace(file, tensors={**file.tensors, name: np.zeros(1, np.uint8)}), DRAWN)
    with pytest.raises(UserError, match="its metadata have the unknown name 'loader'"):
        from_file(dataclasses.replace(file, metadata={**file.metadata, "loader": "x"}), DRAWN)


def test_what_could_not_be_read_is_not_made():
    name, bits = next(iter(TICKET.masks.items()))
    with pytest.raises(UserError, match=r"keeps [0-9]+ weights where model.keep 0.3 keeps"):
        to_bytes(dataclasses.replace(TICKET, masks={**TICKET.masks, name: 0 * bits}))


@pytest.mark.parametrize(("most", "size"), [(2**27, 0), (2**27, 2**19), (2**28, 2**20), (2**33, 2**40)])
def test_a_model_has_no_more_weights_than_its_file_gives_reason_for(most, size):
    """32 for each bit, but any file may describe 2^27, and none more than 2^33."""
    file = TicketFile(size, size, {}, {}, {})
    ticket_content._check_size({("a",): (2, most // 4), ("b",): (most // 2,)}, file)
    with pytest.raises(UserError, match=f"its model has {most + 1:,} weights"):
        ticket_content._check_size({("a",): (2, most // 4), ("b",): (most // 2 + 1,)}, file)


def read(selection: str, mask: np.ndarray, sign: np.ndarray | None = None, change=None) -> dict[str, np.ndarray]:
    """What is read of packed masks, after `change` was made to a copy of them."""
    tensors = {"mask/a": packed(mask)} | ({} if sign is None else {"sign/a": packed(sign)})
    if selection == "sign":
        tensors = {"sign/a": tensors.pop("mask/a")}
    if change:
        change(tensors)
    threshold, keep = 0.1 if selection.endswith("threshold") else 0.0, 1.0 if selection == "sign" else CONFIG.keep
    config = CONFIG.replace(selection=selection, threshold=threshold, keep=keep)
    return ticket_content._read_masks(TicketFile(0, 0, {}, tensors, {}), "a", mask.shape, config)


@pytest.mark.parametrize("shape", [(5, 7), (2, 5, 7), (3, 5, 8), (2, 9, 8), (2, 3, 3)])
@pytest.mark.parametrize("selection", ["magnitude", "score", "threshold", "signed_threshold", "sign"])
def test_masks_are_read_as_they_were_packed(selection, shape):
    size = shape[-2] * shape[-1]
    mask = masks_of(shape, kept_count(size, 0.3) if selection in ("magnitude", "score") else size)
    sign = mask & (DICE.random(shape) < 0.5) if selection == "signed_threshold" else None
    found = read(selection, mask, sign)
    first = "sign" if selection == "sign" else "mask"
    assert found.keys() == ({first} if sign is None else {"mask", "sign"})
    np.testing.assert_array_equal(found[first], packed(mask))
    if sign is not None:
        np.testing.assert_array_equal(found["sign"], packed(sign))


def bit(name: str, place: tuple[int, ...], byte: int):
    def change(tensors):
        tensors[name][place] = byte

    return change


NONE = np.zeros((2, 5, 7), bool)


@pytest.mark.parametrize(
    ("selection", "change", "message"),
    [
        ("threshold", bit("mask/a", (1, 4), 0x08), "mask/a has bits beyond its last weight"),
        ("threshold", bit("mask/a", (0, 4), 0x80), "mask/a has bits beyond its last weight"),
        ("sign", bit("sign/a", (0, 4), 0x80), "sign/a has bits beyond its last weight"),
        ("signed_threshold", bit("sign/a", (1, 0), 1), "sign/a has bits where the mask is 0"),
        ("magnitude", bit("mask/a", (1, 0), 0x07), "mask/a keeps 3 weights where model.keep 0.3 keeps 11"),
        ("score", lambda tensors: tensors["mask/a"].fill(7), "mask/a keeps 15 weights where model.keep 0.3 keeps 11"),
    ],
)
def test_bits_that_mean_nothing_are_refused(selection, change, message):
    mask = masks_of((2, 5, 7), 11) if selection == "magnitude" else NONE
    if selection == "magnitude":
        mask[1] = False
    with pytest.raises(UserError, match=message):
        read(selection, mask, NONE if selection == "signed_threshold" else None, change)


RECIPES = json.loads(ticket_file.from_bytes(CONTENT).metadata["random"])
WIDER = {**RECIPES[0], "shape": [RECIPES[0]["shape"][0], 99]}


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({}, "its metadata 'random' are not a list of recipes"),
        ([1], "its metadata 'random' are not a list of recipes"),
        ([{**RECIPES[0], "role": "x"}], "'x' twice, or its model has no such matrix"),
        ([RECIPES[0], RECIPES[0]], "twice, or its model has no such matrix"),
        (
            [{**RECIPES[0], "scheme": "orthogonal"}],
            r"its recipe of .* has the scheme orthogonal, which is one of reservoirs",
        ),
        ([WIDER], r"its recipe makes .*, 99\], but its model has \["),
        (RECIPES[1:], "it lacks the tensor 'random/"),
    ],
    ids=["no list", "no recipe", "unknown", "twice", "orthogonal", "wider", "too few"],
)
def test_recipes_are_of_the_model_s_random_matrices(entries, message):
    file = ticket_file.from_bytes(CONTENT)
    with pytest.raises(UserError, match=message):
        from_file(dataclasses.replace(file, metadata={**file.metadata, "random": json.dumps(entries)}), DRAWN)


def test_orthogonal_matrices_of_reservoirs_are_read_within_a_limit_of_time(monkeypatch):
    """Two layers of a GRU, whose matrices are drawn for reservoirs alone."""
    config = CONFIG.replace(encoder_layers="SRR", reservoir="gru")
    ticket = ticket_of(config)
    drawn = {(1, each.recipe): each for each in ticket.drawn.values()}
    file = ticket_file.from_bytes(to_bytes(ticket)[0])
    by_hand = 2 * 2 * 3 * (6 * 3**2 + 3 * 3**2)  # layers, directions, gates, and the input's and the state's matrices
    monkeypatch.setattr(limits, "_MOST_ORTHOGONAL", by_hand)
    assert from_file(file, drawn).drawn.keys() == ticket.drawn.keys()
    monkeypatch.setattr(limits, "_MOST_ORTHOGONAL", by_hand - 1)
    with pytest.raises(
        UserError, match=f"orthogonal matrices would take {by_hand} multiplications.* at most {by_hand - 1}$"
    ):
        from_file(file, drawn)


RECIPE = {"role": "r", "shape": [3, 4], "scheme": SCHEMES[0], "scale": 1.0}
RECIPE |= {"fan_in": None, "layers": None, "zero_row": None, "checksum": "c"}
ALLOWED = {
    "scale": [2.0**32, 0.5, 1e-9, 1],
    "fan_in": [1, 7],
    "layers": [1, 2**12, [0], [0, 2]],
    "zero_row": [0, 1, 2],
}
REFUSED = {
    "role": [1, None],
    "checksum": [1, None],
    "shape": ["ab", {}, [3], [3, 4, 5], [0, 4], [3, 1.0], None],
    "scale": ["1", 0.0, -1.0, 2.0**32 * 1.5, None],
    "fan_in": [0, "x", 1.0],
    "layers": [0, "x", [1, 0], []],
    "zero_row": [-1, 3, 4, True, "x", 1.0],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in ALLOWED for value in ALLOWED[name]])
def test_a_recipe_is_read_as_it_was_written(name, value):
    recipe, digest = ticket_content._recipe({**RECIPE, name: value})
    expected = {**RECIPE, name: value, "shape": (3, 4)}
    assert digest == expected.pop("checksum")
    assert recipe == Recipe(**{**expected, "layers": tuple(value) if isinstance(value, list) else expected["layers"]})


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in REFUSED for value in REFUSED[name]])
def test_a_recipe_of_other_values_is_refused(name, value):
    with pytest.raises(UserError, match="its metadata 'random' have an invalid recipe"):
        ticket_content._recipe({**RECIPE, name: value})


def test_a_recipe_has_its_names_and_a_known_scheme():
    for entry in (None, [], {**RECIPE, "x": 1}, {name: RECIPE[name] for name in RECIPE if name != "scale"}):
        with pytest.raises(UserError, match="its metadata 'random' are not a list of recipes"):
            ticket_content._recipe(entry)
    with pytest.raises(UserError, match=r"the scheme 'os.system'; known are kaiming"):
        ticket_content._recipe({**RECIPE, "scheme": "os.system"})


def test_the_layers_of_a_recipe_are_counted_or_named_in_ascending_order():
    assert all(map(ticket_content._counts, (1, 2, 2**40)))
    assert not any(map(ticket_content._counts, (0, -1, 2**40 + 1, 1.0, True, "1", None)))
    assert all(map(ticket_content._numbers, ([0], [0, 1], [3, 4095])))
    refused = ([], [-1], [1, 1], [1, 0], [0, 4096], [0, 5000], [0.0], [True], (0, 1), 1)
    assert not any(map(ticket_content._numbers, refused))


def test_a_matrix_is_drawn_once_and_must_have_its_checksum():
    recipe = ticket_content._recipe(RECIPE)[0]
    digest, drawn = checksum(recipe.draw(3)), {}
    first = ticket_content._draw(3, recipe, digest, drawn)
    assert drawn == {(3, recipe): first} and first.checksum == digest
    np.testing.assert_array_equal(first.weights, recipe.draw(3))
    assert ticket_content._draw(3, recipe, digest, drawn) is first
    for other in ("0" * 32, "f" * 32):
        with pytest.raises(UserError, match="the seed 3 does not give the r of the model: another generator"):
            ticket_content._draw(3, recipe, other, drawn)

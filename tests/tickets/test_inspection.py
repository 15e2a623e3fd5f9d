"""What inspection says of masks is what counting their bits says."""

from __future__ import annotations

import dataclasses
from itertools import combinations

import numpy as np
import pytest

from one_layer import tickets
from one_layer.models import ModelConfig, initialize, recipes
from one_layer.tickets import file as ticket_file
from one_layer.tickets.inspection import describe, inspect
from tests.fuzz_tickets import assets

CONFIG = ModelConfig(12, 6, d_model=6, ffn=12, heads=2, encoder_layers=2, decoder_layers=3, keep=0.3)


def ticket_of(config: ModelConfig) -> tickets.Ticket:
    return tickets.make(config, 1, initialize(config, 1), assets(config), step=40)


def masks_of(ticket: tickets.Ticket, module: tuple[str, ...], size: int) -> np.ndarray:
    bits = ticket.masks[*module, "mask"]
    return np.unpackbits(bits.reshape(-1, bits.shape[-1]), axis=1, bitorder="little")[:, :size].astype(bool)


def test_densities_overlap_and_sizes_are_those_of_the_bits(tmp_path):
    ticket = ticket_of(CONFIG)
    sizes = tickets.save(tmp_path / "t", ticket)
    found = inspect(tmp_path / "t")
    assert found == inspect(ticket) and found.total == sizes["total"] == (tmp_path / "t").stat().st_size
    assert (found.seed, found.step, found.arrays) == (1, 40, 0)
    matrices = {matrix.role: matrix for matrix in found.matrices}
    assert matrices.keys() == {recipe.role for recipe in recipes(CONFIG).values()}
    for module, recipe in recipes(CONFIG).items():
        matrix, masks = matrices[recipe.role], masks_of(ticket, module, recipe.shape[0] * recipe.shape[1])
        np.testing.assert_allclose(matrix.density, masks.mean(axis=1))
        assert matrix.packed == len(masks) * -(-masks.shape[1] // 8) and matrix.stored == sizes[f"mask/{recipe.role}"]
        p = masks.mean(axis=1)
        bound = -(masks.shape[1] / 8) * np.sum(p * np.log2(p) + (1 - p) * np.log2(1 - p))
        assert matrix.bound == pytest.approx(bound)
        if len(masks) > 1:
            pairs = [(one & other).sum() / (one | other).sum() for one, other in combinations(masks, 2)]
            assert matrix.overlap.jaccard == pytest.approx(np.mean(pairs))
            assert matrix.overlap.used == pytest.approx(masks.any(axis=0).mean())
        else:
            assert matrix.overlap is None


def test_sizes_are_those_of_the_file_not_of_what_this_program_would_write(tmp_path):
    """Another program may code tensors otherwise, or not at all."""
    ticket, path = ticket_of(CONFIG.replace(ffn=600)), tmp_path / "t"
    tickets.save(path, ticket)
    file = ticket_file.read(path)
    assert file.coded
    plain = {
        name: file.tensor(name, "uint8", file.shape(name)) if name in file.coded else tensor
        for name, tensor in file.tensors.items()
    }
    path.write_bytes(ticket_file.to_bytes({**file.metadata, "codecs": "{}"}, plain))
    found, ours = inspect(path), inspect(ticket)
    assert found.total == path.stat().st_size > ours.total
    assert found.text == sum(tensor.nbytes for name, tensor in plain.items() if name.startswith("text/"))
    assert all(matrix.stored == matrix.packed for matrix in found.matrices)
    assert [matrix.density for matrix in found.matrices] == [matrix.density for matrix in ours.matrices]


def test_independent_masks_have_what_it_says_of_them_and_equal_ones_everything():
    config = CONFIG.replace(ffn=200, encoder_layers=3)
    ticket = ticket_of(config)
    place = ("encoder", "layers", "ffn_in", "mask")
    dice = np.random.default_rng(0)
    random = [dice.permutation(np.arange(1200) < 360) for _ in range(3)]  # as many as keep says
    for masks, equal in ((random, False), ([random[0]] * 3, True)):
        packed = np.stack([np.packbits(mask, bitorder="little") for mask in masks])
        found = inspect(dataclasses.replace(ticket, masks=ticket.masks | {place: packed}))
        overlap = next(matrix.overlap for matrix in found.matrices if matrix.role == "encoder/ffn/in")
        assert overlap.independent_used == pytest.approx(1 - 0.7**3)
        assert overlap.independent_jaccard == pytest.approx(0.09 / 0.51)
        if equal:
            assert overlap.jaccard == 1.0 and overlap.used == pytest.approx(0.3)
        else:
            assert overlap.jaccard == pytest.approx(overlap.independent_jaccard, abs=0.03)
            assert overlap.used == pytest.approx(overlap.independent_used, abs=0.03)


def test_signs_count_to_the_bound_and_layers_of_their_own_weights_share_none():
    config = CONFIG.replace(weights="multi_layer", selection="signed_threshold", threshold=0.1, norm="frozen")
    ticket = ticket_of(config)
    found = inspect(ticket)
    assert all(matrix.overlap is None for matrix in found.matrices)
    assert found.arrays == sum(array.nbytes for array in ticket.arrays.values()) > 0
    for matrix in found.matrices:
        size = matrix.shape[0] * matrix.shape[1]
        zero = [-(1 - p) * np.log2(1 - p) for p in matrix.density if p < 1]
        halves = [-p * np.log2(p / 2) for p in matrix.density]  # at most: as many -1 as 1
        assert 0 < matrix.bound <= (sum(zero) + sum(halves)) * size / 8 + 1e-9


def test_the_table_has_every_matrix_and_adds_up():
    found = inspect(ticket_of(CONFIG.replace(embedding="frozen")))
    text = describe(found)
    for matrix in found.matrices:
        row = next(line for line in text.split("\n") if line.startswith(matrix.role + " "))
        assert f"{matrix.stored:,}" in row and f"{matrix.bound:,.0f}" in row
    assert f"{found.total:,} bytes: masks {sum(matrix.stored for matrix in found.matrices):,}" in text
    assert len([matrix for matrix in found.matrices if not matrix.density]) == 2, "fixed tables have no masks"

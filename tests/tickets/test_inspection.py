"""What inspection says of masks is what counting their bits says."""

import dataclasses
import math
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from one_layer import tickets
from one_layer.models import ModelConfig, initialize, recipes
from one_layer.tickets import file as ticket_file
from one_layer.tickets import inspection
from one_layer.tickets.inspection import Inspection, Matrix, describe, inspect
from tests.fuzz_tickets import assets

CONFIG = ModelConfig(12, 6, d_model=6, ffn=12, heads=2, encoder_layers=2, decoder_layers=3, keep=0.3)


def ticket_of(config: ModelConfig) -> tickets.Ticket:
    return tickets.make(config, 1, initialize(config, 1), assets(config), step=40)


def inspected(path: Path, ticket: tickets.Ticket) -> Inspection:
    tickets.save(path, ticket)
    return inspect(path)


def packed(masks: np.ndarray) -> np.ndarray:
    return np.stack([np.packbits(mask, bitorder="little") for mask in masks])


def entropy(*shares: float) -> float:
    return sum(-share * math.log2(share) for share in shares if share)


@pytest.mark.parametrize("keep", [[0.2, 0.5], [0.3, 0.6, 0.9], [1.0, 0.0, 0.4], [0.0, 0.0]])
def test_a_matrix_has_the_numbers_of_its_bits(keep):
    """Also where a mask keeps all, or nothing: two masks of nothing are equal."""
    dice = np.random.default_rng(1)
    masks = dice.random((len(keep), 35)) < np.array(keep)[:, None]
    signs = masks & (dice.random(masks.shape) < 0.3)
    shares, pairs = masks.mean(axis=1), list(combinations(range(len(keep)), 2))
    found = inspection._matrix("a", "b", (5, 7), {"mask": packed(masks)}, 9, shared=True)
    assert (found.role, found.recipe, found.shape, found.stored) == ("a", "b", (5, 7), 9)
    np.testing.assert_allclose(found.density, shares)
    np.testing.assert_allclose(found.bound, sum(entropy(p, 1 - p) for p in shares) * 35 / 8)
    ratios = [(sum(masks[one] & masks[other]), sum(masks[one] | masks[other])) for one, other in pairs]
    expected = [(shares[i] * shares[j], shares[i] + shares[j] - shares[i] * shares[j]) for i, j in pairs]
    assert found.overlap["jaccard"] == pytest.approx(
        np.mean([both / either if either else 1.0 for both, either in ratios])
    )
    assert found.overlap["independent_jaccard"] == pytest.approx(np.mean([p / q if q else 1.0 for p, q in expected]))
    assert found.overlap["used"] == pytest.approx(masks.any(axis=0).mean())
    assert found.overlap["independent_used"] == pytest.approx(1 - math.prod(1 - shares))

    signed = inspection._matrix("a", "b", (5, 7), {"mask": packed(masks), "sign": packed(signs)}, 9, shared=False)
    assert signed.overlap == {}
    bits = sum(entropy(p - minus, minus, 1 - p) for p, minus in zip(shares, signs.mean(axis=1), strict=True))
    np.testing.assert_allclose(signed.bound, bits * 35 / 8)


def test_one_mask_overlaps_none_and_a_matrix_may_have_no_mask():
    mask = np.arange(35) < 7
    for bits in (packed([mask]), packed([mask])[0]):
        found = inspection._matrix("a", "b", (5, 7), {"mask": bits}, 9, shared=True)
        assert found.density == (0.2,) and found.overlap == {}
    found = inspection._matrix("a", "b", (5, 7), {}, 0, shared=True)
    assert (found.density, found.bound, found.overlap) == ((), 0, {})


def test_layers_that_keep_as_much_are_written_once():
    shares = {
        (): "",
        (0.5,): "50.0",
        (0.5, 0.5): "2 × 50.0",
        (0.5,) * 3: "3 × 50.0",
        (0.1, 0.2): "10.0 20.0",
        (0.1, 0.1, 0.9): "10.0 10.0 90.0",
    }
    assert {density: inspection._kept(density) for density in shares} == shares


def test_the_table_has_a_row_and_ten_columns_for_each_matrix():
    overlap = {"jaccard": 0.11, "independent_jaccard": 0.33, "used": 0.22, "independent_used": 0.44}
    matrices = (
        Matrix("with", "x × 1", (5, 7), (0.2, 0.4), 1003, 1004.4, overlap),
        Matrix("without", "stored", (5, 8), (), 0, 0.0, {}),
    )
    found = Inspection(ticket_of(CONFIG), matrices, total=10_000, arrays=2000, text=300)
    head, one, other = describe(found).split("\n")[3:6]
    assert " ".join(one.split()) == "with 5 × 7 x × 1 20.0 40.0 1,003 1,004 11.0% 33.0% 22.0% 44.0%"
    assert " ".join(other.split()) == "without 5 × 8 stored 0 0"
    for name, cell in {"matrix": "5 × 8", "drawn": "stored", "bytes": "0"}.items():
        assert other.index(f"  {cell}") == head.index(f"  {name}")
    assert "10,000 bytes: masks 1,003 (bound 1,004), other arrays 2,000, vocabularies and codes 300, header 6,697" in (
        describe(found)
    )


def test_a_ticket_has_the_matrices_densities_and_sizes_of_its_file(tmp_path):
    config = CONFIG.replace(norm="affine", embedding="frozen")
    ticket = ticket_of(config)
    sizes = tickets.save(tmp_path / "t", ticket)
    found = inspect(tmp_path / "t")
    assert found.total == sizes["total"] == (tmp_path / "t").stat().st_size
    assert found.arrays == sum(array.nbytes for array in ticket.arrays.values()) > 0
    matrices = {matrix.role: matrix for matrix in found.matrices}
    assert matrices.keys() == {recipe.role for recipe in recipes(config).values()}
    for module, recipe in recipes(config).items():
        matrix, size = matrices[recipe.role], recipe.shape[0] * recipe.shape[1]
        assert matrix.recipe == f"{recipe.scheme} × {recipe.scale:.4g}"
        if recipe.role.endswith("embedding"):
            assert not matrix.density, "fixed tables have no masks"
        else:
            bits = ticket.masks[*module, "mask"]
            masks = np.unpackbits(bits.reshape(-1, bits.shape[-1]), axis=1, count=size, bitorder="little")
            np.testing.assert_allclose(matrix.density, masks.mean(axis=1))
            assert matrix.stored == sizes[f"mask/{recipe.role}"] and matrix.overlap["used"] == masks.any(axis=0).mean()


def test_sizes_are_those_of_the_file_not_of_what_this_program_would_write(tmp_path):
    """Another program may code tensors otherwise, or not at all."""
    path = tmp_path / "t"
    ours = inspected(path, ticket_of(CONFIG.replace(ffn=600)))
    file = ticket_file.read(path)
    assert file.coded
    plain = {
        name: file.tensor(name, "uint8", file.shape(name)) if name in file.coded else tensor
        for name, tensor in file.tensors.items()
    }
    path.write_bytes(ticket_file.to_bytes({**file.metadata, "codecs": "{}"}, plain))
    found = inspect(path)
    assert found.total == path.stat().st_size > ours.total
    assert found.text == sum(tensor.nbytes for name, tensor in plain.items() if name.startswith("text/"))
    assert all(matrix.stored == plain[f"mask/{matrix.role}"].nbytes for matrix in found.matrices)
    assert [matrix.density for matrix in found.matrices] == [matrix.density for matrix in ours.matrices]


def test_layers_of_their_own_weights_share_none(tmp_path):
    config = CONFIG.replace(weights="multi_layer", selection="threshold", threshold=0.01)
    found = inspected(tmp_path / "t", dataclasses.replace(ticket_of(config), checkpoint="average:3"))
    assert all(matrix.density and matrix.overlap == {} for matrix in found.matrices)
    head, selected, *_ = describe(found).split("\n")
    assert head.endswith("; seed 1, the average of checkpoints up to update 40 (average:3)")
    assert selected.startswith("masks by threshold, threshold 0.01; ")


@pytest.mark.parametrize(
    ("changes", "masks", "table"),
    [
        ({}, True, True),
        ({"keep": 1.0, "norm": "affine"}, False, True),
        ({"weights": "dense"}, False, False),
        ({"weights": "dense", "encoder_layers": "LR"}, False, True),
    ],
)
def test_only_a_model_with_masks_has_words_of_them_and_one_with_random_weights_a_table(changes, masks, table, tmp_path):
    text = describe(inspected(tmp_path / "t", ticket_of(CONFIG.replace(**changes))))
    assert ("masks by magnitude, keep 0.3; " in text) == ("Jaccard: of the" in text) == ("masks" in text) == masks
    assert ("kept by layer  " in text) == ("role " in text) == table
    assert " bytes: " in text and "other arrays" in text and "\n\n\n" not in text

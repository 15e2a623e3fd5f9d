"""What `one_layer.load` returns: it says what it is, shows its parts by role, and computes with other masks."""

from __future__ import annotations

import numpy as np
import pytest

import one_layer
from one_layer.supermask import Supermask
from one_layer.system.errors import UserError
from tests import tiny

LINES = ["wen besucht sie jetzt ?", "", "sie hat einem mann die zeitung gezeigt ."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.trained(tmp_path_factory)


@pytest.fixture(scope="module", params=["run", "ticket", "packed"])
def model(request, folder):
    path = folder if request.param == "run" else folder / "ticket.safetensors"
    return one_layer.load(path, packed=request.param == "packed")


def test_it_says_what_it_is(model, folder):
    ticket = folder / "ticket.safetensors"
    shape = "<TranslationModel: translation model of 1+1 layers, de to en; width 16, feed-forward width 32, 2 heads; one_layer, keep 0.5; "
    size = (
        f"{ticket.stat().st_size:,} bytes; {ticket}, update "
        if model.file_bytes
        else "bytes in a ticket; best, update "
    )
    assert repr(model).startswith(shape) and size in repr(model) and repr(model).endswith(f"{model.step}>")


def test_only_a_run_has_scores_and_they_give_the_masks(model):
    if model.file_bytes is not None:
        with pytest.raises(
            UserError, match=r"ticket\.safetensors has no scores, because .* load the folder of the run"
        ):
            _ = model.scores
        return
    for role, scores in model.scores.items():
        layers = zip(
            scores.reshape(-1, *scores.shape[-2:]), model.masks[role].reshape(-1, *scores.shape[-2:]), strict=True
        )
        for layer, mask in layers:
            np.testing.assert_array_equal(Supermask(0.5)(layer), mask)
    with pytest.raises(UserError, match="best with other masks has no scores"):
        _ = model.with_masks({}).scores


def test_its_own_masks_translate_as_it_does_and_others_do_not(model):
    before = model.lines(LINES)
    dice = np.random.default_rng(0)
    flipped = {role: 1 - mask for role, mask in model.masks.items()}
    drawn = {role: dice.permuted(mask, axis=-1) for role, mask in model.masks.items()}
    same, one = model.with_masks(model.masks), model.with_masks({"encoder/ffn/in": flipped["encoder/ffn/in"]})
    assert same.lines(LINES) == before and (same.packed, same.file_bytes) == (model.packed, None)
    others = [tuple(model.with_masks(each).lines(LINES)) for each in (flipped, drawn)]
    assert len({*others, tuple(before)}) == 3
    for role, mask in one.masks.items():
        np.testing.assert_array_equal(mask, (flipped if role == "encoder/ffn/in" else model.masks)[role])
    assert model.lines(LINES) == before

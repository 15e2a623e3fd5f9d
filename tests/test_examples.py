"""The files in examples/ run as they stand, and learn something."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from examples import look_at_masks, own_selection, paper
from tests import ROOT


def test_they_are_small():
    files = list((ROOT / "examples").glob("*.py"))
    assert len(files) == 3
    assert all(len(file.read_text("utf-8").splitlines()) <= 100 for file in files)


def test_a_selection_of_one_s_own_is_a_mask_with_a_gradient():
    scores = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)
    mask, back = jax.vjp(own_selection.TwoOfFour(), scores)
    four = np.sort(np.abs(scores).reshape(-1, 4), axis=1)
    np.testing.assert_array_equal(mask.reshape(-1, 4), np.abs(scores).reshape(-1, 4) > four[:, 1:2])
    np.testing.assert_array_equal(back(jax.numpy.ones(scores.shape))[0], np.sign(scores))


@pytest.mark.slow
def test_translations_become_right(monkeypatch):
    """With one narrow layer on each side: as it stands, the paper's example takes a minute, and more with the flags of the tests.

    The own selection trains in the same loop, so that a few updates show that it learns, and that masks keep two of four weights.
    """
    corpus, config = paper.toy()
    narrow = config.replace(d_model=64, ffn=128, encoder_layers=1, decoder_layers=1)
    for example in (paper, own_selection):
        monkeypatch.setattr(example, "toy", lambda: (corpus, narrow))
    losses, right = paper.main(updates=300)
    assert right > 0.05 and losses[-1] < 0.35 * losses[0]
    losses, _, kept = own_selection.main(updates=40)
    assert losses[-1] < 0.85 * losses[0] and kept == {2}


def test_flipped_bits_spoil_the_translation(capsys):
    found = look_at_masks.main()
    assert found[0.0][0] == "zwei hunde rennen durch den schnee." and found[0.5] != found[0.0]
    assert "encoder/ffn/in: " in capsys.readouterr().out

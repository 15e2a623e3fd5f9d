"""The files in examples/ run as they stand, and learn something."""

from __future__ import annotations

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from examples import look_at_masks, own_selection
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
def test_translations_become_right():
    """In a process that compiles as users do: a whole training takes several times as long with the flags that tests compile with.

    The own selection trains in the same loop, so that a few updates show that it learns, and that masks keep two of four weights.
    """
    program = (
        "from examples import own_selection, paper; losses, _, kept = own_selection.main(updates=40);"
        "print(paper.main()[1], losses[-1] / losses[0], kept)"
    )
    surroundings = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=surroundings, capture_output=True, text=True)
    right, fallen, kept = done.stdout.splitlines()[-1].split()
    assert float(right) > 0.3 and float(fallen) < 0.85 and kept == "{2}", done.stderr


def test_flipped_bits_spoil_the_translation(capsys):
    found = look_at_masks.main()
    assert found[0.0][0] == "zwei hunde rennen durch den schnee." and found[0.5] != found[0.0]
    assert "encoder/ffn/in: " in capsys.readouterr().out

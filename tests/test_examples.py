"""The files in examples/ run as they stand, and learn something."""

import jax
import numpy as np
import pytest

from examples import bernoulli_masks, look_at_masks, own_selection, paper, stochastic_gates
from tests import ROOT


def test_they_are_small():
    files = list((ROOT / "examples").glob("*.py"))
    assert len(files) == 5
    assert all(len(file.read_text("utf-8").splitlines()) <= 100 for file in files)


def test_a_selection_of_one_s_own_is_a_mask_with_a_gradient():
    scores = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)
    mask, back = jax.vjp(own_selection.TwoOfFour(), scores)
    four = np.sort(np.abs(scores).reshape(-1, 4), axis=1)
    np.testing.assert_array_equal(mask.reshape(-1, 4), np.abs(scores).reshape(-1, 4) > four[:, 1:2])
    np.testing.assert_array_equal(back(jax.numpy.ones(scores.shape))[0], np.sign(scores))
    assert own_selection.TwoOfFour()(jax.numpy.ones((2, 4))).sum() == 4  # where all are equal, too


def test_masks_are_drawn_with_their_probabilities_and_the_gradient_reaches_them():
    """Zhou et al. 2019: M is 1 with the probability σ(S), and dL/dS = dL/dM · σ'(S)."""
    scores = {"a": jax.numpy.linspace(-0.05, 0.05, 7), "b": jax.numpy.zeros(5)}
    keys = jax.random.split(jax.random.key(0), 4000)

    def masks(scores, key):
        return jax.tree.map(bernoulli_masks.MASK, bernoulli_masks.drawn(scores, key))

    kept = jax.tree.map(lambda drawn: drawn.mean(0), jax.vmap(masks, (None, 0))(scores, keys))
    slope = bernoulli_masks.STEEPNESS
    for name, each in scores.items():
        p = jax.nn.sigmoid(slope * each)
        np.testing.assert_allclose(kept[name], p, atol=0.04)
        _, back = jax.vjp(lambda scores: masks(scores, keys[0]), scores)
        gradient = back(jax.tree.map(jax.numpy.ones_like, scores))[0][name]
        np.testing.assert_allclose(gradient, slope * p * (1 - p), rtol=1e-5)


def test_gates_lie_between_0_and_1_and_cost_their_probability_to_be_open():
    """Yamada et al. 2020, equations 3 and 5, against draws of the gates."""
    scores = {"a": jax.numpy.linspace(-0.1, 0.1, 9)}
    keys = jax.random.split(jax.random.key(0), 4000)
    draws = jax.vmap(stochastic_gates.drawn, (None, 0))(scores, keys)
    gates = stochastic_gates.Gates(selection="threshold").applied(None, draws["a"], axis=-1)
    assert gates.min() == 0 and gates.max() == 1 and ((gates > 0) & (gates < 1)).any()
    price = stochastic_gates.penalty(scores)
    np.testing.assert_allclose(price, stochastic_gates.PRICE * (gates > 0).mean(), rtol=0.02)
    trained = stochastic_gates.drawn(scores, None)["a"]
    np.testing.assert_array_equal(trained, np.asarray(scores["a"]) > 0)


@pytest.mark.slow
def test_translations_become_right(monkeypatch):
    """With one narrow layer on each side: as it stands, the paper's example takes a minute, and more with the flags of the tests.

    The own selection trains in the same loop, so that a few updates show that it learns, and that masks keep two of four weights.
    """
    corpus, config = paper.toy()
    narrow = config.replace(d_model=64, ffn=128, encoder_layers=1, decoder_layers=1)
    for example in (paper, own_selection, bernoulli_masks, stochastic_gates):
        monkeypatch.setattr(example, "toy", lambda: (corpus, narrow))
    losses, right = paper.main(updates=300)
    assert right > 0.05 and losses[-1] < 0.35 * losses[0]
    losses, _, kept = own_selection.main(updates=40)
    assert losses[-1] < 0.85 * losses[0] and kept == {2}
    for drawn in (bernoulli_masks, stochastic_gates):
        losses, _, share = drawn.main(updates=40)
        assert losses[-1] < 0.95 * losses[0] and 0.4 < share < 0.6


def test_flipped_bits_spoil_the_translation(capsys):
    found = look_at_masks.main()
    assert found[0.0][0] == "zwei hunde rennen durch den schnee." and found[0.5] != found[0.0]
    assert "encoder/ffn/in: " in capsys.readouterr().out

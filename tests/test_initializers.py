"""The random weights are those of the written definition, to the bit, and no change may ever go unnoticed."""

import hashlib
import math

import numpy as np
import pytest

from one_layer.initializers import SCHEMES, Recipe, _reflection, random_weights
from tests import user_error

ROLE = "encoder/self_attention/query"


def stream(seed: int, role: str, bits: int, count: int) -> list[int]:
    """The first `count` words of `bits` bits of a role's stream, by the definition: low bits first, in Python integers."""
    key = int.from_bytes(hashlib.blake2b(f"{seed}/{role}".encode(), digest_size=16).digest(), "little")
    words = [int(word) for word in np.random.Philox(key=key).random_raw(count * bits // 64 + 1)]
    parts = [(word >> shift) & (2**bits - 1) for word in words for shift in range(0, 64, bits)]
    return parts[:count]


@pytest.mark.parametrize(
    ("scheme", "bound"), [("kaiming_uniform", math.sqrt(6 / 7)), ("xavier_uniform", math.sqrt(6 / (7 + 5)))]
)
@pytest.mark.parametrize("seed", [0, 1, 2**40])
def test_a_uniform_is_the_top_24_bits_of_a_word(seed, scheme, bound):
    uniforms = [(word >> 8) * 2.0**-24 for word in stream(seed, ROLE, 32, 35)]
    expected = np.array([2 * u - 1 for u in uniforms], np.float32) * np.float32(bound)
    assert_same_bits(random_weights(seed, ROLE, (7, 5), scheme), expected.reshape(7, 5))
    assert_same_bits(random_weights(seed, ROLE, (7, 5), scheme, scale=0.5), expected.reshape(7, 5) / 2)


@pytest.mark.parametrize(
    ("scheme", "deviation"),
    [("kaiming_normal", math.sqrt(2 / 7)), ("xavier_normal", math.sqrt(2 / 12)), ("normal", math.sqrt(1 / 5))],
)
def test_a_normal_is_the_centred_sum_of_twelve_16_bit_uniforms(scheme, deviation):
    halves = stream(3, ROLE, 16, 12 * 35)
    sums = [sum(halves[12 * i : 12 * i + 12]) - 6 * 65536 for i in range(35)]
    expected = np.array(sums, np.float32) * np.float32(2.0**-16) * np.float32(deviation)
    assert_same_bits(random_weights(3, ROLE, (7, 5), scheme), expected.reshape(7, 5))


def test_a_sign_is_the_top_bit_of_a_word():
    signs = [-1 if word >> 31 else 1 for word in stream(3, ROLE, 32, 35)]
    expected = np.array(signs, np.float32) * np.float32(math.sqrt(2 / 7))
    assert_same_bits(random_weights(3, ROLE, (7, 5), "signed_constant"), expected.reshape(7, 5))


def test_these_very_numbers_for_ever():
    """fan_in 6 has the bound 1, width 4 the deviation 1/2, fan_in 8 the constant 1/2: the stream shows in the digits."""
    for scheme, shape, numbers in (
        (
            "kaiming_uniform",
            (6, 4),
            "-0x1.ea86fp-3 -0x1.0f8d48p-2 0x1.1a1dcp-4 -0x1.b0859p-3 -0x1.aca824p-1 -0x1.a6f478p-2",
        ),
        ("normal", (6, 4), "-0x1.836p-6 -0x1.a88p-4 0x1.6c9p-4 -0x1.6e58p-3 0x1.b8a8p-4 -0x1.54e2p+0"),
        ("signed_constant", (8, 4), "0x1p-1 0x1p-1 -0x1p-1 0x1p-1 0x1p-1 0x1p-1"),
    ):
        drawn = random_weights(1, ROLE, shape, scheme).ravel()[:6]
        assert [float(number).hex() for number in drawn] == [float.fromhex(number).hex() for number in numbers.split()]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_float32_and_nothing_but_the_arguments(scheme):
    drawn = random_weights(5, ROLE, (6, 8), scheme)
    assert drawn.dtype == np.float32 and drawn.shape == (6, 8) and drawn.flags.c_contiguous
    np.random.seed(0)
    assert_same_bits(random_weights(5, ROLE, (6, 8), scheme), drawn)
    for seed, role in [(6, ROLE), (5, "encoder/self_attention/key"), (5, f"{ROLE}#0")]:
        same = np.array_equal(random_weights(seed, role, (6, 8), scheme), drawn)
        assert same == (scheme == "unsigned_constant"), "a constant alone is the same for all"


def test_constants_have_the_size_of_their_deviation():
    for scheme, variance in (("signed", 2 / 6), ("unsigned", 2 / 6), ("xavier", 2 / 14)):
        constant = random_weights(5, ROLE, (6, 8), f"{scheme}_constant", scale=1.5)
        assert_same_bits(np.abs(constant), np.full((6, 8), 1.5 * math.sqrt(variance), np.float32))
        assert (constant < 0).any() == (scheme != "unsigned")


def test_every_shape_of_the_same_size_has_the_same_values_in_c_order():
    flat = random_weights(2, ROLE, (24,), "signed_constant", fan_in=2)
    for shape in [(24, 1), (4, 6), (2, 3, 4)]:
        assert_same_bits(random_weights(2, ROLE, shape, "signed_constant", fan_in=2).ravel(), flat)


def test_axes_before_the_last_two_are_copies():
    stacked, flat = (random_weights(7, ROLE, s, "kaiming_uniform", fan_in=None) for s in [(2, 30, 20), (30, 40)])
    assert_same_bits(stacked.ravel(), flat.ravel())


def test_an_embedding_used_transposed_has_the_fans_of_its_transpose():
    """The table [vocabulary, d] is the kernel [d, vocabulary] of the output projection: fan_in d, fan_out vocabulary."""
    table, kernel = (300, 8), (8, 300)
    for scheme in ("kaiming_uniform", "kaiming_normal", "xavier_uniform", "xavier_normal", "signed_constant"):
        drawn = random_weights(7, ROLE, table, scheme, fan_in=8)
        assert_same_bits(drawn.ravel(), random_weights(7, ROLE, kernel, scheme).ravel())


@pytest.mark.parametrize("scheme", ["kaiming", "", "Kaiming_uniform", "xavier"])
def test_an_unknown_scheme_is_refused_with_the_known_ones(scheme):
    with user_error(f"{scheme!r}.*kaiming_uniform.*signed_constant"):
        random_weights(0, ROLE, (2, 2), scheme)


@pytest.mark.parametrize("shape", [(), (0, 3), (3, 0)])
def test_an_empty_shape_is_refused(shape):
    with user_error("at least one"):
        random_weights(0, ROLE, shape, "kaiming_uniform")


def test_a_recipe_draws_its_matrix():
    recipe = Recipe(ROLE, (6, 8), "xavier_uniform", 0.5)
    assert_same_bits(recipe.draw(4), random_weights(4, ROLE, (6, 8), "xavier_uniform", scale=0.5))
    wider = Recipe(ROLE, (6, 8), "kaiming_uniform", fan_in=8)
    assert_same_bits(wider.draw(4), random_weights(4, ROLE, (6, 8), "kaiming_uniform", fan_in=8))


def test_the_layers_of_a_recipe_are_roles_of_their_own():
    drawn = Recipe(ROLE, (6, 8), "kaiming_uniform", layers=3).draw(4)
    assert drawn.shape == (3, 6, 8)
    for layer in range(3):
        assert_same_bits(drawn[layer], random_weights(4, f"{ROLE}#{layer}", (6, 8), "kaiming_uniform"))


def test_the_zero_row_is_zero_and_moves_no_other():
    drawn, whole = (Recipe("embedding", (9, 4), "normal", layers=2, zero_row=row).draw(4) for row in (1, None))
    assert not drawn[:, 1].any()
    assert_same_bits(np.delete(drawn, 1, 1), np.delete(whole, 1, 1))


def test_a_vector_of_zeros_is_reflected_to_the_first_axis():
    vector, sign = _reflection(np.zeros(2, np.int32))
    assert (vector.tolist(), sign) == ([1.0, 0.0], -1.0)


def assert_same_bits(ours, theirs):
    assert ours.dtype == theirs.dtype == np.float32
    np.testing.assert_array_equal(ours.view(np.uint32), theirs.view(np.uint32))

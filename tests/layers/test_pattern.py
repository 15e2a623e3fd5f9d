"""Layer strings: what they expand to, and how they are cut into repeated units."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from one_layer.layers.pattern import expand, segments
from tests import user_error


@pytest.mark.parametrize(
    ("value", "pattern"),
    [(3, "SSS"), ("LSSL", "LSSL"), ("4L+3R", "LRLRLRL"), ("5L+2R", "LLRLRLL"), ("6L+1R", "LLLRLLL"), ("2S+0R", "SS")],
)
def test_what_the_paper_places(value, pattern):
    assert expand("encoder_layers", value, "S") == pattern


@given(st.integers(1, 12), st.integers(0, 13))
def test_the_short_form_alternates_from_the_middle(layers, reservoirs):
    if reservoirs > layers + 1:
        with user_error("places"):
            expand("encoder_layers", f"{layers}L+{reservoirs}R", "L")
        return
    pattern = expand("encoder_layers", f"{layers}L+{reservoirs}R", "L")
    assert (pattern.count("L"), pattern.count("R")) == (layers, reservoirs)
    places = [place for place, letter in enumerate(pattern) if letter == "R"]
    assert all(b - a == 2 for a, b in itertools.pairwise(places))
    if places:
        before, after = places[0], len(pattern) - 1 - places[-1]
        assert after - before in (0, 1)


@pytest.mark.parametrize("value", ["", "LXL", "lrl", "L R", "3L+5R", "4R+1L", "L+1R", "4L+1S"])
def test_other_strings_are_refused_by_name(value):
    with user_error(r"model\.decoder_layers is "):
        expand("decoder_layers", value, "L")


@given(st.text("LRS", min_size=1, max_size=14))
def test_segments_are_the_pattern_and_compile_as_little_as_possible(pattern):
    found = segments(pattern)
    assert "".join(unit * number for unit, number in found) == pattern
    compiled = sum(len(unit) for unit, _ in found)
    assert compiled <= sum(1 for _ in itertools.groupby(pattern))
    if len(pattern) <= 7:
        assert compiled == min(_ways(pattern))


def _ways(pattern: str) -> list[int]:
    """The layers that every way to cut the pattern compiles."""
    if not pattern:
        return [0]
    found = []
    for length in range(1, len(pattern) + 1):
        head = pattern[:length]
        unit = next(head[:n] for n in range(1, length + 1) if length % n == 0 and head[:n] * (length // n) == head)
        found += [len(unit) + rest for rest in _ways(pattern[length:])]
    return found


@given(st.text("LRS", min_size=1, max_size=4), st.integers(1, 30))
def test_depth_does_not_add_to_what_is_compiled(unit, repetitions):
    assert sum(len(each) for each, _ in segments(unit * repetitions)) <= len(unit)

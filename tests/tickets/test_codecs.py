"""Codes give back what was coded, near the entropy of independent bits, and unfold to no more than was asked for."""

import math
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from one_layer.system.errors import UserError
from one_layer.tickets import codecs
from one_layer.tickets.codecs import CODECS, decode, encode


def bits(keep: float, size: int = 2**19) -> bytes:
    return np.packbits(np.random.default_rng(0).random(8 * size) < keep, bitorder="little").tobytes()


def entropy(p: float) -> float:
    return -p * math.log2(p) - (1 - p) * math.log2(1 - p)


@given(st.binary(max_size=300), st.integers(0, 2000), st.sampled_from([b"\0", b"\xff", b"\x80", b"ab"]))
def test_decoding_gives_back_what_was_encoded(ends, length, middle):
    raw = ends + middle * length + ends
    codec, code = encode(raw)
    assert (decode(codec, code, len(raw)) if codec else code) == raw
    assert len(code) <= 0.95 * len(raw) if codec else code == raw


@pytest.mark.parametrize("keep", [0.01, 0.05, 0.1, 0.2, 0.3, 0.7, 0.8, 0.9, 0.95, 0.99])
def test_independent_bits_take_little_more_than_their_entropy(keep):
    raw = bits(keep)
    codec, code = encode(raw)
    assert codec in CODECS and 0.99 < len(code) / (entropy(keep) * len(raw)) < 1.02
    assert decode(codec, code, len(raw)) == raw


@pytest.mark.parametrize("codec", ["zstd-ones", "zstd-zeros"])
@pytest.mark.parametrize("size", [8, 64, 2**12, 2**15])
def test_gaps_give_back_every_place_of_a_rare_bit(codec, size):
    """At most a quarter are rare. At either end they make the longest gap besides the most codes that there can be."""
    quarter, single = size // 4, (0, 1, 253, 254, 255, 256, 509, 510, 511, size - 1)
    for places in ([], range(quarter), range(size - quarter, size), range(0, size, 4), *([one] for one in single)):
        rare = np.isin(np.arange(size), [place for place in places if place < size])
        raw = np.packbits(rare == (codec == "zstd-ones"), bitorder="little").tobytes()
        code = codecs._compress(codecs._gaps(codecs._bits(raw, codec)), 1)
        assert decode(codec, code, len(raw)) == raw
    assert codecs._gaps(np.zeros(size, np.uint8)) == b"", "no rare bit takes no byte"


@pytest.mark.parametrize("used", ["zstd-ones", "zstd-zeros"])
@pytest.mark.parametrize("longest", [5, 6, 7])
def test_gaps_are_used_only_where_they_can_be_read(longest, used):
    """Of two lengths, which no other code sees; with the shorter ones, more than a quarter of the bits are rare."""
    gaps = np.random.default_rng(0).choice([0, longest], 8000, p=[0.53, 0.47])
    rare = np.zeros(int((gaps + 1).sum()) // 8 * 8 + 8, np.uint8)
    rare[np.cumsum(gaps + 1) - 1] = 1
    raw = np.packbits(rare == (used == "zstd-ones"), bitorder="little").tobytes()
    codec, code = encode(raw)
    assert (codec == used) == (longest == 7)
    assert decode(codec, code, len(raw)) == raw


def test_a_gap_that_leads_beyond_the_last_bit_is_refused():
    compress = zstandard.ZstdCompressor().compress
    assert decode("zstd-ones", compress(bytes([7])), 1) == b"\x80"
    for gap in (8, 9):
        with pytest.raises(UserError, match="reaches beyond its bits"):
            decode("zstd-ones", compress(bytes([gap])), 1)


def test_bits_that_say_nothing_of_each_other_stay_as_they_are():
    assert encode(bits(0.5)) == (None, bits(0.5))
    assert encode(bits(0.4))[0] is None, "3 % are not worth a code"


@given(st.sampled_from(CODECS), st.binary(max_size=100), st.booleans(), st.integers(0, 1000))
def test_a_code_of_another_length_is_refused(codec, content, framed, length):
    code = zstandard.ZstdCompressor().compress(content) if framed else content
    with suppress(UserError):
        assert len(decode(codec, code, length)) == length


@pytest.mark.parametrize("codec", CODECS)
def test_a_decompression_bomb_is_refused_before_it_is_decoded(codec):
    code = zstandard.ZstdCompressor().compress(bytes(10**8))
    tracemalloc.start()
    expected = "1,000" if codec == "zstd" else "at most [0-9,]+"
    with pytest.raises(UserError, match=f"declares 100,000,000 bytes of content where {expected} are expected"):
        decode(codec, code, 1000)
    assert tracemalloc.get_traced_memory()[1] < 10**5
    tracemalloc.stop()


@pytest.mark.parametrize("codec", ["zstd-ones", "zstd-zeros"])
@pytest.mark.parametrize("byte", [0, 1, 255], ids=["a bit at every place", "at every other", "one gap without end"])
def test_the_longest_code_of_gaps_takes_memory_for_a_few_times_what_it_gives(codec, byte):
    length = 2**18
    code = zstandard.ZstdCompressor().compress(bytes([byte]) * (2 * length))
    tracemalloc.start()
    found = decode(codec, code, length)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * length and len(found) == length


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (b"", "not one whole zstd frame"),
        (zstandard.ZstdCompressor().compress(bytes(8))[:-1], "not one whole zstd frame"),
        (zstandard.ZstdCompressor().compress(bytes(8)) + b"x", "not one whole zstd frame"),
        (
            zstandard.ZstdCompressor(write_content_size=False).compress(bytes(8)),
            "declares 18,446,744,073,709,551,615",
        ),
        (zstandard.ZstdCompressor().compress(bytes(9)), "declares 9 bytes of content where 8 are expected"),
        (b"\x50\x2a\x4d\x18" + (8).to_bytes(4, "little") + bytes(8), "not one whole zstd frame"),
    ],
    ids=["nothing", "cut off", "more behind it", "of no stated size", "too long", "to be skipped"],
)
def test_what_is_not_one_whole_frame_of_the_right_size_is_refused(code, message):
    with pytest.raises(UserError, match=message):
        decode("zstd", code, 8)

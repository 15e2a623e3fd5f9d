"""Tickets from strangers: whatever is wrong with a file is said in one sentence, before anything is drawn or allocated."""

import random
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from one_layer import tickets
from one_layer.system.errors import UserError
from one_layer.tickets import content as ticket_content
from one_layer.tickets import file as ticket_file
from tests import fuzz_tickets
from tests.tickets.forged import FORGED, forge
from tests.tiny_tickets import TINY, ticket_of


@pytest.fixture(scope="module")
def good():
    return fuzz_tickets.good_ticket()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile") / "t.safetensors"


def refused(content: bytes, place, message: str | None = None) -> None:
    place.write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        tickets.load(place)
    sentence = str(caught.value)
    assert (
        sentence.startswith(f"the ticket {place} cannot be used: ") and sentence.isprintable() and len(sentence) < 1000
    )


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_file_cut_off_anywhere_is_refused(good, place, data):
    refused(good[: data.draw(st.integers(0, len(good) - 1))], place)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_a_flipped_bit_anywhere_is_found(good, place, data):
    content = bytearray(good)
    content[data.draw(st.integers(0, len(good) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    refused(bytes(content), place)


@pytest.mark.slow
def test_mutants_are_refused_or_the_same(tmp_path):
    counts = fuzz_tickets.fuzz(120, random.randrange(10**6), tmp_path)
    assert counts["damaged, refused"] > 36 and counts["forged, refused"] > 36


@pytest.mark.parametrize("name", FORGED)
def test_a_digest_that_fits_makes_nothing_good(name, good, place):
    change, message = FORGED[name]
    content = forge(good, change)
    tracemalloc.start()
    refused(content, place, message)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**22 + 4 * len(content), "memory for what the file only claims to have"


@pytest.fixture(scope="module")
def signed():
    """A ticket of masks with signs, whose 36 bits do not fill their bytes."""
    return ticket_file.from_bytes(
        ticket_content.to_bytes(ticket_of(TINY.replace(selection="signed_threshold", threshold=0.1)))[0]
    )


@pytest.mark.parametrize(
    ("name", "at", "message"),
    [
        ("mask/decoder/embedding", 4, "mask/decoder/embedding has bits beyond its last weight"),
        ("mask/decoder/self_attention/query", (0, 4), "query has bits beyond its last weight"),
        ("mask/decoder/self_attention/query", (2, 4), "query has bits beyond its last weight"),
        ("sign/encoder/embedding", ..., "sign/encoder/embedding has bits where the mask is 0"),
    ],
)
def test_bits_that_mean_nothing_are_refused(name, at, message, signed, place):
    bits = np.array(signed.tensors[name])
    bits[at] = 0xFF
    refused(ticket_file.to_bytes(signed.metadata, {**signed.tensors, name: bits}), place, message)


@pytest.mark.parametrize("selection", ["magnitude", "score"])
def test_the_layer_that_keeps_another_number_of_weights_is_the_one_that_is_named(selection, place):
    file = ticket_file.from_bytes(ticket_content.to_bytes(ticket_of(TINY.replace(selection=selection, keep=0.3)))[0])
    bits = np.array(file.tensors["mask/decoder/self_attention/query"])
    bits[1] = [7, 0, 0, 0, 0]
    content = ticket_file.to_bytes(file.metadata, {**file.tensors, "mask/decoder/self_attention/query": bits})
    refused(content, place, "query keeps 3 weights where model.keep 0.3 keeps 11")


@pytest.mark.parametrize(("most", "size"), [(2**27, 0), (2**27, 2**19), (2**28, 2**20), (2**33, 2**40)])
def test_a_model_has_no_more_weights_than_its_file_gives_reason_for(most, size):
    """32 for each bit, but any file may describe 2^27, and none more than 2^33."""
    file = ticket_file.TicketFile(size, size, {}, {}, {})
    ticket_content._check_size({("a",): (2, most // 4), ("b",): (most // 2,)}, file)
    with pytest.raises(UserError, match=f"its model has {most + 1:,} weights"):
        ticket_content._check_size({("a",): (2, most // 4), ("b",): (most // 2 + 1,)}, file)

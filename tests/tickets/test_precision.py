"""Matrices in fewer bits: how far values move, what the bytes are, and that a ticket is read as it was stored."""

import json

import numpy as np
import pytest

from one_layer import tickets
from one_layer.cli.options import parser
from one_layer.layers.quantization import stored_bytes
from one_layer.layers.trees import flatten_dict, unflatten_dict
from one_layer.system.errors import UserError
from one_layer.tickets import codecs
from one_layer.tickets import file as ticket_file
from one_layer.tickets.precision import QUANTIZED, dequantize, quantize
from tests.ticket_reader import TicketReader
from tests.tiny_tickets import TINY, ticket_of, trained

SHAPES = [(3, 5), (2, 3, 4), (1, 1), (4, 7)]
BITS = {"bfloat16": 16, "int8": 8, "int4": 4}


def values(shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def test_the_flag_takes_each_precision():
    assert f"--precision {{float32,{','.join(QUANTIZED)}}}" in parser("").format_help()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("precision", QUANTIZED)
def test_values_move_by_half_a_step_at_most_and_another_program_reads_the_same(precision, shape):
    """Its reader was written from the page of the format alone."""
    given = values(shape)
    code = quantize(given, precision)
    found = dequantize(precision, code, shape)
    assert len(code) == stored_bytes(precision, shape) and found.dtype == np.float32
    largest = np.abs(given).max(axis=-1, keepdims=True)
    step = {"bfloat16": 2.0**-7 * np.abs(given), "int8": largest / 127, "int4": largest / 7}[precision]
    assert np.all(np.abs(found - given) <= step / 2 * (1 + 2.0**-8))
    assert quantize(found, precision) == code, "what was read is stored as it is"
    reader = object.__new__(TicketReader)
    reader._stored, entries = ticket_file.coded({"params/a/kernel": given}, precision)
    reader._codecs = json.loads(entries)
    np.testing.assert_array_equal(reader._decoded("params/a/kernel"), found)


@pytest.mark.parametrize("precision", QUANTIZED)
def test_zeros_and_signs_stay(precision):
    given = np.array([[0.0, 0.0, 0.0], [-1.0, 0.5, 1.0]], np.float32)
    with np.errstate(all="raise"):  # rows of zeros are divided by no zero
        found = dequantize(precision, quantize(given, precision), given.shape)
    assert not found[0].any() and np.array_equal(np.sign(found), np.sign(given))
    assert abs(found[1, 2] - 1.0) <= 2.0**-8, "the largest magnitude has the largest number"


def test_bfloat16_rounds_to_the_nearest_even():
    bits = np.array([[0x3F800000, 0x3F808000, 0x3F818000, 0x3F808001]], np.uint32)
    found = dequantize("bfloat16", quantize(bits.view(np.float32), "bfloat16"), bits.shape)
    assert [hex(each) for each in found.view(np.uint32)[0]] == ["0x3f800000", "0x3f800000", "0x3f820000", "0x3f810000"]


def test_random_weights_that_no_seed_gives_are_those_of_training(tmp_path):
    """Training in few bits rounds what is trained or fixed, so the ticket does; a precision that is asked for rounds all of them."""
    config = TINY.replace(embedding="trained", trained_precision="int4")
    variables = trained(config)
    drawn = flatten_dict(variables["random"])
    variables["random"] = unflatten_dict({path: array + 0.1 for path, array in drawn.items()})
    ticket = ticket_of(config, variables=variables)
    for precision, same in ((None, True), ("int4", False)):
        tickets.save(tmp_path / "t", ticket, precision)
        found = tickets.load(tmp_path / "t")
        for path, array in ticket.arrays.items():
            if path[0] == "random":
                assert np.array_equal(found.arrays[path], array) == same


@pytest.mark.parametrize("precision", QUANTIZED)
def test_a_code_of_another_size_is_refused(precision):
    code = codecs.encode_values(values((3, 5)), precision)
    with pytest.raises(UserError, match="content where"):
        codecs.decode_values(precision, code, (3, 6))
    with pytest.raises(UserError, match="zstd"):
        codecs.decode_values(precision, code[:-1], (3, 5))


def test_a_mask_cannot_be_stored_as_values():
    tensors, entries = ticket_file.coded({"mask/a": np.zeros((2, 9), np.uint8)}, "int8")
    assert "int8" not in entries and tensors["mask/a"].dtype == np.uint8
    file = ticket_file.TicketFile(1, 1, {}, {"mask/a": np.zeros(4, np.uint8)}, {"mask/a": ("int8", (2, 9))})
    with pytest.raises(UserError, match="mask/a is float32"):
        file.tensor("mask/a", "uint8", (2, 9))

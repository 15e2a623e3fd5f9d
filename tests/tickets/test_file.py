"""The container of a ticket gives back what was put into it, and says what is wrong with anything else."""

import json
import tracemalloc

import numpy as np
import pytest

from one_layer.data.sources import table
from one_layer.system.errors import UserError
from one_layer.tickets import file as ticket_file
from one_layer.tickets.precision import QUANTIZED, dequantize, quantize
from tests.ticket_reader import TicketReader
from tests.tickets.containers import CONTAINERS

DICE = np.random.default_rng(0)
FLOATS = {
    name: DICE.normal(size=shape).astype(np.float32)
    for name, shape in {
        "params/z/kernel": (2, 3),
        "params/stack/kernel": (2, 4, 3),
        "params/row/kernel": (5,),
        "params/z/table": (2, 3),
    }.items()
} | {"params/ones/bias": np.ones(100, np.float32)}
BYTES = {
    "mask/a": np.packbits(DICE.random((3, 800)) < 0.05, axis=-1),
    "a/kernel": np.packbits(DICE.random((3, 800)) < 0.05, axis=-1),
    "mask/b": np.frombuffer(b"\0\xff\x3c", np.uint8),
    "mask/none": np.zeros((0, 3), np.uint8),
    "text/c": np.frombuffer("ä b\n".encode(), np.uint8),
}


def content_of(tensors, precision: str = "float32", **metadata: str) -> bytes:
    stored, codecs = ticket_file.coded(tensors, precision)
    return ticket_file.to_bytes({"codecs": codecs, **metadata}, stored)


GOOD = content_of(BYTES | FLOATS, seed="1", text="ä")


@pytest.mark.parametrize("precision", ["float32", *QUANTIZED])
def test_a_file_gives_back_every_tensor_and_text(precision):
    """Of floats, only matrices of the name `kernel` may be stored in another precision."""
    content = content_of(BYTES | FLOATS, precision, seed="1", text="ä")
    file = ticket_file.from_bytes(content)
    assert file.metadata.items() >= {"seed": "1", "text": "ä"}.items() and file.total == len(content) > file.size
    assert file.tensors.keys() == (BYTES | FLOATS).keys()
    for name, array in (BYTES | FLOATS).items():
        matrix = precision != "float32" and name in ("params/z/kernel", "params/stack/kernel")
        expected = dequantize(precision, quantize(array, precision), array.shape) if matrix else array
        found = file.tensor(name, str(array.dtype), array.shape)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == array.dtype and file.shape(name) == array.shape
        assert (file.coded.get(name, ("",))[0] == precision) == matrix
    assert (
        "mask/a" in file.coded
        and "mask/b" not in file.coded
        and not file.tensor("mask/b", "uint8", (3,)).flags.writeable
    )
    assert file.shape("mask/c") is None


def test_equal_content_in_another_order_is_the_same_file():
    backwards = dict(reversed((BYTES | FLOATS).items()))
    assert content_of(backwards, "int8", text="ä", seed="1") == content_of(BYTES | FLOATS, "int8", seed="1", text="ä")


def test_the_header_is_utf8_and_floats_come_first_and_aligned():
    for size in range(8):
        assert int.from_bytes(ticket_file.to_bytes({"codecs": "{}", "x": "a" * size}, {})[:8], "little") % 8 == 0
    length = int.from_bytes(GOOD[:8], "little")
    assert "ä".encode() in GOOD[8 : 8 + length]
    header = json.loads(GOOD[8 : 8 + length])
    ends = {name: header[name]["data_offsets"][1] for name in FLOATS}
    assert max(ends.values()) == sum(tensor.nbytes for tensor in FLOATS.values())


def test_the_digest_is_what_the_format_s_page_says():
    file = ticket_file.from_bytes(GOOD)
    reader = object.__new__(TicketReader)
    reader._stored = file.tensors
    header = json.loads(GOOD[8 : 8 + int.from_bytes(GOOD[:8], "little")])
    assert header["__metadata__"]["digest"] == reader._digest(file.metadata)
    for digest in ("0" * 64, "f" * 64):
        with pytest.raises(UserError, match="its digest does not match its content"):
            ticket_file.from_bytes(GOOD.replace(reader._digest(file.metadata).encode(), digest.encode()))


@pytest.mark.parametrize(
    ("name", "dtype", "shape", "message"),
    [
        ("mask/c", "uint8", (3,), "it lacks the tensor 'mask/c', which its model needs"),
        ("mask/b", "uint8", (2,), r"mask/b is uint8 \[3\], but its model's is uint8 \[2\]"),
        ("mask/b", "uint8", (4,), r"mask/b is uint8 \[3\], but its model's is uint8 \[4\]"),
        ("mask/b", "float32", (3,), r"mask/b is uint8 \[3\], but its model's is float32 \[3\]"),
        ("params/row/kernel", "uint8", (5,), r"is float32 \[5\], but its model's is uint8 \[5\]"),
        ("params/z/kernel", "uint8", (2, 3), r"is float32 \[2, 3\], but its model's is uint8 \[2, 3\]"),
        ("mask/a", "uint8", (3, 99), r"mask/a is uint8 \[3, 100\], but its model's is uint8 \[3, 99\]"),
    ],
)
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_a_tensor_has_the_type_and_the_shape_that_is_asked_for(name, dtype, shape, message, precision):
    file = ticket_file.from_bytes(content_of(BYTES | FLOATS, precision))
    with pytest.raises(UserError, match=message):
        file.tensor(name, dtype, shape)


def refused(content: bytes, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        ticket_file.from_bytes(content)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", CONTAINERS)
def test_no_container_but_a_ticket_s_is_read(name):
    content, message = CONTAINERS[name]
    tracemalloc.start()
    refused(content, message)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * len(content) + 2**20, "more than the file itself gives reason for"


def test_a_file_of_more_than_4_gib_is_not_read(tmp_path, monkeypatch):
    place = tmp_path / "t"
    place.write_bytes(GOOD)
    with place.open("r+b") as file:
        file.truncate(2**32 + 1)  # which takes no space
    with pytest.raises(UserError, match="4,294,967,297 bytes; no ticket has more than 4,294,967,296"):
        ticket_file.read(place)
    place.write_bytes(GOOD)
    for most in (len(GOOD), len(GOOD) + 1):
        monkeypatch.setattr(ticket_file, "_LARGEST", most)
        assert ticket_file.read(place).total == len(GOOD)


def test_what_is_no_file_or_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "file").touch()
    none = [tmp_path / name for name in ("none", "file/none", "a\0b")]
    for path, message in ((tmp_path, "it is a folder"), *((each, "there is no such file") for each in none)):
        with pytest.raises(UserError, match=message):
            ticket_file.read(path)
    with pytest.raises(UserError, match=r"^it cannot be read: File name too long$"):
        ticket_file.read(tmp_path / ("a" * 300))


def test_a_megabyte_of_names_is_read_in_one_pass():
    """Each name is looked at a few times, not as often as there are names."""

    class Name(str):
        compared = 0
        __slots__ = ()

        def __eq__(self, other):
            Name.compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    pairs = [(Name(f"n{number}"), 0) for number in range(50_000)]
    assert len(table._each_once(pairs)) == len(pairs)
    with pytest.raises(ValueError, match="has 'n49999' twice"):
        table._each_once([*pairs, (Name("n49999"), 0)])
    assert Name.compared < 20 * len(pairs)

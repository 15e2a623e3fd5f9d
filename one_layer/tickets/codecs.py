"""Codes bits near their entropy: n independent bits, of which the fraction p is set, need n H(p) bits; H is the binary entropy.

If neither bit is rare, zstd's Huffman codes over packed bytes come within 2 % of that. If one bit is rare, nearly all bytes are equal, and
a Huffman code wastes space because it spends at least one bit per byte. Then the gaps between the rare bits are coded instead, which
also comes within 2 %.
"""

import numpy as np
import zstandard
from jaxtyping import Float32, UInt8

from one_layer.layers.quantization import stored_bytes
from one_layer.system.errors import UserError
from one_layer.tickets.precision import dequantize, quantize

CODECS = ("zstd", "zstd-ones", "zstd-zeros")

_WORTH = 0.95  # a code is used only if its size is at most this fraction of the uncoded size
_RARE = 4  # gaps are coded if at most one bit in this many is the rare one
_LONG = 255  # this byte means that the gap continues in the next byte
_BITS = np.left_shift(1, np.arange(8)).astype(np.uint8)
_PART = 2**14  # bytes of gaps that are decoded at once, because each takes about fifty bytes of memory


def encode(raw: bytes, level: int = 1) -> tuple[str | None, bytes]:
    """The shortest code of `raw`, after the name of its codec; None and `raw` itself if no codec saves 5 %. `level` is zstd's level."""
    codes: list[tuple[str | None, bytes]] = [(None, raw), ("zstd", _compress(raw, level))]
    ones = int(np.bitwise_count(np.frombuffer(raw, np.uint8)).sum(dtype=np.int64))
    for codec, rare in (("zstd-ones", ones), ("zstd-zeros", 8 * len(raw) - ones)):
        if rare * _RARE <= 8 * len(raw):
            codes.append((codec, _compress(_gaps(_bits(raw, codec)), level)))
    shortest = min(codes, key=lambda code: len(code[1]))
    return shortest if len(shortest[1]) <= _WORTH * len(raw) else codes[0]


def encode_values(values: Float32[np.ndarray, "*rows columns"], precision: str) -> bytes:
    """Values in `precision`, as one zstd frame: whole numbers near 0 are more frequent than others."""
    return _compress(quantize(values, precision), 19)


def decode_values(precision: str, code: bytes, shape: tuple[int, ...]) -> Float32[np.ndarray, "*rows columns"]:
    """The values of `encode_values`. Raises: UserError for a damaged code, and for one of another size."""
    length = stored_bytes(precision, shape)
    return dequantize(precision, _decompress(code, length, length), shape)


def decode(codec: str, code: bytes, length: int) -> bytes:
    """The `length` bytes that were encoded. It takes memory for at most five times `length` bytes and 1 MB, whatever `code` contains.

    Raises: UserError for another length, an unknown codec and a damaged code.
    """
    if codec == "zstd":
        return _decompress(code, length, length)
    if codec not in CODECS:
        raise UserError(f"the codec {codec!r} is unknown; known are {', '.join(CODECS)}")
    bits = 8 * length
    stream = np.frombuffer(_decompress(code, 0, bits // _RARE + bits // _LONG + 1), np.uint8)
    packed, begin = np.zeros(length, np.uint8), 0
    for part in (stream[first : first + _PART] for first in range(0, len(stream), _PART)):
        ends = part != _LONG
        behind = begin + np.cumsum(part, dtype=np.int64) + np.cumsum(ends)
        places = behind[ends] - 1
        if len(places) and places[-1] >= bits:
            raise UserError("a code of gaps reaches beyond its bits")
        np.add.at(packed, places // 8, _BITS[places % 8])  # no place occurs twice
        begin = behind[-1]
    if codec == "zstd-zeros":
        np.invert(packed, out=packed)
    return packed.tobytes()


def _bits(raw: bytes, codec: str) -> UInt8[np.ndarray, "bits"]:
    """The bits of `raw`, the lowest bit of each byte first, inverted if needed so that the rare bit is 1."""
    packed = np.frombuffer(raw, np.uint8)
    return np.unpackbits(packed if codec == "zstd-ones" else ~packed, bitorder="little")


def _gaps(bits: UInt8[np.ndarray, "bits"]) -> bytes:
    """For every set bit, the number of unset bits since the previous set bit: as many bytes 255 as fit, then the remainder."""
    gaps = np.diff(np.flatnonzero(bits), prepend=-1) - 1
    ends = np.cumsum(gaps // _LONG + 1)
    stream = np.full(ends[-1] if len(ends) else 0, _LONG, np.uint8)
    stream[ends - 1] = gaps % _LONG
    return stream.tobytes()


def _compress(raw: bytes, level: int) -> bytes:
    return zstandard.ZstdCompressor(level=level).compress(raw)


def _decompress(code: bytes, least: int, most: int) -> bytes:
    """Decodes one zstd frame; its header must declare from `least` to `most` bytes of content."""
    try:
        size = zstandard.get_frame_parameters(code).content_size
        if not least <= size <= most:
            wanted = f"{most:,}" if least == most else f"at most {most:,}"
            raise UserError(f"a code declares {size:,} bytes of content where {wanted} are expected")
        return zstandard.ZstdDecompressor().decompress(code, allow_extra_data=False)  # as many as declared, or an error
    except zstandard.ZstdError as error:
        raise UserError(f"a code is not one whole zstd frame ({error})") from None

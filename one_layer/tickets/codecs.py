"""Bits stored near their entropy: n independent bits of which the fraction p is set need n H(p) bits, H being the binary entropy.

zstd's Huffman codes come within 2 % of that over packed bytes while neither bit is rare. Where one is, nearly every byte is the
same, and a Huffman code, which spends at least a bit a byte, wastes most of it; the gaps between the rare bits come within 2 %
there.
"""

from __future__ import annotations

import numpy as np
import zstandard
from jaxtyping import UInt8

from one_layer.errors import UserError

CODECS = ("zstd", "zstd-ones", "zstd-zeros")

_WORTH = 0.95  # of the size as it is; what saves less is not coded
_RARE = 4  # gaps are coded where at most one bit in so many is the rare one
_LONG = 255  # a byte of a gap that goes on


def encode(raw: bytes, level: int = 1) -> tuple[str | None, bytes]:
    """The shortest code of `raw` and its codec; None and `raw` itself where no codec saves 5 %. `level` is zstd's effort."""
    codes: list[tuple[str | None, bytes]] = [(None, raw), ("zstd", _compress(raw, level))]
    ones = sum(byte.bit_count() * count for byte, count in enumerate(_histogram(raw)))
    for codec, rare in (("zstd-ones", ones), ("zstd-zeros", 8 * len(raw) - ones)):
        if rare * _RARE <= 8 * len(raw):
            codes.append((codec, _compress(_gaps(_bits(raw, codec)), level)))
    shortest = min(codes, key=lambda code: len(code[1]))
    return shortest if len(shortest[1]) <= _WORTH * len(raw) else codes[0]


def decode(codec: str, code: bytes, length: int) -> bytes:
    """The `length` bytes that were encoded; memory for a few times as many at most, whatever `code` says.

    Raises: UserError for another length, an unknown codec and a damaged code.
    """
    if codec == "zstd":
        return _decompress(code, length, length)
    if codec not in CODECS:
        raise UserError(f"the codec {codec!r} is unknown; known are {', '.join(CODECS)}")
    bits = 8 * length
    stream = np.frombuffer(_decompress(code, 0, bits // _RARE + bits // _LONG + 1), np.uint8)
    ends = stream != _LONG
    places = np.cumsum(stream, dtype=np.int64)[ends] + np.arange(np.count_nonzero(ends))
    if len(places) and places[-1] >= bits:
        raise UserError("a code of gaps reaches beyond its bits")
    found = np.zeros(bits, np.uint8)
    found[places] = 1
    packed = np.packbits(found, bitorder="little")
    return (packed if codec == "zstd-ones" else ~packed).tobytes()


def _histogram(raw: bytes) -> list[int]:
    return np.bincount(np.frombuffer(raw, np.uint8), minlength=256).tolist()


def _bits(raw: bytes, codec: str) -> UInt8[np.ndarray, "bits"]:
    """The bits of `raw`, the lowest of each byte first, with the rare one set."""
    packed = np.frombuffer(raw, np.uint8)
    return np.unpackbits(packed if codec == "zstd-ones" else ~packed, bitorder="little")


def _gaps(bits: UInt8[np.ndarray, "bits"]) -> bytes:
    """For every bit that is set, how many unset ones stand between it and the one before: as many bytes 255 as fit, and the rest."""
    gaps = np.diff(np.flatnonzero(bits), prepend=-1) - 1
    ends = np.cumsum(gaps // _LONG + 1)
    stream = np.full(ends[-1] if len(ends) else 0, _LONG, np.uint8)
    stream[ends - 1] = gaps % _LONG
    return stream.tobytes()


def _compress(raw: bytes, level: int) -> bytes:
    return zstandard.ZstdCompressor(level=level).compress(raw)


def _decompress(code: bytes, least: int, most: int) -> bytes:
    """One zstd frame, which must say beforehand that its content has from `least` to `most` bytes."""
    try:
        size = zstandard.get_frame_parameters(code).content_size
        if not least <= size <= most:
            wanted = f"{most:,}" if least == most else f"at most {most:,}"
            raise UserError(f"a code unfolds to {size:,} bytes where {wanted} belong")
        content = zstandard.ZstdDecompressor().decompress(code, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise UserError(f"a code is not one whole zstd frame ({error})") from None
    if len(content) != size:
        raise UserError(f"a code unfolds to {len(content):,} bytes and says {size:,}")
    return content

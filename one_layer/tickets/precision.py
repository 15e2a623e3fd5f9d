"""Trained matrices in fewer bits, quantised after training: bfloat16, or int8 and int4 with one scale for each row.

A row is what one input (or one token) contributes: the last axis of a matrix. Its scale is its largest magnitude over 127 or 7, so that
a value x becomes the whole number round(x / scale), and is read as that number times the scale.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float32

QUANTIZED = ("bfloat16", "int8", "int4")  # names of codecs too; float32 is stored as it is, without a codec
_LARGEST = {"int8": 127, "int4": 7}


def quantize(values: Float32[np.ndarray, "*rows columns"], precision: str) -> bytes:
    """The values in `precision`: bfloat16 little-endian; or the scales as little-endian float32, then the whole numbers.

    int8 has a byte for each number. int4 has two numbers plus 8 in each byte, the first one in the lower half. All in C order.
    """
    flat = np.ascontiguousarray(values, "<f4").reshape(-1, values.shape[-1])
    if precision == "bfloat16":
        bits = flat.view("<u4").astype(np.uint64)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2").tobytes()  # to the nearest, ties to even
    largest = _LARGEST[precision]
    scales = (np.abs(flat).max(axis=1, keepdims=True, initial=0.0) / np.float32(largest)).astype("<f4")
    divisors = np.where(scales > 0, scales, np.float32(1.0))
    numbers = np.clip(np.rint(flat / divisors), -largest, largest).astype(np.int8)
    return scales.tobytes() + (numbers.tobytes() if precision == "int8" else _halves(numbers))


def dequantize(precision: str, code: bytes, shape: tuple[int, ...]) -> Float32[np.ndarray, "*rows columns"]:
    """The values of a `code` of `size(precision, shape)` bytes."""
    count = math.prod(shape)
    if precision == "bfloat16":
        return (np.frombuffer(code, "<u2").astype("<u4") << 16).view("<f4").reshape(shape)
    rows = math.prod(shape[:-1])
    scales = np.frombuffer(code, "<f4", rows).reshape(*shape[:-1], 1)
    stored = np.frombuffer(code, np.uint8, offset=4 * rows)
    numbers = stored.view(np.int8) if precision == "int8" else _numbers(stored)[:count]
    return numbers.reshape(shape).astype(np.float32) * scales


def size(precision: str, shape: tuple[int, ...]) -> int:
    """The bytes of the code of an array of this shape."""
    count, rows = math.prod(shape), math.prod(shape[:-1])
    return {"bfloat16": 2 * count, "int8": 4 * rows + count, "int4": 4 * rows + -(-count // 2)}[precision]


def _halves(numbers: np.ndarray) -> bytes:
    halves = (numbers.reshape(-1) + 8).astype(np.uint8)
    halves = np.append(halves, np.zeros(halves.size % 2, np.uint8))
    return (halves[::2] | halves[1::2] << 4).tobytes()


def _numbers(stored: np.ndarray) -> np.ndarray:
    return np.stack([stored & 15, stored >> 4], axis=1).reshape(-1).astype(np.int8) - 8

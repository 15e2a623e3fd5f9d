"""Trained matrices in fewer bits: bfloat16, or int8 and int4 with one scale for each row.

The numbers are those of `one_layer.layers.quantization`, with which a model can be trained (`model.trained_precision`), and where a scale
is called a step. Otherwise they are quantised after training.
"""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32

from one_layer.layers.quantization import LARGEST, LEAST_STEP, PRECISIONS
from one_layer.system.errors import UserError

QUANTIZED = PRECISIONS[1:]  # names of codecs too; float32 is stored as it is, without a codec


def chosen(trained: str, asked: str | None) -> str:
    """The precision of a ticket's matrices: what is `asked` for, or by default what they were `trained` in.

    Raises: UserError for another precision than that of a model that was trained in few bits.
    """
    if asked not in (None, trained) and trained != "float32":
        raise UserError(
            f"the precision {asked} does not fit a model that was trained with model.trained_precision={trained}, because its matrices "
            "would not be those that it was trained with; leave --precision out"
        )
    return asked or trained


def quantize(values: Float32[np.ndarray, "*rows columns"], precision: str) -> bytes:
    """The values in `precision`: bfloat16 little-endian; or the scales as little-endian float32, then the whole numbers.

    int8 has a byte for each number. int4 has two numbers plus 8 in each byte, the first one in the lower half. All in C order.
    """
    flat = np.ascontiguousarray(values, "<f4").reshape(-1, values.shape[-1])
    if precision == "bfloat16":
        return flat.astype(jnp.bfloat16).tobytes()
    largest = LARGEST[precision]
    exact = np.abs(flat).max(axis=1, keepdims=True, initial=0.0) * np.float32(1 / largest)
    scales = exact.astype(jnp.bfloat16).astype("<f4")
    scales = np.where(scales < LEAST_STEP, np.float32(0.0), scales)
    divisors = np.where(scales > 0, scales, np.float32(1.0))
    numbers = np.clip(np.rint(flat / divisors), -largest, largest).astype(np.int8)
    return scales.tobytes() + (numbers.tobytes() if precision == "int8" else _halves(numbers))


def dequantize(precision: str, code: bytes, shape: tuple[int, ...]) -> Float32[np.ndarray, "*rows columns"]:
    """The values of a `code` of `stored_bytes(precision, shape)` bytes."""
    count = math.prod(shape)
    if precision == "bfloat16":
        return np.frombuffer(code, jnp.bfloat16).astype(np.float32).reshape(shape)
    rows = math.prod(shape[:-1])
    scales = np.frombuffer(code, "<f4", rows).reshape(*shape[:-1], 1)
    stored = np.frombuffer(code, np.uint8, offset=4 * rows)
    numbers = stored.view(np.int8) if precision == "int8" else _numbers(stored)[:count]
    return numbers.reshape(shape).astype(np.float32) * scales


def _halves(numbers: np.ndarray) -> bytes:
    halves = (numbers.reshape(-1) + 8).astype(np.uint8)
    halves = np.append(halves, np.zeros(halves.size % 2, np.uint8))
    return (halves[::2] | halves[1::2] << 4).tobytes()


def _numbers(stored: np.ndarray) -> np.ndarray:
    return np.stack([stored & 15, stored >> 4], axis=1).reshape(-1).astype(np.int8) - 8

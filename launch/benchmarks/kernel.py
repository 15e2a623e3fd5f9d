"""Products with W ⊙ M from one bit for each entry of M: a Pallas kernel for Hopper GPUs, beside XLA's way and matrices masked beforehand.

The kernel is an experiment. It is tested in Pallas' interpreter and compiles for GPUs, but nobody has measured it yet; so no model uses it.
XLA unpacks a mask and writes W ⊙ M to memory at every use. The kernel makes each tile of W ⊙ M where it is multiplied, and reads W, which
all layers share and a GPU's cache holds, and the bits. Where W is ±c, it reads a bit for the sign instead of W.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as gpu
from jaxtyping import Array, Bool, Float, UInt8

from configs.common import SIZES
from launch.benchmarks.workloads import in_turn
from one_layer.supermask import unpack
from one_layer.system.errors import UserError

_TILE = 64  # outputs, and inputs, of a tile of W: a tile's row is as long as the widest swizzle, 128 bytes
_WIDEST = 256  # the most rows of x in one product of the tensor cores
_ROWS = (64, 192, 2560)  # 8, 32 and 512 sentences with beam 5, rounded up

# Weights are [outputs, inputs] here, the order in which the tensor cores take tiles of 64 outputs also for few rows of x.
Planes = UInt8[Array, "outputs/8 inputs"]


def planes(bits: Bool[Array, "outputs inputs"]) -> Planes:
    """Packs `bits`: bit p of byte [j, k] is that of entry [p · outputs/8 + j, k].

    So a tile of W needs the same bit of each of its bytes, and no bit has to move to another place.
    """
    return jnp.packbits(bits.reshape(8, -1, bits.shape[1]), axis=0, bitorder="little")[0]


def product(
    x: Float[Array, "rows inputs"],
    weights: Float[Array, "outputs inputs"] | Planes,
    mask: Planes,
    interpret: Any = None,
) -> Float[Array, "rows outputs"]:
    """x (W ⊙ M)ᵀ with float32 sums. `x` and W are bfloat16. `weights` may be the planes of W's signs (1: negative) where W is ±1.

    Rows must be a multiple of 64 up to 256, or of 256; inputs of 64; outputs of 512.
    """
    (rows, inputs), outputs = x.shape, 8 * len(mask)
    tiles, width = len(mask) // _TILE, min(rows, _WIDEST)
    signs = weights.dtype == jnp.uint8

    def kernel(w_all: Any, mask_all: Any, x_all: Any, y_all: Any) -> None:
        tile, block = lax.axis_index("tile"), lax.axis_index("block")
        plane, row = tile // tiles, tile % tiles

        def bit(ref: Any) -> Array:
            return (ref[...].astype(jnp.int32) >> plane) & 1

        def add(w: Any, mask: Any, x: Any, total: Any, masked: Any) -> None:
            values = (1 - 2 * bit(w)).astype(x_all.dtype) if signs else w[...]
            masked[...] = values * bit(mask).astype(x_all.dtype)
            gpu.commit_smem()
            gpu.wgmma(total, masked, x)
            gpu.wgmma_wait(0)

        def sums(masked: Any, total: Any) -> Array:
            gpu.emit_pipeline(
                lambda _, w, mask, x: add(w, mask, x, total, masked),
                grid=(inputs // _TILE,),
                in_specs=[
                    _tiles(w_all, _TILE, _TILE, lambda k: (row if signs else tile, k)),
                    _tiles(mask_all, _TILE, _TILE, lambda k: (row, k)),
                    _tiles(x_all, _TILE, width, lambda k: (k, block)),
                ],
                max_concurrent_steps=2,
            )(w_all, mask_all, x_all)
            return total[...]

        def write(made: Any, found: Array) -> None:
            made[...] = found
            gpu.commit_smem()
            gpu.copy_smem_to_gmem(made, y_all.at[pl.ds(tile * _TILE, _TILE), pl.ds(block * width, width)])
            gpu.wait_smem_to_gmem(0)

        total = gpu.ACC((_TILE, width), jnp.float32)
        masked = gpu.SMEM((_TILE, _TILE), x_all.dtype, transforms=_transforms(x_all, _TILE))
        found = pl.run_scoped(lambda masked: pl.run_scoped(partial(sums, masked), total), masked)
        pl.run_scoped(lambda made: write(made, found), gpu.SMEM((_TILE, width), jnp.float32))

    run = gpu.kernel(
        kernel,
        out_type=jax.ShapeDtypeStruct((outputs, rows), jnp.float32),
        grid=(outputs // _TILE, rows // width),
        grid_names=("tile", "block"),
        interpret=interpret,
    )
    return run(weights, mask, x.T).T


def _tiles(array: Any, rows: int, columns: int, place: Callable[[Any], tuple[Any, Any]]) -> Any:
    return gpu.BlockSpec((rows, columns), place, transforms=_transforms(array, columns))


def _transforms(array: Any, columns: int) -> tuple[Any, Any]:
    """The layout of tiles in shared memory that the tensor cores read."""
    bits = 8 * array.dtype.itemsize
    swizzle = gpu.find_swizzle(columns * bits)
    return gpu.TilingTransform((8, 8 * swizzle // bits)), gpu.SwizzleTransform(swizzle)


def sides(rows: int, inputs: int, outputs: int, layers: int, interpret: Any = None) -> dict[str, Callable[[], Array]]:
    """Ways to multiply x with one W = ±1 under the masks of all layers; each returns [layers, rows, outputs]."""
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (rows, inputs), jnp.bfloat16)
    signs = jax.random.bernoulli(keys[1], 0.5, (outputs, inputs))
    kept = jax.random.bernoulli(keys[2], 0.5, (layers, outputs, inputs))
    weights = jnp.where(signs, -1, 1).astype(jnp.bfloat16)
    packed, masks = jnp.packbits(kept.reshape(layers, -1), axis=1, bitorder="little"), jax.vmap(planes)(kept)

    def dense(x: Array, matrix: Array) -> Array:
        return jnp.einsum("ri,oi->ro", x, matrix, preferred_element_type=jnp.float32)

    def unpacked(x: Array, weights: Array, bits: Array) -> Array:
        return dense(x, weights * unpack(bits, weights.shape).astype(weights.dtype))

    def all_layers(one: Callable[..., Array], *shared: Array, each: Array) -> Callable[[], Array]:
        return partial(jax.jit(lambda each, *shared: jnp.stack([one(*shared, layer) for layer in each])), each, *shared)

    return {
        "materialized": all_layers(dense, x, each=weights * kept.astype(weights.dtype)),
        "xla": all_layers(unpacked, x, weights, each=packed),
        "kernel": all_layers(partial(product, interpret=interpret), x, weights, each=masks),
        "signs": all_layers(partial(product, interpret=interpret), x, planes(signs), each=masks),
    }


def measure(size: str, quick: bool) -> dict[str, Any]:
    """Measures the seconds of the products with all layers' masks of one matrix. Raises: UserError without a Hopper GPU."""
    if getattr(jax.devices()[0], "compute_capability", "") != "9.0":
        raise UserError(f"the kernel is for Hopper GPUs, and this device is {jax.devices()[0].device_kind}; use one")
    d, ffn, _, layers = SIZES[size]
    rows = []
    for count in _ROWS[: 1 if quick else None]:
        for inputs, outputs in ((d, d), (d, ffn), (ffn, d)):
            seconds = in_turn(sides(count, inputs, outputs, layers), 3 if quick else 15)
            rows.append({"rows": count, "inputs": inputs, "outputs": outputs, "layers": layers, **seconds})
    return {"products": rows}

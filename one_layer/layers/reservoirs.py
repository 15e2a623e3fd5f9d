"""Blocks of reservoirs that are no Transformer layer: a recurrence and a convolution (arXiv 2012.15045, section 2).

The paper names a bidirectional GRU and "light dynamical convolution layers" (Wu et al. 2019, arXiv 1901.10430), without equations. In
this project's reading, such a block takes the place of all of a layer's blocks: x + block(LayerNorm(x)), or LayerNorm(x + block(x)).
In a decoder, both see the past alone, and the collection `cache` holds the state that the next step needs.
"""

from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from one_layer.layers.matrix import Matrix, Projection
from one_layer.layers.products import product
from one_layer.layers.settings import DIRECTIONS, GATES, WIDTH
from one_layer.supermask import Supermask


class Recurrence(nn.Module):
    """A GRU without biases (Cho et al. 2014, arXiv 1406.1078; the form of Chung et al. 2014 that torch and cuDNN compute).

    r = σ(x W_r + h U_r), z = σ(x W_z + h U_z), n = tanh(x W_n + r ⊙ (h U_n)), and the next h is (1 - z) ⊙ n + z ⊙ h. The output is h.
    With `both_ways`, one GRU of half the width reads forward and another one backward. Pads leave h as it is.
    """

    kind: str
    mask: Supermask
    dtype: str
    both_ways: bool

    @nn.compact
    def __call__(
        self, x: Float[Array, "batch length d"], real: Bool[Array, "#batch length"], stepping: bool
    ) -> Float[Array, "batch length d"]:
        """`real` is false at pads. With `stepping`, x has one position of every beam, and `cache/state` [batch, beams, d] is h."""
        directions = DIRECTIONS[self.both_ways]
        outputs = []
        for direction in directions:
            width = x.shape[-1] // len(directions)
            inputs, recurrent = self._matrices(direction, x, width)
            if stepping:
                state = _next_state(recurrent, self.get_variable("cache", "state"), inputs)
                self.put_variable("cache", "state", state)
                outputs.append(state)
            else:
                outputs.append(_states(inputs, recurrent, real, backward=direction == "backward"))
        return jnp.concatenate(outputs, axis=-1)

    def _matrices(self, direction: str, x: Array, width: int) -> tuple[Array, Array]:
        """x W of the three gates, [..., 3, width], and the matrices U, [3, width, width]."""
        inputs = [
            Projection(width, self.kind, self.mask, False, self.dtype, name=f"{direction}_{gate}_input")(x)
            for gate in GATES
        ]
        recurrent = [Matrix((width, width), self.kind, self.mask, name=f"{direction}_{gate}_state")() for gate in GATES]
        return jnp.stack(inputs, axis=-2), jnp.stack(recurrent).astype(self.dtype)


def _next_state(
    recurrent: Float[Array, "3 width width"], state: Float[Array, "*rows width"], inputs: Float[Array, "*rows 3 width"]
) -> Float[Array, "*rows width"]:
    kept = product("...i,gij->...gj", state, recurrent, state.dtype).astype(state.dtype)
    reset, update = (jax.nn.sigmoid(inputs[..., gate, :] + kept[..., gate, :]) for gate in (0, 1))
    new = jnp.tanh(inputs[..., 2, :] + reset * kept[..., 2, :])
    return (1 - update) * new + update * state


def _states(
    inputs: Float[Array, "batch length 3 width"], recurrent: Array, real: Bool[Array, "#batch length"], backward: bool
) -> Float[Array, "batch length width"]:
    """h at every position of whole sequences."""
    real = jnp.broadcast_to(real, inputs.shape[:2])

    def step(state: Array, item: tuple[Array, Array]) -> tuple[Array, Array]:
        inputs, real = item
        state = jnp.where(real[:, None], _next_state(recurrent, state, inputs), state)
        return state, state

    start = jnp.zeros((inputs.shape[0], inputs.shape[-1]), inputs.dtype)
    items = jnp.swapaxes(inputs, 0, 1), jnp.swapaxes(real, 0, 1)
    return jnp.swapaxes(jax.lax.scan(step, start, items, reverse=backward)[1], 0, 1)


class Convolution(nn.Module):
    """A dynamic convolution (Wu et al. 2019, arXiv 1901.10430, sections 3 and 4, with the module of figure 2).

    A projection to 2 d and a gated linear unit, then one kernel of `WIDTH` positions for each of `heads` groups of channels, normalised
    by a softmax over its positions, then a projection. The kernel is made of the token at its place by a projection. It reaches to both
    sides, or to the past alone. Pads are zeros.
    """

    kind: str
    mask: Supermask
    dtype: str
    heads: int
    both_ways: bool

    @nn.compact
    def __call__(
        self, x: Float[Array, "batch length d"], real: Bool[Array, "#batch length"], stepping: bool
    ) -> Float[Array, "batch length d"]:
        """`real` is false at pads. With `stepping`, x has one position of every beam; `cache/state` has the WIDTH - 1 before it."""
        project = partial(Projection, kind=self.kind, mask=self.mask, bias=False, dtype=self.dtype)
        gated = nn.glu(project(2 * x.shape[-1], name="in")(x)) * real[..., None]
        kernels = project(self.heads * WIDTH, name="kernels")(gated).reshape(*x.shape[:2], self.heads, -1)
        weights = jax.nn.softmax(kernels.astype(jnp.float32)).astype(self.dtype)
        window = self._step(gated) if stepping else self._windows(gated)
        window = window.reshape(*window.shape[:-1], self.heads, -1)
        mixed = product("...khc,...hk->...hc", window, weights, self.dtype)
        return project(x.shape[-1], name="out")(mixed.reshape(x.shape))

    def _windows(self, x: Float[Array, "batch length d"]) -> Float[Array, "batch length width d"]:
        """The positions that each kernel covers, in order."""
        length, after = x.shape[1], WIDTH // 2 if self.both_ways else 0
        padded = jnp.pad(x, ((0, 0), (WIDTH - 1 - after, after), (0, 0)))
        return jnp.stack([padded[:, first : first + length] for first in range(WIDTH)], axis=2)

    def _step(self, x: Float[Array, "batch beams d"]) -> Float[Array, "batch beams width d"]:
        window = jnp.concatenate([self.get_variable("cache", "state"), x[:, :, None]], axis=2)
        self.put_variable("cache", "state", window[:, :, 1:])
        return window


def empty_state(block: str, batch: int, beams: int, d_model: int, dtype: str) -> dict[str, dict[str, Array]]:
    """The collection `cache` of one decoder layer with the block `ffn`, `gru` or `conv`; it belongs to beams and is reordered with them."""
    shapes = {"gru": (d_model,), "conv": (WIDTH - 1, d_model)}
    return {block: {"state": jnp.zeros((batch, beams, *shapes[block]), dtype)}} if block in shapes else {}

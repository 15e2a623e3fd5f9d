"""Counts a model's parameters and the bytes that it takes to store, from shapes alone, and compares them with the paper's counts.

Table 1 of the paper (arXiv 2109.03939) gives "Param (no mask)": the kept fraction of one encoder layer, one decoder layer and both
embeddings. But the L masks over a shared layer keep different weights: together, independent masks keep 1 - (1 - keep)^L of them,
which is 98 % at keep 0.5 and L = 6. A mask halves the weights that a layer multiplies by, but not the weights that must be stored.
"""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from one_layer.layers.freezing import STACKS
from one_layer.layers.quantization import stored_bytes
from one_layer.layers.trees import Path, Shape, Variables, flatten_dict
from one_layer.models.config import ModelConfig
from one_layer.models.trained import count_trained
from one_layer.models.weights import shapes
from one_layer.supermask import Supermask, kept_count
from one_layer.system.errors import UserError

Account = dict[str, dict[str, int]]


def account(config: ModelConfig, variables: Variables | None = None) -> Account:
    """Counts a model's `parameters` and `bytes`. No weights are drawn, so the count is cheap for models of any size.

    What layers share counts once, and frozen parts are not trained.

    - `dense`, `dense_float32`: the parameters and the bytes of a dense model of this shape;
    - `trained`; `random`: drawn from the seed, never trained; `frozen`: fixed, not from the seed; `kept`: ones in all masks;
    - `no_mask`: "Param (no mask)" of the paper's Table 1;
    - `shared`: random weights under several masks; `shared_used`: of these, those that any of independent masks is expected to keep;
    - `ticket`: all arrays that no seed gives, in the precision in which they are trained, without vocabularies and headers.

    `variables` are the model's. They are needed only for selections by a threshold, where the scores decide how many weights pass.
    Raises: UserError if they are needed and not given.
    """
    own = shapes(config)
    masks = {path[1:-1]: shape for path, shape in own.items() if path[-1] == "scores"}
    fixed = {path[1:]: shape for path, shape in own.items() if path[0] in ("random", "frozen")}
    kept = {module: _kept(config, module, shape, variables) for module, shape in masks.items()}
    sizes = {name: _size(own, name) for name in ("params", "random", "frozen")}
    others = sizes["params"] - sum(map(math.prod, masks.values()))  # weights that the ticket stores, not scores
    parameters = {
        "trained": count_trained(config),
        "random": sizes["random"],
        "kept": round(sum(math.prod(masks[module][-2:]) * sum(fractions) for module, fractions in kept.items())),
        "frozen": sizes["frozen"],
        "dense": _size(shapes(_dense(config)), "params"),
        **_use(fixed, kept, others),
    }
    return {
        "parameters": parameters,
        "bytes": {"ticket": ticket_bytes(config), "dense_float32": 4 * parameters["dense"]},
    }


def ticket_bytes(config: ModelConfig) -> int:
    """The bytes of the packed masks, and of all other arrays that no seed gives, in the precision in which they are trained."""
    total = 0
    for path, shape in shapes(config).items():
        if path[-1] == "scores":  # each mask, of each kind of bits, begins a byte of its own
            total += math.prod(shape[:-2]) * len(config.supermask.kinds) * -(-math.prod(shape[-2:]) // 8)
        elif path[0] in ("params", "frozen"):
            total += stored_bytes(config.precisions.of(path[-1], shape), shape)
    return total


def describe_ticket(config: ModelConfig) -> list[str]:
    """A line for people about the size of a ticket; none for a model that has no ticket."""
    if not any(path[0] == "random" for path in shapes(config)):
        return []
    return [
        f"the weights in the ticket will take at most {ticket_bytes(config):,} bytes; its vocabularies, BPE codes and settings come on top"
    ]


def _kept(config: ModelConfig, module: Path, shape: Shape, variables: Variables | None) -> list[float]:
    """The fraction that each of the masks of `module` keeps, of scores [fan_in, fan_out] or [layer, fan_in, fan_out]."""
    size, masks = math.prod(shape[-2:]), math.prod(shape[:-2])
    if config.selection == "sign":
        return [1.0] * masks
    if config.supermask.exact:
        return [int(kept_count(size, config.keep)) / size] * masks
    if variables is None:
        raise UserError(
            f"model.selection is {config.selection!r}, so only the scores tell how much the masks keep; give the model's variables too"
        )
    scores = flatten_dict(variables)["params", *module, "scores"].reshape(masks, *shape[-2:])
    return [int(ones) / size for ones in _ones(config.supermask, scores)]


@partial(jax.jit, static_argnums=0)
def _ones(supermask: Supermask, scores: Float[Array, "masks fan_in fan_out"]) -> Int[Array, "masks"]:
    return jax.lax.map(lambda layer: jnp.count_nonzero(supermask(layer)), scores)


def _use(fixed: Mapping[Path, Shape], kept: Mapping[Path, list[float]], others: int) -> dict[str, int]:
    """How many fixed weights a mask keeps on average, plus `others`; and those under several masks, and how many any of these keeps."""
    no_mask, shared, shared_used = float(others), 0, 0.0
    for path, shape in fixed.items():
        number, fractions = math.prod(shape), kept.get(path[:-1], [1.0])
        no_mask += number * sum(fractions) / len(fractions)
        if len(shape) == 2 and len(fractions) > 1:  # one matrix, several masks
            shared += number
            shared_used += number * (1.0 - math.prod(1.0 - each for each in fractions))
    return {"no_mask": round(no_mask), "shared": shared, "shared_used": round(shared_used)}


def _size(shapes: Mapping[Path, Shape], collection: str) -> int:
    return sum(math.prod(shape) for path, shape in shapes.items() if path[0] == collection)


def _dense(config: ModelConfig) -> ModelConfig:
    """A dense model of the same shape: every layer has matrices of its own, biases and affine norms."""
    names = (
        *("source_vocab", "target_vocab", "d_model", "ffn", "heads", "shared_embedding"),
        *("block", "norm_position", "embedding_norm"),
    )
    shape: dict[str, Any] = {name: getattr(config, name) for name in names}
    shape |= {f"{stack}_layers": config.depth(stack) for stack in STACKS}
    if config.position_rows:  # also a table that is not trained here is one that a dense model would store
        shape |= {"positions": "learned", "max_positions": config.max_positions}
    return ModelConfig(**shape, weights="dense", family=config.family)

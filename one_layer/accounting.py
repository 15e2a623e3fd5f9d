"""What a model has and what storing it takes, counted from shapes alone, beside the way that the paper counts.

Table 1 of the paper (arXiv 2109.03939) gives "Param (no mask)": the kept fraction of one encoder layer, one decoder layer and both
embeddings. But the L masks over a shared layer do not keep the same weights: independent ones together keep 1 - (1 - keep)^L of
them, 98 % at keep 0.5 and L = 6. A mask halves what a layer multiplies by, and not what has to be stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import jax
import jax.numpy as jnp

from one_layer.models import ModelConfig, build
from one_layer.supermask import kept_count

Shape = tuple[int, ...]
Path = tuple[str, ...]
Account = dict[str, dict[str, int]]

_TITLES = {
    "dense": "parameters of a dense model of this shape",
    "trained": "trained",
    "random": "random: drawn from the seed, never trained",
    "frozen": "frozen: fixed, from elsewhere",
    "kept": "kept: ones in all masks",
    "no_mask": "no_mask: Param (no mask) of the paper's Table 1",
    "used": "used: the same, with all that some mask keeps",
    "shared": "shared: random weights under several masks",
    "shared_used": "shared_used: those that some of these keeps",
    "dense_float32": "bytes of a dense model of this shape",
    "ticket": "ticket: seed, masks and what else is trained",
    "ticket_with_weights": "ticket_with_weights: and the random weights",
}


def account(config: ModelConfig) -> Account:
    """Counts a model's `parameters` and `bytes`; nothing is drawn, so that the largest model costs no more than a small one.

    Of parameters: `trained`, the entries of `params`, scores or weights; `random`, drawn from the seed, a matrix that layers share
    once; `frozen`, fixed and from elsewhere; `kept`, the ones in all masks; `dense`, the whole of a dense model of this shape;
    `no_mask`, Table 1's "Param (no mask)"; `used`, the same with every weight that at least one mask keeps, expected of
    independent masks; `shared` and `shared_used`, the random weights under several masks each, and those of them that are used.

    Of bytes, vocabularies and headers apart: `ticket`, the packed masks and in float32 what else is trained or frozen;
    `ticket_with_weights`, the same and the random weights; `dense_float32`, the dense model.
    """
    shapes = _shapes(config)
    params, random, frozen = (shapes.get(name, {}) for name in ("params", "random", "frozen"))
    masks = {path[:-1]: shape for path, shape in params.items() if path[-1] == "scores"}
    others = _size(params) - _size(masks)  # trained as they are
    no_mask = used = float(others)
    shared, shared_used = 0, 0.0
    for path, shape in (random | frozen).items():
        number, keep, several = math.prod(shape), 1.0, 1
        if path[:-1] in masks:
            mask = masks[path[:-1]]
            keep = _kept(mask, config) / math.prod(mask)
            several = mask[0] if len(mask) > len(shape) else 1
        union = number * (1.0 - (1.0 - keep) ** several)
        no_mask, used = no_mask + number * keep, used + union
        if several > 1:
            shared, shared_used = shared + number, shared_used + union
    parameters = {
        "trained": _size(params),
        "random": _size(random),
        "kept": sum(_kept(mask, config) for mask in masks.values()),
        "frozen": _size(frozen),
        "dense": _size(_shapes(_dense(config))["params"]),
        "no_mask": round(no_mask),
        "used": round(used),
        "shared": shared,
        "shared_used": round(shared_used),
    }
    ticket = sum(-(-math.prod(mask) // 8) for mask in masks.values()) + 4 * (others + parameters["frozen"])
    return {
        "parameters": parameters,
        "bytes": {
            "ticket": ticket,
            "ticket_with_weights": ticket + 4 * parameters["random"],
            "dense_float32": 4 * parameters["dense"],
        },
    }


def describe(accounts: Mapping[str, Account]) -> str:
    """A table of accounts for people, a column a model."""
    models = [each["parameters"] | each["bytes"] for each in accounts.values()]
    rows = [["", *accounts], *([title, *(f"{each[name]:,}" for each in models)] for name, title in _TITLES.items())]
    shares = [each["shared_used"] / each["shared"] if each["shared"] else None for each in models]
    rows.append(["share of shared_used", *("none" if share is None else f"{share:.2%}" for share in shares)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([title.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))])
        for title, *cells in rows
    )


def _kept(mask: Shape, config: ModelConfig) -> int:
    """The ones in the masks of one path, [fan_in, fan_out] or [layer, fan_in, fan_out]: each keeps its own k."""
    return math.prod(mask[:-2]) * int(kept_count(math.prod(mask[-2:]), config.keep))


def _size(shapes: Mapping[Path, Shape]) -> int:
    return sum(map(math.prod, shapes.values()))


def _dense(config: ModelConfig) -> ModelConfig:
    """A dense model of the same shape: every layer its own matrices, with biases and affine norms."""
    names = ("source_vocab", "target_vocab", "d_model", "ffn", "heads", "encoder_layers", "decoder_layers")
    shape = {name: getattr(config, name) for name in (*names, "shared_embedding")}
    return ModelConfig(**shape, weights="dense")


@lru_cache(maxsize=16)  # most models in a table have the same dense one
def _shapes(config: ModelConfig) -> dict[str, dict[Path, Shape]]:
    """The shapes of a model's variables by collection and path, as its modules declare them."""
    tokens = jax.ShapeDtypeStruct((1, 2), jnp.int32)
    collections = jax.eval_shape(build(config).init, jax.random.key(0), tokens, tokens)
    return {
        name: {
            tuple(str(key.key) for key in path): leaf.shape for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
        }
        for name, tree in collections.items()
    }

"""Describes what is inside a ticket: the recipe of every matrix, the size and density of its masks, and how much they overlap.

The Jaccard index of two masks is the number of weights that both keep, over the number that either keeps. Independent masks that keep p
and q of the same weights have the index pq / (p + q - pq), and L independent masks leave Π(1 - p_l) of the weights unused. Trained masks
that overlap more, or use fewer weights, have something in common.
"""

import math
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from one_layer.models import recipes
from one_layer.tickets.settings import Settings
from one_layer.tickets.ticket import describe_checkpoint, read

_EXPLAINED = (
    "kept by layer: per cent of the weights. bound: bytes at H(kept) bits per weight, for independent bits. Jaccard: of the",
    "weights that either of two layers keeps, the share that both keep; mean over pairs. used: kept by any layer. indep.: for",
    "independent masks.",
)


@dataclass(frozen=True)
class Matrix:
    """A matrix and its masks; one without masks has no densities. Sizes are in bytes, and `bound` is H(density) bits per weight.

    `overlap` of masks over one matrix: the mean `jaccard` index over pairs, and the share of weights `used` by any mask, each also for
    independent masks; empty without several of them.
    """

    role: str
    recipe: str
    shape: tuple[int, int]
    density: tuple[float, ...]
    stored: int
    bound: float
    overlap: dict[str, float]


@dataclass(frozen=True)
class Inspection:
    """The settings and matrices of a ticket, and the bytes of the whole file, of arrays other than masks, and of text."""

    settings: Settings
    matrices: tuple[Matrix, ...]
    total: int
    arrays: int
    text: int


def inspect(path: str | Path) -> Inspection:
    """Inspects a ticket's file. Raises: UserError as `one_layer.tickets.ticket.load` does."""
    file, ticket = read(path)
    sizes = {name: tensor.nbytes for name, tensor in file.tensors.items()}
    matrices = []
    for module, recipe in recipes(ticket.config).items():
        drawn = ticket.drawn.get(module)
        masks = {path[-1]: bits for path, bits in ticket.masks.items() if path[:-1] == module}
        if drawn or masks:
            stored = sum(sizes[f"{kind}/{recipe.role}"] for kind in masks)
            made = f"{drawn.recipe.scheme} × {drawn.recipe.scale:.4g}" if drawn else "stored"
            shared = ticket.config.sharing == "weights"
            matrices.append(_matrix(recipe.role, made, recipe.shape, masks, stored, shared))
    text = sum(size for name, size in sizes.items() if name.startswith("text/"))
    arrays = sum(sizes.values()) - text - sum(matrix.stored for matrix in matrices)
    return Inspection(ticket, tuple(matrices), file.total, arrays, text)


def masks(inspection: Inspection) -> list[dict[str, Any]]:
    """Of each matrix with masks, as plain values: its role, the share that each depth keeps, and how far the depths overlap."""
    return [
        {"role": matrix.role, "kept": list(matrix.density), "overlap": matrix.overlap}
        for matrix in inspection.matrices
        if matrix.density
    ]


def describe(inspection: Inspection) -> str:
    """A table for people: one row per matrix, the sums, and an explanation of both. A dense model has the sums alone."""
    ticket, masked = inspection.settings, any(matrix.density for matrix in inspection.matrices)
    config, checkpoint = ticket.config, describe_checkpoint(ticket.step, ticket.checkpoint)
    head = ["role", "matrix", "drawn", "kept by layer", "bytes", "bound", "Jaccard", "indep.", "used", "indep."]
    rows = [head]
    for matrix in inspection.matrices:
        shares = [f"{share:.1%}" for share in matrix.overlap.values()]
        rows.append(
            [
                matrix.role,
                " × ".join(map(str, matrix.shape)),
                matrix.recipe,
                _kept(matrix.density),
                f"{matrix.stored:,}",
                f"{matrix.bound:,.0f}",
                *shares,
                *[""] * (4 - len(shares)),
            ]
        )
    masks, bound = (sum(getattr(matrix, name) for matrix in inspection.matrices) for name in ("stored", "bound"))
    rest = inspection.total - masks - inspection.arrays - inspection.text
    by = f", keep {config.keep:g}" if config.supermask.exact else f", threshold {config.threshold:g}"
    selected = f"masks by {config.selection}{'' if config.selection == 'sign' else by}; " if masked else ""
    of_masks = f"masks {masks:,} (bound {bound:,.0f}), " if masked else ""
    return "\n".join(
        [
            f"{config.weights} {config.network_family.describe(config)}, d_model {config.d_model}, ffn "
            f"{config.ffn}, {config.heads} heads; seed {ticket.seed}, {checkpoint}",
            f"{selected}embedding {config.embedding}{f'; text by Unicode {ticket.unicode}' if ticket.unicode else ''}",
            "",
            *([*_aligned(rows), ""] if inspection.matrices else []),
            f"{inspection.total:,} bytes: {of_masks}other arrays {inspection.arrays:,}, vocabularies and "
            f"codes {inspection.text:,}, header {rest:,}",
            *(_EXPLAINED if masked else ()),
        ]
    )


def _kept(density: tuple[float, ...]) -> str:
    """The per cent of every layer, written once if all layers have the same."""
    each = [f"{100 * share:.1f}" for share in density]
    return " ".join(each) if len(set(each)) > 1 or len(each) < 2 else f"{len(each)} × {each[0]}"


def _matrix(
    role: str, recipe: str, shape: tuple[int, ...], masks: dict[str, np.ndarray], stored: int, shared: bool
) -> Matrix:
    size = math.prod(shape)
    rows = {kind: bits.reshape(-1, bits.shape[-1]) for kind, bits in masks.items()}
    shares = {kind: [int(ones) / size for ones in _ones(bits)] for kind, bits in rows.items()}
    kept = shares.get("mask") or [1.0] * len(shares.get("sign", []))
    negative = shares.get("sign") or [0.0] * len(kept)
    bound = sum(_entropy(1 - p, p - q, q) for p, q in zip(kept, negative, strict=True)) * size / 8
    overlap = _overlap(rows["mask"], kept, size) if shared and len(kept) > 1 and "mask" in rows else {}
    return Matrix(role, recipe, (shape[0], shape[1]), tuple(kept), stored, bound, overlap)


def _overlap(masks: UInt8[np.ndarray, "layers bytes"], density: list[float], size: int) -> dict[str, float]:
    """In the order of the columns of the table."""
    jaccard, independent = [], []
    for one, other in combinations(range(len(masks)), 2):
        p, q = density[one], density[other]
        either = int(_ones(masks[one] | masks[other]))
        jaccard.append(int(_ones(masks[one] & masks[other])) / either if either else 1.0)
        independent.append(p * q / (p + q - p * q) if p or q else 1.0)
    used = int(_ones(np.bitwise_or.reduce(masks))) / size
    return {
        "jaccard": float(np.mean(jaccard)),
        "independent_jaccard": float(np.mean(independent)),
        "used": used,
        "independent_used": 1.0 - math.prod(1.0 - p for p in density),
    }


def _ones(bits: UInt8[np.ndarray, "*rows bytes"]) -> Any:
    """The number of set bits in every row."""
    return np.bitwise_count(bits).sum(axis=-1, dtype=np.int64)


def _entropy(*probabilities: float) -> float:
    """The entropy in bits."""
    return -sum(p * math.log2(p) for p in probabilities if p > 0.0)


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]

"""A look at the masks of a trained model: what two depths share, what is kept, and what happens if some bits are flipped.

.venv/bin/python -m examples.look_at_masks
"""

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import numpy as np

import one_layer

TICKET = Path(__file__).parent.parent / "tickets" / "multi30k-en-de-wide.safetensors"
LINES = ["two dogs run through the snow .", "a man is riding a bike ."]


def same(mask: np.ndarray) -> float:
    """The share of weights that two depths both keep or both drop, on average over all pairs of depths; 0.5 by chance."""
    return float(np.mean([np.mean(one == other) for one, other in combinations(mask, 2)]))


def kept_by_size(mask: np.ndarray, weights: np.ndarray) -> list[float]:
    """The share that is kept of each quarter of the weights, from the smallest magnitudes to the largest."""
    masks = mask.reshape(-1, weights.size)  # one row for each depth
    quarters = np.array_split(np.argsort(np.abs(weights), axis=None), 4)
    return [float(masks[:, places].mean()) for places in quarters]


def flipped(masks: Mapping[str, np.ndarray], share: float) -> dict[str, np.ndarray]:
    """Masks in which a random `share` of all bits is the other one."""
    dice = np.random.default_rng(1)
    return {role: np.where(dice.random(mask.shape) < share, 1 - mask, mask) for role, mask in masks.items()}


def main() -> dict[float, list[str]]:
    model = one_layer.load(TICKET)
    print(model)
    print("\nmatrix: same bits in two depths; kept of each quarter of the weights, from small to large")
    for role, mask in model.masks.items():
        depths = f"{same(mask):.3f}" if mask.ndim == 3 else "one mask"
        kept = ", ".join(f"{share:.2f}" for share in kept_by_size(mask, model.random[role]))
        print(f"{role}: {depths}; {kept}")
    translations = {}
    for share in (0.0, 0.05, 0.2, 0.5):
        translations[share] = model.with_masks(flipped(model.masks, share)).lines(LINES)
        print(f"\n{share:.0%} of the bits flipped:", *translations[share], sep="\n  ")
    return translations


if __name__ == "__main__":
    main()

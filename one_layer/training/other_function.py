"""The keys by which arrays that a run takes over (`train.init_from`) compute other numbers than in the run that they come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from one_layer.layers.freezing import STACKS
from one_layer.layers.quantization import VECTORS, is_matrix
from one_layer.models import ModelConfig, shapes
from one_layer.own_selection import is_own

Taken = Mapping[tuple[str, ...], np.ndarray]


def other_function(here: ModelConfig, there: ModelConfig, taken: Taken) -> list[str]:
    """A line for people for each key in which the models differ, as far as it changes what the `taken` parameters compute.

    Keys that must be the same are refused before this, and arrays that one of the models lacks are listed beside it. All other keys are
    for training alone, or for arrays that are new.
    """
    of_masks = _of_masks(here) | _of_masks(there) if any(path[-1] == "scores" for path in taken) else set()
    keys = [(key, "scores give other masks") for key in sorted(of_masks)]
    keys += [(key, "arrays compute other numbers") for key in _of_all(here, there, taken)]
    return [
        f"model.{key} is {getattr(here, key)}, but it is {getattr(there, key)} there: the same {effect}"
        for key, effect in keys
        if getattr(here, key) != getattr(there, key)
    ]


def _of_masks(model: ModelConfig) -> set[str]:
    """The keys that decide which masks scores give."""
    deciding = {"selection", "dynamic_scale", "coats"}
    own = is_own(model.selection)  # whatever it does with them
    by_keep, by_threshold = own or model.supermask.exact, own or "threshold" in model.selection
    return deciding | ({"keep"} if by_keep else set()) | ({"threshold"} if by_threshold else set())


def _of_all(here: ModelConfig, there: ModelConfig, taken: Taken) -> Iterator[str]:
    yield from ("dtype", "embedding_norm")
    if ("rms" in str(here.norm)) != (
        "rms" in str(there.norm)
    ):  # the others begin as the same norm, or have arrays that are listed
        yield "norm"
    for stack in STACKS:
        if any(path[0] == stack for path in taken) and here.pattern(stack) != there.pattern(stack):
            yield f"{stack}_layers"
    held = {path: array.shape for path, array in taken.items()}
    held |= {path[1:]: shape for path, shape in shapes(here).items() if path[0] == "frozen"}
    if any(is_matrix(path[-1], shape) for path, shape in held.items()):
        yield "trained_precision"
    if any(path[-1] in VECTORS for path in held):
        yield "vector_precision"

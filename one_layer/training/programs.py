"""Which runs one program can train: those that differ only in numbers. Imports no JAX."""

import json
from collections.abc import Mapping
from typing import Any

from one_layer.data.config import STREAMS
from one_layer.runs.records import flatten
from one_layer.system.errors import UserError

PACE = ("optim.lr", "optim.warmup", "optim.warmup_init_lr")  # inputs of every program
# Inputs of the program, so that the runs of a population may differ in them.
INPUTS = (
    "seed",
    "model.keep",
    *PACE,
    "optim.b1",
    "optim.b2",
    "optim.eps",
    "optim.weight_decay",
    "optim.clip",
    "optim.label_smoothing",
    "optim.softness",
)
# These decide only the values that arrays begin with.
_DRAWN = ("model.init_scheme", "model.init_attention", "model.init_embedding", "model.scale_by_keep")
# At 0 the program has no such part.
_ABSENT_AT_0 = ("optim.b1", "optim.b2", "optim.weight_decay", "optim.clip", "optim.softness")


def program(config: Mapping[str, Any]) -> dict[str, Any]:
    """What of a resolved config (nested plain values) decides its program, by dotted names: equal where one program trains both runs."""
    flat = flatten(dict(config))
    found = {name: value for name, value in flat.items() if name not in (*INPUTS, *_DRAWN)}
    found |= {name: bool(flat[name]) for name in _ABSENT_AT_0}
    if flat["train.bytes"]:  # these decide the width that a run chooses
        found["train.bytes"] = [flat[name] for name in ("train.bytes", *INPUTS, *_DRAWN)]
    # At keep 1 there are no scores. A traced keep is rounded to six decimal places (see `one_layer.supermask.kept_count`).
    keep = flat["model.keep"]
    found["model.keep"] = keep if keep == 1.0 or round(keep, 6) != keep else "below 1"
    # Seeds decide the order of batches. Where batches have several shapes, other orders seldom have the same shape at the same time. Blocks
    # of a stream have one shape (see `one_layer.data.stream.StreamBatches`).
    if flat["data.buckets"] > 1 and flat["data.source"] not in STREAMS:
        found["seed"] = flat["seed"]
    return found


def mark(config: Mapping[str, Any]) -> str:
    """The same as text: equal for the runs that one program trains."""
    return json.dumps(program(config), sort_keys=True, default=str)


def apart(configs: list[Mapping[str, Any]]) -> list[str]:
    """The keys, in order, for which these runs need programs of their own; none if one program trains all of them."""
    programs = [program(config) for config in configs]
    names = sorted({name for each in programs for name in each})
    return [name for name in names if any(each.get(name) != programs[0].get(name) for each in programs)]


def check(config: Mapping[str, Any]) -> None:
    """Checks that a run can be a member of a population. Raises: UserError, which names the key, if not."""
    flat = flatten(dict(config))
    if flat["train.backskip"] == "policy":
        raise UserError(
            "train.backskip=policy chooses the program of every update by the seed, so such runs cannot be trained together; leave "
            "--vmap out, or give train.backskip=identity"
        )
    for name, possible in (("mesh.data", (-1, 1)), ("mesh.model", (1,))):
        if flat[name] not in possible:
            raise UserError(
                f"{name} is {flat[name]}, but --vmap trains all runs on one device; leave --vmap or {name} out"
            )

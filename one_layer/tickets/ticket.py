"""Tickets: a whole trained model as a seed and one bit per weight, in one file that needs no others.

Frozen random weights "can be characterized using only a random number generator and its seed" (Shen et al. 2021, arXiv 2012.15045,
section 1), and inference needs only the masks, not the scores (arXiv 2109.03939, section 3). So a recipe and a mask describe a matrix
of the network. A ticket holds these, the other variables of the network, and what is needed to read and write text.
docs/ticket-format.md describes the file.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, UInt8

from one_layer.data.config import DataConfig
from one_layer.data.text.assets import TextAssets
from one_layer.initializers import Recipe
from one_layer.models import recipes, shapes
from one_layer.models.config import ModelConfig
from one_layer.models.trees import flatten_dict, unflatten_dict
from one_layer.runs.settings import of_training
from one_layer.supermask import Supermask, unpack_mask
from one_layer.system.errors import UserError
from one_layer.system.files import write_atomically
from one_layer.tasks import task_of_family
from one_layer.tasks.model import TrainedModel
from one_layer.tasks.protocol import Task
from one_layer.tickets import content as ticket_content
from one_layer.tickets import file as ticket_file
from one_layer.tickets.content import Drawn, Ticket, checksum
from one_layer.tickets.file import TicketFile, has_precision
from one_layer.tickets.settings import CHECKPOINT, trained_with

__all__ = ["Ticket", "export", "from_run", "load", "load_many", "make", "restore_ticket", "save", "variables"]

log = logging.getLogger(__name__)

ModulePath = tuple[str, ...]
Variables = dict[str, Any]
Bits = dict[str, UInt8[Array, "..."]]  # [bytes], or [layers, bytes], by the kinds of `Supermask.kinds`


def from_run(model: TrainedModel) -> Ticket:
    """The ticket of a checkpoint. Raises: UserError for scores that are NaN, and for a model that has its masks from a ticket."""
    if {"materialized", "packed"} & model.variables.keys():
        raise UserError(
            f"{model.source} is a ticket already, and its model has no scores: copy the file, or, for another precision, give "
            "one_layer.tickets.save what one_layer.tickets.load reads"
        )
    arguments = (model.config, model.seed, model.variables, model.assets)
    settings: dict[str, Any] = {
        "task": model.task,
        "data": model.data,
        "evaluation": model.settings,
        "step": model.step,
    }
    name = model.source if model.file_bytes is None else model.ticket_checkpoint
    checkpoint = name if CHECKPOINT.fullmatch(name) else ""
    return make(*arguments, **settings, checkpoint=checkpoint, training=of_training(model.trained_with))


def export(model: TrainedModel, path: Path, precision: str = "float32") -> int:
    """Writes the ticket of a checkpoint, with its trained and fixed matrices in `precision`.

    Returns its size in bytes, and logs it with the checkpoint. Raises: UserError as `save` does.
    """
    ticket = from_run(model)
    sizes = save(path, ticket, precision)
    if precision != "float32" and not any(has_precision(path[-1], each) for path, each in ticket.arrays.items()):
        log.info(
            "nothing is stored in %s: the model has masks, which take a bit for each weight, and no other matrices",
            precision,
        )
    masked = sum(math.prod(shape) for name, shape in shapes(model.config).items() if name[-1] == "scores")
    bits = f", {8 * sizes['total'] / masked:.3f} bits per masked weight" if masked else ""
    held = describe_checkpoint(model.step, model.source)
    log.info("%s: %s bytes%s; it holds %s", path, f"{sizes['total']:,}", bits, held)
    return sizes["total"]


def describe_checkpoint(step: int, name: str) -> str:
    """Which checkpoint a model is from, for people."""
    if name.startswith("average"):
        return f"the average of checkpoints up to update {step} ({name})"
    return f"update {step}" if not name or name.isdecimal() else f"update {step} ({name})"


def restore_ticket(path: str | Path, packed: bool = False) -> TrainedModel:
    """The trained model in a ticket, as `one_layer.runs.restore.restore_run` gives it for a run. Raises: UserError as `load` does."""
    ticket = load(path)
    return ticket.task.model(
        task=ticket.task,
        config=ticket.config,
        seed=ticket.seed,
        step=ticket.step,
        data=ticket.data,
        settings=ticket.evaluation,
        assets=ticket.assets,
        variables=variables(ticket, packed),
        source=str(path),
        trained_with=trained_with(ticket),
        file_bytes=Path(path).stat().st_size,
        ticket_checkpoint=ticket.checkpoint,
    )


def make(
    config: ModelConfig,
    seed: int,
    variables: Variables,
    assets: TextAssets,
    *,
    task: Task | None = None,
    data: DataConfig | None = None,
    evaluation: Any = None,
    step: int = 0,
    checkpoint: str = "",
    training: dict[str, dict[str, Any]] | None = None,
) -> Ticket:
    """The ticket of a model's variables as training leaves them, with scores.

    `task` is by default the task whose networks are of the config's family; `data` and `evaluation` have defaults too.

    Random weights are compared with those that the seed gives; if they differ (in an imported model), the ticket stores them.
    Raises: UserError for scores that are NaN.
    """
    flat, known = flatten_dict(variables), recipes(config)
    assert {path: leaf.shape for path, leaf in flat.items()} == shapes(config), "variables of another model"
    masks: dict[ModulePath, np.ndarray] = {}
    drawn: dict[ModulePath, Drawn] = {}
    arrays: dict[ModulePath, np.ndarray] = {}
    for path, leaf in flat.items():
        module = path[1:-1]
        if path[-1] == "scores":
            masks |= {(*module, kind): bits for kind, bits in _pack(leaf, config.supermask).items()}
        elif path[0] == "random" and _same(weights := known[module].draw(seed), np.asarray(leaf)):
            drawn[module] = Drawn(known[module], checksum(weights), leaf)
        else:
            arrays[path] = np.asarray(leaf)
    task = task or task_of_family(str(config.family))
    settings = (task, config, seed, step, data or DataConfig(), evaluation or task.settings())
    made_of: dict[str, Any] = {"checkpoint": checkpoint, "training": training or {}}
    return Ticket(*settings, **made_of, assets=assets, masks=masks, drawn=drawn, arrays=arrays)


def variables(ticket: Ticket, packed: bool = False) -> Variables:
    """The variables of the network. They give the same logits as the variables that the ticket was made from.

    With `packed`, the masks stay bits, in the collection `packed`; memory holds one random layer and one bit per masked weight. Otherwise
    every W ⊙ M is computed once, into `materialized`, as by `one_layer.layers.matrix.materialize`; this takes the memory of a dense model.
    """
    flat: dict[ModulePath, Array] = {path: jnp.asarray(array) for path, array in ticket.arrays.items()}
    flat |= {("random", *module, "kernel"): jnp.asarray(drawn.weights) for module, drawn in ticket.drawn.items()}
    masks: dict[ModulePath, Bits] = {}
    for path, array in ticket.masks.items():
        masks.setdefault(path[:-1], {})[path[-1]] = jnp.asarray(array)
    for module, bits in masks.items():
        fixed = next(path for path in (("frozen", *module, "kernel"), ("random", *module, "kernel")) if path in flat)
        if packed:
            flat |= {("packed", *module, kind): _a_row_each(each, flat[fixed].shape) for kind, each in bits.items()}
        else:
            axis = -2 if module[-1].endswith("embedding") else -1
            flat["materialized", *module, "kernel"] = _product(flat.pop(fixed), bits, ticket.config.supermask, axis)
    return {"params": {}, "random": {}, **unflatten_dict(flat)}


def save(path: str | Path, ticket: Ticket, precision: str = "float32") -> dict[str, int]:
    """Writes the ticket, with its trained and fixed matrices in `precision`.

    Returns the size in bytes of every tensor in the file, and of the whole file as `total`.

    Raises: UserError for a ticket that `load` would refuse, for instance if a vocabulary does not fit the model's table.
    """
    content, sizes = ticket_content.to_bytes(ticket, precision)
    write_atomically(path, content)
    return {**sizes, "total": len(content)}


def load(path: str | Path) -> Ticket:
    """Reads a ticket and draws its random weights. Raises: UserError of one sentence for a file that is not a complete ticket."""
    return load_many([path])[0]


def load_many(paths: Iterable[str | Path]) -> list[Ticket]:
    """Reads several tickets. Tickets with the same seed share the random matrices of equal recipes in memory.

    Raises: UserError as `load` does.
    """
    drawn: dict[tuple[int, Recipe], Drawn] = {}
    return [read(path, drawn)[1] for path in paths]


def read(path: str | Path, drawn: dict[tuple[int, Recipe], Drawn]) -> tuple[TicketFile, Ticket]:
    """The file and the ticket in it. Random matrices are taken from `drawn`, or added to it. Raises: UserError as `load` does."""
    try:
        file = ticket_file.read(Path(path))
        return file, ticket_content.from_file(file, drawn)
    except UserError as error:
        raise UserError(f"the ticket {path} cannot be used: {error}") from None


def _pack(scores: Float32[Array | np.ndarray, "*layers rows columns"], supermask: Supermask) -> dict[str, np.ndarray]:
    """The masks of the scores as bits, layer by layer, by their kinds (`Supermask.kinds`)."""
    plain = Supermask(
        supermask.keep, supermask.selection, supermask.threshold
    )  # without the dynamic scale, which follows from the mask
    rows: dict[str, list[np.ndarray]] = {kind: [] for kind in supermask.kinds}
    for layer in scores.reshape(-1, *scores.shape[-2:]):
        mask = np.asarray(plain(layer))
        if np.isnan(mask).any():
            raise UserError("the scores are not numbers: no mask can be made of this checkpoint; use another")
        for kind, packed in rows.items():
            packed.append(np.packbits(mask < 0 if kind == "sign" else mask != 0, bitorder="little"))
    return {kind: np.stack(packed) if scores.ndim == 3 else packed[0] for kind, packed in rows.items()}


def _same(ours: Float32[np.ndarray, "..."], theirs: Float32[np.ndarray, "..."]) -> bool:
    """Whether two arrays have the same bits."""
    return np.array_equal(ours.view(np.uint32), theirs.view(np.uint32))


@partial(jax.jit, static_argnames=("supermask", "axis"))
def _product(
    weights: Float[Array, "*drawn rows columns"], bits: Bits, supermask: Supermask, axis: int
) -> Float[Array, "*layers rows columns"]:
    """W ⊙ M, for every layer if W or M has a layer axis."""
    return weights * supermask.scaled(unpack_mask(bits, weights.shape[-2:]), axis)


def _a_row_each(bits: UInt8[Array, "*rows bytes"], shape: tuple[int, ...]) -> UInt8[Array, "*layers bytes"]:
    """The bits for weights of this shape, with one row per layer even if all layers share one mask."""
    return jnp.broadcast_to(bits, jnp.broadcast_shapes(bits.shape, (*shape[:-2], 1)))

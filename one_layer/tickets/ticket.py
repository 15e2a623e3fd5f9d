"""Tickets: a whole trained model as a seed and one bit per weight, in one file that needs no others.

Frozen random weights "can be characterized using only a random number generator and its seed" (Shen et al. 2021, arXiv 2012.15045,
section 1), and inference needs only the masks, not the scores (arXiv 2109.03939, section 3). So a recipe and a mask describe a matrix
of the network. A ticket holds these, the other variables of the network, and what is needed to read and write text.
docs/ticket-format.md describes the file.
"""

import logging
import math
import unicodedata
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float32

from one_layer.data.config import DataConfig
from one_layer.data.text.assets import TextAssets
from one_layer.initializers import Recipe
from one_layer.layers.materializing import materialize
from one_layer.layers.quantization import is_matrix
from one_layer.layers.trees import Variables, flatten_dict
from one_layer.models import by_role, recipes, shapes
from one_layer.models.config import ModelConfig
from one_layer.own_selection import stored_as
from one_layer.runs.settings import of_training
from one_layer.system.errors import UserError
from one_layer.system.files import write_atomically
from one_layer.tasks import TASKS, task_named
from one_layer.tasks.model import TrainedModel
from one_layer.tasks.protocol import Task
from one_layer.tickets import content as ticket_content
from one_layer.tickets import file as ticket_file
from one_layer.tickets.content import Drawn, Ticket, checksum
from one_layer.tickets.file import TicketFile
from one_layer.tickets.precision import chosen
from one_layer.tickets.settings import CHECKPOINT, trained_with

log = logging.getLogger(__name__)


def from_run(model: TrainedModel) -> Ticket:
    """The ticket of a checkpoint. Raises: UserError for scores that are NaN, and for a model that has its masks from a ticket."""
    if "packed" in model.variables:
        raise UserError(
            f"{model.source} has masks and no scores, which a checkpoint has; if it is a ticket already, copy the file, or, for another "
            "precision, give one_layer.tickets.save what one_layer.tickets.load reads"
        )
    arguments = (model.config, model.seed, model.variables, model.assets)
    settings: dict[str, Any] = {
        "task": task_named(model.task),
        "data": model.data,
        "evaluation": model.settings,
        "step": model.step,
    }
    name = model.source if model.file_bytes is None else model.ticket_checkpoint
    checkpoint = name if CHECKPOINT.fullmatch(name) else ""
    return make(*arguments, **settings, checkpoint=checkpoint, training=of_training(model.trained_with))


def export(model: TrainedModel, path: Path, precision: str | None = None) -> int:
    """Writes the ticket of a checkpoint, with its trained and fixed matrices in `precision`, by default as they were trained.

    Returns its size in bytes, and logs it with the checkpoint. Raises: UserError as `save` does.
    """
    ticket, few = from_run(model), chosen(model.config.trained_precision, precision)
    sizes = save(path, ticket, precision)
    if few != "float32" and not any(is_matrix(path[-1], each.shape) for path, each in ticket.arrays.items()):
        log.info(
            "nothing is stored in %s: the model has masks, which take a bit for each weight, and no other matrices",
            few,
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
    if ticket.unicode and ticket.unicode != unicodedata.unidata_version:
        log.warning(
            "%s reads its text by Unicode %s, and this Python has %s: letters that one of them does not know may be read in another way",
            *(path, ticket.unicode, unicodedata.unidata_version),
        )
    return ticket.task.model(
        config=ticket.config,
        seed=ticket.seed,
        step=ticket.step,
        data=ticket.data,
        settings=ticket.evaluation,
        assets=ticket.assets,
        variables=variables(ticket, packed=True),
        source=str(path),
        trained_with=trained_with(ticket),
        file_bytes=Path(path).stat().st_size,
        ticket_checkpoint=ticket.checkpoint,
        packed=packed,
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
    Raises: UserError for scores that are NaN, and for a selection of one's own that does not say how its bits are stored.
    """
    flat, known = flatten_dict(variables), recipes(config)
    assert {path: leaf.shape for path, leaf in flat.items()} == shapes(config), "variables of another model"
    masks: dict[tuple[str, ...], np.ndarray] = {}
    drawn: dict[tuple[str, ...], Drawn] = {}
    arrays: dict[tuple[str, ...], np.ndarray] = {}
    for path, leaf in flat.items():
        module = path[1:-1]
        if path[-1] == "scores":
            mask = by_role.select(leaf, config.supermask)
            masks |= {(*module, kind): bits for kind, bits in by_role.pack(mask, config.supermask).items()}
        elif path[0] == "random" and _same(weights := known[module].draw(seed), np.asarray(leaf)):
            drawn[module] = Drawn(known[module], checksum(weights), leaf)
        else:
            arrays[path] = np.asarray(leaf)
    task = task or next(each for each in TASKS.values() if each.family == config.family)
    config = config.replace(selection=stored_as(config.supermask)) if config.masked else config
    settings = (task, config, seed, step, data or DataConfig(), evaluation or task.settings())
    made_of: dict[str, Any] = {"checkpoint": checkpoint, "training": training or {}}
    if any(steps.tokenize or steps.lowercase for steps in assets.steps):
        made_of["unicode"] = unicodedata.unidata_version
    return Ticket(*settings, **made_of, assets=assets, masks=masks, drawn=drawn, arrays=arrays)


def variables(ticket: Ticket, packed: bool = False) -> Variables:
    """The variables of the network. They give the same logits as the variables that the ticket was made from.

    With `packed`, the masks stay bits, in the collection `packed`; memory holds one random layer and one bit per masked weight. Otherwise
    every W ⊙ M is computed once, into `materialized`, by `one_layer.layers.materializing.materialize`; this takes a dense model's memory.
    """
    flat: dict[tuple[str, ...], Array | np.ndarray] = {**ticket.arrays}
    flat |= {("random", *module, "kernel"): drawn.weights for module, drawn in ticket.drawn.items()}
    whole = by_role.with_bits(flat, ticket.masks)
    if packed:
        return whole
    return jax.jit(materialize, static_argnames=("mask", "packed"))(whole, mask=ticket.config.supermask, packed=True)


def save(path: str | Path, ticket: Ticket, precision: str | None = None) -> dict[str, int]:
    """Writes the ticket, with its trained and fixed matrices in `precision`, by default as they were trained.

    Returns the size in bytes of every tensor in the file, and of the whole file as `total`.

    Raises: UserError for a ticket that `load` would refuse, for instance if a vocabulary does not fit the model's table, and for another
    precision than that of a model trained in few bits.
    """
    content, sizes = ticket_content.to_bytes(ticket, precision)
    write_atomically(path, content)
    return {**sizes, "total": len(content)}


def load(path: str | Path, drawn: dict[tuple[int, Recipe], Drawn] | None = None) -> Ticket:
    """Reads a ticket and draws its random weights. Tickets that are given one `drawn` have in common what one seed draws by one recipe.

    Raises: UserError of one sentence for a file that is not a complete ticket.
    """
    return read(path, drawn)[1]


def read(path: str | Path, drawn: dict[tuple[int, Recipe], Drawn] | None = None) -> tuple[TicketFile, Ticket]:
    """The file of a ticket, and the ticket in it. Raises: UserError as `load` does."""
    try:
        file = ticket_file.read(Path(path))
        return file, ticket_content.from_file(file, {} if drawn is None else drawn)
    except UserError as error:
        raise UserError(f"the ticket {path} cannot be used: {error}") from None


def _same(ours: Float32[np.ndarray, "..."], theirs: Float32[np.ndarray, "..."]) -> bool:
    """Whether two arrays have the same bits."""
    return np.array_equal(ours.view(np.uint32), theirs.view(np.uint32))

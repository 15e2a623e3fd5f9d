"""The record of a ticket, and how it is turned into the tensors and metadata of a file, and safely read back from a stranger's file.

The file names everything by role, not by module path, so old tickets stay valid when a module is renamed.
"""

import dataclasses
import hashlib
import itertools
import json
import math
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float32, UInt8

from one_layer.data.text.assets import TextAssets
from one_layer.data.text.units import MASK, of_bytes
from one_layer.initializers import ORTHOGONAL, SCHEMES, Recipe
from one_layer.layers.beside import ADAPTERS
from one_layer.layers.quantization import VECTORS, stored_bytes
from one_layer.layers.trees import Path, Shape
from one_layer.models import ModelConfig, recipes, roles, shapes
from one_layer.runs.records import record
from one_layer.supermask import kept_count
from one_layer.system.errors import UserError
from one_layer.tickets import file as ticket_file
from one_layer.tickets.file import TicketFile
from one_layer.tickets.json_text import damaged
from one_layer.tickets.limits import check_drawing, check_work
from one_layer.tickets.precision import chosen, dequantize, quantize
from one_layer.tickets.settings import NAMES, Settings, read_json, read_settings, read_text, write_settings, write_text

METADATA = {*NAMES, "format", "version", "codecs", "text", "random"}

_FEW = 2**27  # weights that even the smallest file may describe: 512 MiB
_MOST = 2**33  # the most weights that any file may describe
# In between: the most weights per bit of the file; masks that keep 0.4 % take one bit for 27 weights.
_WEIGHTS_A_BIT = 32


@dataclass(frozen=True)
class Drawn:
    """A random matrix that the seed gives, or one per layer of a stack. `checksum`: BLAKE2b (128 bits, hexadecimal) of the bytes."""

    recipe: Recipe
    checksum: str
    weights: Float32[Array | np.ndarray, "*layers rows columns"]


@dataclass(frozen=True)
class Ticket(Settings):
    """A trained model, with everything that is needed to use and to score it.

    - `masks`: packed bits in C order over fan_in and fan_out, the lowest bit of each byte first. Every layer starts at a new byte, so the
      shape is [layers, bytes]; it is [bytes] for a table, and for one mask that the layers share. Keys are the module's path and the kinds
      of `Supermask.kinds`: "mask" (1 where the mask is not 0) and "sign" (1 where it is -1).
    - `drawn`, by the module's path: the random weights that the seed gives.
    - `arrays`, by collection and path: all other variables: trained, fixed, or random but not from the seed.
    """

    assets: TextAssets
    masks: dict[Path, UInt8[np.ndarray, "..."]]
    drawn: dict[Path, Drawn]
    arrays: dict[Path, Float32[np.ndarray, "..."]]

    __eq__ = object.__eq__  # that of Settings would take tickets with other masks for equal
    __hash__ = object.__hash__


def checksum(weights: Float32[np.ndarray, "..."]) -> str:
    """BLAKE2b (128 bits, hexadecimal) of the weights as little-endian float32 in C order."""
    return hashlib.blake2b(np.ascontiguousarray(weights, "<f4").data, digest_size=16).hexdigest()


def to_bytes(ticket: Ticket, precision: str | None = None) -> tuple[bytes, dict[str, int]]:
    """The content of the file, and the size in bytes of every tensor in it. Equal tickets give equal files.

    Trained and fixed matrices are stored in `precision`: float32, or one of `one_layer.tickets.precision.QUANTIZED`; by default the one
    in which they were trained. Random matrices that no seed gives are stored as they are, unless a `precision` is given: training does not
    round them.

    Raises: UserError if `from_file` would refuse the file, and for another precision than that of a model trained in few bits.
    """
    names = roles(ticket.config)
    text, tensors = write_text(ticket.assets)
    tensors |= {_tensor(path, names): array for path, array in ticket.arrays.items()}
    tensors |= {f"{path[-1]}/{names[path[:-1]]}": bits for path, bits in ticket.masks.items()}
    drawn = sorted(ticket.drawn.values(), key=lambda each: each.recipe.role)
    random = [{**dataclasses.asdict(each.recipe), "checksum": each.checksum} for each in drawn]
    matrices = chosen(ticket.config.trained_precision, precision)
    for joint, (leaves, few) in _joined(ticket.config).items():
        if parts := [name for name in sorted(tensors) if name.rsplit("/", 1)[-1] in leaves]:
            tensors[joint] = np.frombuffer(b"".join(quantize(tensors.pop(name), few) for name in parts), np.uint8)
    exact = [name for name in tensors if name.startswith("random/")] if precision is None else []
    stored, codecs = ticket_file.coded(tensors, matrices, exact)
    metadata = {**write_settings(ticket), "text": text, "random": json.dumps(random), "codecs": codecs}
    content = ticket_file.to_bytes(metadata, stored)
    from_file(ticket_file.from_bytes(content), {(ticket.seed, each.recipe): each for each in drawn})
    return content, {name: array.nbytes for name, array in stored.items()}


def from_file(file: TicketFile, drawn: dict[tuple[int, Recipe], Drawn]) -> Ticket:
    """The ticket in a file. Random matrices are taken from `drawn`, by seed and recipe, or are drawn and added to it.

    Raises: UserError if the parts of the file do not fit together, before any large array is made.
    """
    settings = read_settings(file.metadata)
    check_work(settings)
    config, known = settings.config, shapes(settings.config)
    _check_size(known, file)
    names = roles(config)
    found = _read_recipes(file, config, names)
    check_drawing(recipe for recipe, _ in found.values())
    assets, used = read_text(file, config)
    _check_unit(settings, assets)
    masks: dict[Path, np.ndarray] = {}
    arrays: dict[Path, np.ndarray] = {}
    for joint, (leaves, few) in _joined(config).items():
        if parts := _read_joined(file, joint, few, {path: known[path] for path in known if path[-1] in leaves}, names):
            arrays |= parts
            used.add(joint)
    for path, shape in known.items():
        if path in arrays:
            continue
        module = path[1:-1]
        if path[-1] == "scores":
            role = names[module]
            each = _read_masks(file, role, shape, config)
            masks |= {(*module, kind): bits for kind, bits in each.items()}
            used |= {f"{kind}/{role}" for kind in each}
        elif path[0] != "random" or module not in found:
            name = _tensor(path, names)
            arrays[path] = file.tensor(name, "float32", shape)
            used.add(name)
    if strange := sorted(file.tensors.keys() - used):
        raise damaged(f"its model has no place for the tensor {strange[0]}")
    if strange := sorted(file.metadata.keys() - METADATA):
        raise damaged(f"its metadata have the unknown name {strange[0]!r:.120}")
    weights = {module: _draw(settings.seed, *each, drawn) for module, each in found.items()}
    return Ticket(**vars(settings), assets=assets, masks=masks, drawn=weights, arrays=arrays)


def _tensor(path: Path, names: dict[Path, str]) -> str:
    """The name of an array in the file: its collection, the role of its module, and its own name."""
    return f"{path[0]}/{names[path[1:-1]]}/{path[-1]}"


def _check_unit(settings: Settings, assets: TextAssets) -> None:
    """Raises: UserError if a language model has another vocabulary than its unit of text and its task need."""
    data, vocabulary = settings.data, assets.target_vocabulary
    if data.streamed and data.unit == "bytes" and not of_bytes(vocabulary):
        raise damaged("it reads text in bytes, but its vocabulary is not that of bytes")
    if data.streamed and settings.task.name == "masked_lm" and MASK not in vocabulary.tokens:
        raise damaged(f"its vocabulary has no {MASK}, which a masked language model needs")


def _check_size(known: dict[Path, Shape], file: TicketFile) -> None:
    """Raises: UserError for a model that is too large for its file."""
    weights = sum(math.prod(shape) for shape in known.values())
    if weights > _MOST or weights > max(_FEW, 8 * file.size * _WEIGHTS_A_BIT):
        raise UserError(f"its model has {weights:,} weights, too many for {file.size:,} bytes of data")


def _joined(config: ModelConfig) -> dict[str, tuple[tuple[str, ...], str]]:
    """The tensors that hold many small arrays of a model in few bits: the leaves of these arrays, and their precision.

    Each tensor of its own takes hundreds of bytes of the header, often more than its numbers.
    """
    known = {"vectors": (VECTORS, config.vector_precision), "adapters": (ADAPTERS, config.trained_precision)}
    return {joint: (leaves, few) for joint, (leaves, few) in known.items() if few != "float32"}


def _read_joined(
    file: TicketFile, joint: str, precision: str, known: dict[Path, Shape], names: dict[Path, str]
) -> dict[Path, np.ndarray]:
    """The arrays of these shapes: one after the other in the tensor `joint`, in the order of their names."""
    if not known:
        return {}
    order = sorted(known, key=lambda path: _tensor(path, names))
    ends = list(itertools.accumulate(stored_bytes(precision, known[path]) for path in order))
    code = file.tensor(joint, "uint8", (ends[-1],)).tobytes()
    places = zip(order, [0, *ends], ends, strict=False)
    return {path: dequantize(precision, code[begin:end], known[path]) for path, begin, end in places}


def _read_masks(file: TicketFile, role: str, shape: Shape, config: ModelConfig) -> dict[str, np.ndarray]:
    """The packed masks of this shape. Checks that bits beyond the last are 0, and how many bits are set."""
    supermask, size = config.supermask, math.prod(shape[-2:])
    wanted = kept_count(size, supermask.keep) if supermask.exact else None
    bits: dict[str, np.ndarray] = {}
    for kind in supermask.kinds:
        bits[kind] = file.tensor(f"{kind}/{role}", "uint8", (*shape[:-2], -(-size // 8)))
        if size % 8 and np.any(bits[kind][..., -1] >> size % 8):
            raise damaged(f"{kind}/{role} has bits beyond its last weight")
        kept = np.ravel(np.bitwise_count(bits[kind]).sum(axis=-1, dtype=np.int64))
        if wanted is not None and len(wrong := kept[kept != wanted]):
            raise damaged(
                f"{kind}/{role} keeps {wrong[0]:,} weights where model.keep {supermask.keep} keeps {wanted:,}"
            )
    if "mask" in bits and "sign" in bits and np.any(bits["sign"] & ~bits["mask"]):
        raise damaged(f"sign/{role} has bits where the mask is 0")
    return bits


def _read_recipes(file: TicketFile, config: ModelConfig, names: dict[Path, str]) -> dict[Path, tuple[Recipe, str]]:
    """The recipes and checksums of the random matrices that the seed gives, by the paths of their modules."""
    known, own = shapes(config), recipes(config)
    modules = {names[path[1:-1]]: path[1:-1] for path in known if (path[0], path[-1]) == ("random", "kernel")}
    entries = read_json(file.metadata, "random")
    found = {}
    for entry in entries if isinstance(entries, list) else [None]:
        recipe, checksum = _recipe(entry)
        if recipe.role not in modules or modules[recipe.role] in found:
            raise damaged(f"its metadata 'random' have {recipe.role!r:.120} twice, or its model has no such matrix")
        module = modules[recipe.role]
        if recipe.whole_shape != known["random", *module, "kernel"]:
            made, wanted = list(recipe.whole_shape), list(known["random", *module, "kernel"])
            raise damaged(f"its recipe makes {recipe.role} {made!s:.120}, but its model has {wanted}")
        if ORTHOGONAL == recipe.scheme != own[module].scheme:
            raise damaged(f"its recipe of {recipe.role} has the scheme {ORTHOGONAL}, which is one of reservoirs")
        fan_in, row = 1 if recipe.fan_in is None else recipe.fan_in, recipe.zero_row or 0
        if fan_in < 1 or not 0 <= row < recipe.shape[0]:
            raise damaged(f"its recipe of {recipe.role} has an impossible fan_in or zero_row")
        found[module] = recipe, checksum
    return found


def _recipe(entry: Any) -> tuple[Recipe, str]:
    """A recipe, and the checksum of the weights that it draws. Raises: UserError for values of another type, and an unknown scheme."""
    fields = {each.name for each in dataclasses.fields(Recipe)} | {"checksum"}
    if not isinstance(entry, dict) or entry.keys() != fields:
        raise damaged("its metadata 'random' are not a list of recipes")
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
    digest = str(values.pop("checksum"))
    recipe = record(Recipe, "random", values)
    if recipe.scheme not in (known := (*SCHEMES, ORTHOGONAL)):
        raise damaged(f"its recipes have the scheme {recipe.scheme!r:.120}; known are {', '.join(known)}")
    return recipe, digest


def _draw(seed: int, recipe: Recipe, expected: str, drawn: dict[tuple[int, Recipe], Drawn]) -> Drawn:
    """The matrix of a recipe, from `drawn` if it is there. Raises: UserError if its checksum is not `expected`."""
    if (seed, recipe) not in drawn:
        weights = recipe.draw(seed)
        drawn[seed, recipe] = Drawn(recipe, checksum(weights), jax.device_put(weights))
    if drawn[seed, recipe].checksum != expected:
        raise UserError(
            f"the seed {seed} does not give the {recipe.role} of the model: another generator made this ticket; export it again "
            "from its run with this version"
        )
    return drawn[seed, recipe]

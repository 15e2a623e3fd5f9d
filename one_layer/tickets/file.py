"""The container of a ticket: a safetensors file of byte and float32 arrays, with metadata and a digest over everything.

docs/ticket-format.md describes the format. A ticket may come from a stranger, so this module parses the header itself, under limits, and
allocates no memory for data that the file only claims to have. The digest detects damage but not malice: anybody can compute a digest
that fits. A file that passes here is well-formed; whether its content makes sense must still be checked.
"""

import hashlib
import json
import math
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from one_layer.layers.quantization import is_matrix
from one_layer.system.errors import UserError
from one_layer.tickets import codecs
from one_layer.tickets.json_text import damaged, parse
from one_layer.tickets.precision import QUANTIZED

FORMAT, VERSION = "one_layer ticket", "1"

_DTYPES: dict[str, np.dtype[Any]] = {"U8": np.dtype("uint8"), "F32": np.dtype("<f4")}
_NAMES = re.compile(r"[a-z0-9_]+(/[a-z0-9_]+)*")
_LONGEST_NAME, _MOST_AXES, _MOST_ENTRIES, _LONGEST_HEADER = 100, 4, 2**40, 2**20
_LARGEST = 2**32  # bytes of a file

Tensors = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class TicketFile:
    """The content of a file: `metadata`, and `tensors` as they are stored. Some are coded; `tensor` decodes them."""

    size: int  # bytes of data
    total: int  # bytes of the whole file
    metadata: dict[str, str]
    tensors: dict[str, np.ndarray]
    coded: dict[str, tuple[str, tuple[int, ...]]]  # codec, and the shape of the decoded tensor

    def shape(self, name: str) -> tuple[int, ...] | None:
        """The shape of a tensor when decoded; None if there is no tensor of this name."""
        if name in self.coded:
            return self.coded[name][1]
        return self.tensors[name].shape if name in self.tensors else None

    def tensor(self, name: str, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        """A tensor, decoded and read-only. Raises: UserError if it is missing or has another shape or dtype."""
        found = self.shape(name)
        if found is None:
            raise damaged(f"it lacks the tensor {name!r}, which its model needs")
        codec = self.coded[name][0] if name in self.coded else None
        kind = "float32" if codec in QUANTIZED else self.tensors[name].dtype
        if found != shape or kind != dtype:
            raise damaged(f"{name} is {kind} {list(found)}, but its model's is {dtype} {list(shape)}")
        if codec is None:
            return self.tensors[name]
        try:
            if codec in QUANTIZED:
                return codecs.decode_values(codec, self.tensors[name].tobytes(), shape)
            content = codecs.decode(codec, self.tensors[name].tobytes(), math.prod(shape))
        except UserError as error:
            raise damaged(f"{name}: {error}") from None
        return np.frombuffer(content, np.uint8).reshape(shape)


def coded(
    tensors: Tensors, precision: str = "float32", exact: Collection[str] = ()
) -> tuple[dict[str, np.ndarray], str]:
    """The tensors as the file stores them, and the metadata `codecs` that describes the coded ones.

    uint8 tensors are coded if that saves 5 %. Matrices of float32 are stored in `precision`, but for those that are `exact`.
    """
    stored, entries = {}, {}
    for name, tensor in tensors.items():
        stored[name] = np.ascontiguousarray(tensor, _DTYPES[_code(tensor)])
        level = 1 if name.startswith(("mask/", "sign/")) else 19  # texts are small, and repeat what is far away
        codec, code = codecs.encode(tensor.tobytes(), level) if tensor.dtype == np.uint8 else (None, b"")
        matrix = tensor.dtype != np.uint8 and is_matrix(name.rsplit("/", 1)[-1], tensor.shape)
        if precision != "float32" and matrix and name not in exact:
            codec, code = precision, codecs.encode_values(stored[name], precision)
        if codec:
            stored[name] = np.frombuffer(code, np.uint8)
            entries[name] = {"codec": codec, "shape": list(tensor.shape)}
    return stored, json.dumps(entries, sort_keys=True)


def to_bytes(metadata: Mapping[str, str], stored: Tensors) -> bytes:
    """The bytes of a file; equal content gives equal bytes. Adds the format, its version and the digest to the metadata."""
    whole = {"format": FORMAT, "version": VERSION, **metadata}
    whole["digest"] = _digest(whole, stored)
    # Floats come first, so that they stay aligned.
    names = sorted(stored, key=lambda name: (stored[name].dtype == np.uint8, name))
    header: dict[str, Any] = {"__metadata__": dict(sorted(whole.items()))}
    end = 0
    for name in names:
        begin, end = end, end + stored[name].nbytes
        header[name] = {"dtype": _code(stored[name]), "shape": list(stored[name].shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *(stored[name].tobytes() for name in names)])


def read(path: Path) -> TicketFile:
    """Reads and checks a file. Raises: UserError for anything but one complete ticket of this version."""
    return from_bytes(_content(path))


def from_bytes(content: bytes) -> TicketFile:
    """Checks the content of a file. Raises: UserError as `read` does."""
    header, data = _split(content)
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise damaged("its header has no metadata")
    if metadata.get("format") != FORMAT:
        raise UserError("it is a safetensors file, but not a ticket; give one that one_layer exported")
    if metadata.get("version") != VERSION:
        raise UserError(
            f"it is a ticket of version {metadata.get('version')!r:.20}; this program reads version {VERSION}: use the program that "
            "wrote it, or a later one"
        )
    tensors = _tensors(header, data)
    digest = metadata.pop("digest", "")
    if digest != _digest(metadata, tensors):
        raise damaged("its digest does not match its content")
    return TicketFile(len(data), len(content), metadata, tensors, _coded(metadata, tensors))


def _content(path: Path) -> bytes:
    """The whole file, with the size that it had when it was opened."""
    try:
        if path.is_dir():
            raise UserError("it is a folder; give the ticket in it, or a run's folder as --workdir")
        if path.exists() and not path.is_file():
            raise UserError("it is a pipe or a device, which cannot be read twice; give a file")
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > _LARGEST:
                raise damaged(f"it has {size:,} bytes; no ticket has more than {_LARGEST:,}")
            return file.read(size)
    except UserError:
        raise
    except (FileNotFoundError, NotADirectoryError, ValueError):  # the last: no path has a byte 0
        raise UserError("there is no such file; give one that --mode=export wrote") from None
    except OSError as error:
        raise UserError(f"it cannot be read: {error.strerror or error}") from None


def _split(content: bytes) -> tuple[dict[str, Any], memoryview]:
    """The header and the data."""
    length = int.from_bytes(content[:8], "little")
    if len(content) < 8 or 8 + length > len(content):
        raise damaged(f"it ends within its header: it has {len(content):,} bytes")
    if length > _LONGEST_HEADER:
        raise damaged(f"its header has {length:,} bytes; no ticket's has more than {_LONGEST_HEADER:,}")
    header = parse(content[8 : 8 + length], "its header")
    if not isinstance(header, dict):
        raise damaged("its header is not a JSON object")
    return header, memoryview(content)[8 + length :]


def _tensors(header: dict[str, Any], data: memoryview) -> dict[str, np.ndarray]:
    """The arrays that the header describes. Checks that every byte of the data belongs to exactly one array."""
    described = sorted((_described(name, entry), name) for name, entry in header.items())
    tensors, place = {}, 0
    for (begin, end, code, shape), name in described:
        if begin != place:
            raise damaged(f"{name} starts at byte {begin:,} of the data instead of {place:,}")
        if end > len(data):
            raise damaged(f"it ends within {name}: the header describes more bytes than the file has")
        tensors[name] = np.frombuffer(data[begin:end], _DTYPES[code]).reshape(shape)
        place = end
    if place != len(data):
        raise damaged(f"{len(data) - place:,} bytes follow the last tensor")
    return tensors


def _described(name: str, entry: Any) -> tuple[int, int, str, tuple[int, ...]]:
    """The begin, end, dtype and shape of an entry of the header. Raises: UserError if they do not fit together."""
    if len(name) > _LONGEST_NAME or not _NAMES.fullmatch(name):
        raise damaged(f"its header has the invalid tensor name {name!r:.120}")
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise damaged(f"its header does not give dtype, shape and data_offsets of {name}")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if code not in ("U8", "F32"):
        raise damaged(f"{name} has the dtype {code!r:.20}; a ticket's tensors are U8 or F32")
    if not (_is_shape(shape) and _whole(offsets) and len(offsets) == 2):
        raise damaged(f"its header gives {name} an impossible shape or place")
    if offsets[1] - offsets[0] != math.prod(shape) * _DTYPES[code].itemsize:
        raise damaged(f"{name} has the shape {shape} but {offsets[1] - offsets[0]:,} bytes")
    return offsets[0], offsets[1], code, tuple(shape)


def _coded(metadata: Mapping[str, str], tensors: Tensors) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The coded tensors, with their codecs and their decoded shapes."""
    entries = parse(metadata.get("codecs", ""), "its metadata 'codecs'")
    if not isinstance(entries, dict):
        raise damaged("its metadata 'codecs' is not a JSON object")
    for name, entry in entries.items():
        known = isinstance(entry, dict) and entry.keys() == {"codec", "shape"} and isinstance(entry["codec"], str)
        if name not in tensors or tensors[name].dtype != np.uint8 or tensors[name].ndim != 1:
            raise damaged(f"its metadata 'codecs' names {name!r:.120}, which is not a coded tensor")
        if not known or not _is_shape(entry["shape"]):
            raise damaged(f"its metadata 'codecs' does not give codec and shape of {name}")
    return {name: (entry["codec"], tuple(entry["shape"])) for name, entry in entries.items()}


def _whole(values: Any) -> bool:
    """Whether this is a list of whole numbers from 0 to 2^40."""
    return isinstance(values, list) and all(type(value) is int and 0 <= value <= _MOST_ENTRIES for value in values)


def _is_shape(values: Any) -> bool:
    """Whether this is a shape that arrays can have. NumPy limits the product of the nonzero axes even if another axis is 0."""
    return _whole(values) and len(values) <= _MOST_AXES and math.prod(n for n in values if n) <= _MOST_ENTRIES


def _code(tensor: np.ndarray) -> str:
    return "U8" if tensor.dtype == np.uint8 else "F32"


def _digest(metadata: Mapping[str, str], tensors: Tensors) -> str:
    """BLAKE2b (256 bits, hexadecimal) of all content, in a fixed order, with lengths, so that different contents hash different bytes."""
    digest = hashlib.blake2b(digest_size=32)

    def add(piece: bytes | np.ndarray) -> None:
        size = piece.nbytes if isinstance(piece, np.ndarray) else len(piece)
        digest.update(size.to_bytes(8, "little"))
        digest.update(piece.data if isinstance(piece, np.ndarray) else piece)

    digest.update(len(metadata).to_bytes(8, "little"))
    for key in sorted(metadata):
        add(key.encode())
        add(metadata[key].encode())
    digest.update(len(tensors).to_bytes(8, "little"))
    for name in sorted(tensors):
        tensor = tensors[name]
        for text in (name, _code(tensor), ",".join(map(str, tensor.shape))):
            add(text.encode())
        add(tensor)
    return digest.hexdigest()

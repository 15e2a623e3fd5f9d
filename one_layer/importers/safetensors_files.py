"""Reads the tensors of a folder in Hugging Face's format: all of them, or the tables of a RoBERTa, whose rows `vocab.json` names.

For embeddings, only the requested tensor is read from the file, and its values are converted to float32.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Shaped
from safetensors import SafetensorError, safe_open

from one_layer.data.text.vocabulary import read_ids
from one_layer.importers.text_embeddings import Table, check_vectors
from one_layer.system.errors import UserError
from one_layer.system.files import json_object

INDEX = "model.safetensors.index.json"

_FLOATS = ("F16", "BF16", "F32", "F64")
_WHOLE = ("BOOL", "U8", "I8", "I16", "U16", "I32", "U32", "I64", "U64")


def roberta_table(path: str | Path, vocabulary_path: str | Path | None, features: int) -> Table:
    """Returns the word embeddings [rows, features] with the tokens of `vocabulary_path` (byte-level ones such as `Ġthe`) unchanged.

    `path` is the safetensors file, or the folder that holds `model.safetensors`. Without a `vocabulary_path`, the `vocab.json` in
    the same folder is read. Rows without a token are allowed.
    Raises: UserError that names the file, if one is missing or damaged, or if the table has another width.
    """
    file = _file(path)
    vocabulary = Path(vocabulary_path) if vocabulary_path else file.with_name("vocab.json")
    if not vocabulary.is_file():
        raise UserError(f"{vocabulary} does not exist; give the vocab.json of the model as model.embedding_vocabulary")
    places = read_ids(vocabulary)
    rows, name = _read_tensor(file, "word_embeddings", features)
    if (highest := max(places.values(), default=-1)) >= len(rows):
        raise UserError(
            f"{vocabulary} contains the id {highest:,}, but {name} has {len(rows):,} rows, counted from id 0; give the vocab.json "
            "of the same model as model.embedding_vocabulary"
        )
    return Table(name, places, rows)


def roberta_positions(path: str | Path, features: int) -> Float32[np.ndarray, "positions d"]:
    """Returns the learned position embeddings of the file or folder `path`, float32 [positions, features].

    Rows are numbered as in RoBERTa and fairseq: a pad has position 1, which is its own id, and the first token has pad + 1 = 2.
    Row 0 is never used, so the 514 rows of the published models are enough for 512 tokens. The vector of token type 0, which every
    token here has, is added where the file has one; in the models of RoBERTa's authors it is 0.
    Raises: UserError that names the file, if it is missing or damaged, lacks this tensor, has another width or holds a NaN.
    """
    file = _file(path)
    rows, _ = _read_tensor(file, "position_embeddings", features)
    with _opened(file) as tensors:
        has_types = any(name.endswith("embeddings.token_type_embeddings.weight") for name in tensors.keys())  # noqa: SIM118  # no mapping
    if has_types:
        rows += _read_tensor(file, "token_type_embeddings", features)[0][:1].sum(axis=0)
    return rows


def folder_state(folder: Path) -> dict[str, Shaped[np.ndarray, "..."]]:
    """Returns all tensors of a folder by their names: those of `model.safetensors`, or of the files that its index names.

    Raises: UserError that names a file that is missing or damaged, or a tensor that is not where the index has it, or has a number that is
    not finite.
    """
    index = folder / INDEX
    if (folder / "model.safetensors").is_file() or not index.is_file():
        return _state(_file(folder))
    try:
        places = {str(name): str(file) for name, file in json_object(index)["weight_map"].items()}
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise UserError(f"{index} cannot be read ({error}); copy it again") from None
    files = sorted(set(places.values()))
    for name in files:
        if Path(name).name != name:
            raise UserError(f"{index} names the file {name!r:.60}; it must lie in the same folder")
        if not (folder / name).is_file():
            raise UserError(f"{folder} has no {name}, which {INDEX} names; copy it too")
    found = {name: array for file in files for name, array in _state(folder / file).items()}
    if lost := sorted(places.keys() - found.keys()):
        raise UserError(f"{folder} has no tensor {lost[0]}, which {INDEX} names; give the files of one model")
    return found


def _state(file: Path) -> dict[str, Shaped[np.ndarray, "..."]]:
    with _opened(file) as tensors:
        names = list(tensors.keys())
        for name in names:
            if (kind := tensors.get_slice(name).get_dtype()) not in (*_FLOATS, *_WHOLE):
                raise UserError(f"{file}: {name} has numbers of the type {kind}; give a model that is not quantised")
        found = {name: tensors.get_tensor(name) for name in names}
    for name, array in found.items():
        if not np.isfinite(np.asarray(array, np.float32)).all():
            raise UserError(f"{file}: {name} has a number that is not finite; give an undamaged file")
    return found


def _file(path: str | Path) -> Path:
    path = Path(path)
    file = path / "model.safetensors" if path.is_dir() else path
    if not file.is_file():
        raise UserError(f"{file} does not exist; give RoBERTa's model.safetensors, or the folder that holds it")
    return file


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """The tensors of a file. Raises: UserError for a file that is damaged or cannot be read."""
    try:
        with safe_open(file, framework="np") as tensors:
            yield tensors
    except SafetensorError as error:
        raise UserError(f"{file} is not a whole safetensors file ({error}); copy it again") from None
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror or error}") from None


def _read_tensor(file: Path, kind: str, features: int) -> tuple[Float32[np.ndarray, "rows d"], str]:
    """Returns a table of `embeddings` and its name for messages. The tensor's name differs between models with and without a head."""
    wanted = [f"{prefix}embeddings.{kind}.weight" for prefix in ("roberta.", "")]
    with _opened(file) as tensors:
        key = next((name for name in wanted if name in tensors.keys()), None)  # noqa: SIM118  # no mapping
        if key is None:
            raise UserError(f"{file} has neither {wanted[0]} nor {wanted[1]}; give the model.safetensors of a RoBERTa")
        entry = tensors.get_slice(key)
        shape, kind = entry.get_shape(), entry.get_dtype()
        if kind not in _FLOATS or len(shape) != 2 or shape[1] != features:  # checked before anything large is read
            raise UserError(
                f"{file}: {key} is {kind} {shape}, but model.d_model is {features}; give a model whose vectors have this width "
                f"and the type {' or '.join(_FLOATS)}"
            )
        rows = np.asarray(tensors.get_tensor(key), np.float32)
    check_vectors(rows, features, f"{file}: {key}")
    return rows, f"{file}: {key}"

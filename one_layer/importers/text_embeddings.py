"""Pre-trained embeddings, matched to a vocabulary token by token, and their form as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Shaped

from one_layer.data.text.lines import stream_lines
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.errors import UserError
from one_layer.files import replacing


@dataclass(frozen=True)
class Table:
    """Vectors of tokens: `places` says in which of the `rows` a token's lies, `name` is what messages call the table."""

    name: str
    places: Mapping[str, int]
    rows: Float32[np.ndarray, "rows d"]

    def rows_of(self, vocabulary: Vocabulary) -> Float32[np.ndarray, "vocab d"]:
        """The rows in the order of `vocabulary`, NaN where there is no such token."""
        pairs = [(here, self.places[token]) for here, token in enumerate(vocabulary.tokens) if token in self.places]
        found = np.full((len(vocabulary), self.rows.shape[1]), np.nan, np.float32)
        if pairs:
            here, there = np.array(pairs).T
            found[here] = self.rows[there]
        return found


def check_vectors(rows: Shaped[np.ndarray, "..."], features: int, name: str) -> None:
    """Makes sure that `rows` are finite vectors of so many features. Raises: UserError that calls them `name`."""
    if rows.ndim != 2 or not np.issubdtype(rows.dtype, np.floating):
        raise UserError(f"{name} is {rows.dtype} {list(rows.shape)}; a table of vectors is needed")
    _check_features(rows.shape[1], features, name)
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        value = next(number for number in rows[bad[0]] if not np.isfinite(number))
        raise UserError(
            f"{name} has {value} in row {bad[0]:,} (counted from 0), no number to compute with; give a file that is whole"
        )


def read_embeddings(
    path: str | Path, vocabulary: Vocabulary, features: int
) -> tuple[Float32[np.ndarray, "vocab d"], int]:
    """The rows of a file in fairseq's format, `N d` and then N lines `token v1 ... vd`, in the order of `vocabulary`.

    Returns: float32 [vocabulary, features], NaN where the file has no such token, and how many tokens were found.
    Raises: UserError, naming the file and the line, for another dimension, a row too short or too long, and what is no number.
    """
    lines = stream_lines(path)
    first = next(lines)
    header = first.split(" ")
    if len(header) != 2 or not all(map(_is_number, header)):
        raise UserError(f"{path}, line 1: {first[:60]!r} is not `N d`, the numbers of tokens and of features")
    count, found_features = map(int, header)
    _check_features(found_features, features, str(path))
    places = {token: place for place, token in enumerate(vocabulary.tokens)}
    rows = np.full((len(vocabulary), features), np.nan, np.float32)
    seen, number = set(), 1
    for number, line in enumerate(lines, start=2):
        token = line.partition(" ")[0]
        if token in places:
            rows[places[token]] = _vector(line.rstrip(" ").split(" ")[1:], features, f"{path}, line {number}")
            seen.add(token)
    if count != number - 1:
        raise UserError(f"{path} says that it has {count:,} vectors, but has {number - 1:,}; is it cut short?")
    return rows, len(seen)


def write_embeddings(path: str | Path, tokens: Sequence[str], rows: Float32[np.ndarray, "tokens d"]) -> None:
    """Writes what `read_embeddings` reads, to the same bits: nine digits tell every float32 from its neighbours."""
    with replacing(path) as file:
        file.write(f"{len(tokens)} {rows.shape[1]}\n".encode())
        for token, row in zip(tokens, rows, strict=True):
            file.write(f"{token} {' '.join(map('{:.9g}'.format, row.tolist()))}\n".encode())


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


def _check_features(found: int, wanted: int, name: str) -> None:
    if found != wanted:
        raise UserError(f"{name} has vectors of {found} features, but model.d_model is {wanted}; they must be equal")


def _vector(values: list[str], features: int, where: str) -> Float32[np.ndarray, " d"]:
    if len(values) != features:
        raise UserError(f"{where}: a token and {len(values)} numbers, where {features} numbers are needed")
    try:
        vector = np.array(values, np.float32)
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None
    if not np.isfinite(vector).all():
        raise UserError(
            f"{where}: {values[int(np.flatnonzero(~np.isfinite(vector))[0])]!r} is no number to compute with"
        )
    return vector

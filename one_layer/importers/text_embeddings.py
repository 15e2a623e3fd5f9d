"""Pre-trained embeddings: matches them to a vocabulary token by token, and reads them as text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Shaped

from one_layer.data.text.lines import stream_lines
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.system.errors import UserError


@dataclass(frozen=True)
class Table:
    """Vectors of tokens. `places` gives the row of each token in `rows`; messages call the table `name`."""

    name: str
    places: Mapping[str, int]
    rows: Float32[np.ndarray, "rows d"]

    def rows_of(self, vocabulary: Vocabulary) -> Float32[np.ndarray, "vocab d"]:
        """Returns the rows in the order of `vocabulary`; a token that the table lacks gets a row of NaN."""
        pairs = [(here, self.places[token]) for here, token in enumerate(vocabulary.tokens) if token in self.places]
        found = np.full((len(vocabulary), self.rows.shape[1]), np.nan, np.float32)
        if pairs:
            here, there = np.array(pairs).T
            found[here] = self.rows[there]
        return found


def check_vectors(rows: Shaped[np.ndarray, "..."], features: int, name: str) -> None:
    """Checks that `rows` are finite vectors of `features` features. Raises: UserError that calls them `name`."""
    if rows.ndim != 2 or not np.issubdtype(rows.dtype, np.floating):
        raise UserError(f"{name} is {rows.dtype} {list(rows.shape)}; give a floating-point table [tokens, features]")
    _check_features(rows.shape[1], features, name)
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    if len(bad):
        value = next(number for number in rows[bad[0]] if not np.isfinite(number))
        raise UserError(
            f"{name} has {value} in row {bad[0]:,} (counted from 0); every value must be finite; give an undamaged file"
        )


def read_embeddings(path: str | Path, vocabulary: Vocabulary, features: int) -> Float32[np.ndarray, "vocab d"]:
    """Reads a file in fairseq's format: `N d`, then N lines `token v1 ... vd`.

    Returns: float32 [vocabulary, features] in the order of `vocabulary`, with NaN for tokens that the file lacks.
    Raises: UserError that names the file and the line, for another dimension, for a row of the wrong length, and for a value that is
    not a finite number.
    """
    lines = stream_lines(path)
    first = next(lines)
    header = re.fullmatch("([0-9]{1,19}) ([0-9]{1,19})", first)
    if header is None:
        raise UserError(f"{path}, line 1: {first[:60]!r} must be `N d`, the numbers of tokens and of features")
    count, found_features = map(int, header.groups())
    _check_features(found_features, features, str(path))
    rows = np.full((len(vocabulary), features), np.nan, np.float32)
    number = 1
    for number, line in enumerate(lines, start=2):
        token, *values = line.rstrip(" ").split(" ")
        # Of unknown tokens too: a damaged file is not used in part.
        vector = _vector(values, features, f"{path}, line {number}")
        if token in vocabulary.ids:
            rows[vocabulary.ids[token]] = vector
    if count != number - 1:
        raise UserError(
            f"{path}, line 1 gives {count:,} vectors, but the file has {number - 1:,}; give the complete file"
        )
    return rows


def _check_features(found: int, wanted: int, name: str) -> None:
    if found != wanted:
        raise UserError(
            f"{name} has vectors of {found} features, but model.d_model is {wanted}; give vectors with {wanted} features"
        )


def _vector(values: list[str], features: int, where: str) -> Float32[np.ndarray, " d"]:
    if len(values) != features:
        raise UserError(f"{where} has {len(values)} numbers after the token; it must have {features}")
    try:
        with np.errstate(over="ignore"):  # what is too large becomes infinite, which is refused below
            vector = np.array(values, np.float32)
    except ValueError as error:
        raise UserError(f"{where}: every value must be a number ({error})") from None
    if not np.isfinite(vector).all():
        raise UserError(
            f"{where}: {values[int(np.flatnonzero(~np.isfinite(vector))[0])]!r} is not a finite float32 number"
        )
    return vector

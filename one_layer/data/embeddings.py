"""Pre-trained embeddings as text, matched to a vocabulary token by token."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Float32

from one_layer.data.text import read_lines
from one_layer.data.vocabulary import Vocabulary
from one_layer.errors import UserError


def read_embeddings(
    path: str | Path, vocabulary: Vocabulary, features: int
) -> tuple[Float32[np.ndarray, "vocab d"], int]:
    """The rows of a file in fairseq's format, `N d` and then N lines `token v1 ... vd`, in the order of `vocabulary`.

    Returns: float32 [vocabulary, features], NaN where the file has no such token, and how many tokens were found.
    Raises: UserError, naming the file and the line, for another dimension, a row too short or too long, and what is no number.
    """
    lines = read_lines(path)
    header = lines[0].split(" ")
    if len(header) != 2 or not all(number.isdigit() for number in header):
        raise UserError(f"{path}, line 1: {lines[0][:60]!r} is not `N d`, the numbers of tokens and of features")
    count, found_features = map(int, header)
    if found_features != features:
        raise UserError(
            f"{path} has vectors of {found_features} features, but model.d_model is {features}; they must be equal"
        )
    if count != len(lines) - 1:
        raise UserError(f"{path} says that it has {count:,} vectors, but has {len(lines) - 1:,}; is it cut short?")
    places = {token: place for place, token in enumerate(vocabulary.tokens)}
    rows = np.full((len(vocabulary), features), np.nan, np.float32)
    seen = set()
    for number, line in enumerate(lines[1:], start=2):
        token, *values = line.rstrip(" ").split(" ")
        if token in places:
            rows[places[token]] = _vector(values, features, f"{path}, line {number}")
            seen.add(token)
    return rows, len(seen)


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

"""Vocabularies as Hugging Face publishes them: a vocab.json, one object of tokens and their ids."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from one_layer.data.text import read_lines
from one_layer.data.vocabulary import SPECIALS, Vocabulary
from one_layer.errors import UserError


def read_vocabulary_json(path: str | Path) -> Vocabulary:
    """The tokens in the order of their ids, without counts.

    Raises: UserError that names the file, and the token or the id, for a token or an id that stands twice, ids with gaps, tokens that no
    line of text can hold, and where ids 0 to 3 are not `<s> <pad> </s> <unk>`, as they are in RoBERTa's.
    """
    try:
        pairs = json.loads("\n".join(read_lines(path)), object_pairs_hook=list)
    except json.JSONDecodeError as error:
        raise UserError(f"{path}, line {error.lineno}: this is no JSON ({error.msg}); is the file whole?") from None
    if not isinstance(pairs, list) or not all(isinstance(pair, tuple) and type(pair[1]) is int for pair in pairs):
        raise UserError(f"{path} is no JSON object of tokens and whole numbers, as RoBERTa's vocab.json is")
    tokens: dict[int, str] = {}
    for token, number in pairs:
        if number in tokens:
            raise UserError(
                f"{path}: {token!r:.200} and {tokens[number]!r:.200} have the same id, {number}; each needs its own"
            )
        if not _holdable(token):
            raise UserError(
                f"{path}: the token {token!r:.200} is empty, or holds what no token of a line of text can hold"
            )
        tokens[number] = token
    if gaps := [number for number in range(len(tokens)) if number not in tokens]:
        raise UserError(
            f"{path}: no token has the id {gaps[0]}, but {len(tokens):,} tokens need the ids 0 to {len(tokens) - 1:,}"
        )
    ordered = tuple(tokens[number] for number in range(len(tokens)))
    if ordered[: len(SPECIALS)] != SPECIALS:
        raise UserError(
            f"{path}: the ids 0 to 3 are {' '.join(ordered[:4])!r:.200}; they must be {' '.join(SPECIALS)}, as in RoBERTa's"
        )
    if len(ordered) == len(SPECIALS):
        raise UserError(f"{path} has no token but the four special ones; is this a model's vocab.json?")
    if len(set(ordered)) < len(ordered):
        twice, _ = Counter(ordered).most_common(1)[0]
        raise UserError(f"{path}: the token {twice!r:.200} has more than one id; it needs one")
    return Vocabulary(ordered)


def _holdable(token: str) -> bool:
    """Whether a token can stand in a line of tokens: no space, no line end, no half of a surrogate pair."""
    return bool(token) and not any(letter in " \n" or "\ud800" <= letter <= "\udfff" for letter in token)

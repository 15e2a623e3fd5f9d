"""Reads Hugging Face's vocab.json: one JSON object that maps tokens to ids."""

from __future__ import annotations

from pathlib import Path

from one_layer.data.sources.table import json_row
from one_layer.data.text.lines import read_lines
from one_layer.data.text.vocabulary import SPECIALS, Vocabulary
from one_layer.system.errors import UserError


def read_ids(path: str | Path) -> dict[str, int]:
    """Returns the id of every token.

    Raises: UserError for a file that is not such an object, and for a token or an id that occurs twice. The message names the file,
    and the token or the id.
    """
    try:
        ids = json_row("\n".join(read_lines(path)))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be read as JSON ({error}); copy it again") from None
    if not isinstance(ids, dict) or not all(type(number) is int and number >= 0 for number in ids.values()):
        raise UserError(f"{path} must be a JSON object that maps every token to its id, like RoBERTa's vocab.json")
    tokens: dict[int, str] = {}
    for token, number in ids.items():
        if (other := tokens.setdefault(number, token)) != token:
            raise UserError(
                f"{path}: {token!r:.200} and {other!r:.200} have the same id, {number:,}; each needs its own id"
            )
    return ids


def read_vocabulary_json(path: str | Path) -> Vocabulary:
    """Returns a vocabulary of the tokens in the order of their ids, without counts.

    Raises: UserError as `read_ids` does, for gaps in the ids, for tokens that a line of text cannot contain, and if ids 0 to 3 are
    not `<s> <pad> </s> <unk>`, as they are in RoBERTa's file.
    """
    ids = read_ids(path)
    for token in ids:
        if not _holdable(token):
            raise UserError(
                f"{path}: the token {token!r:.200} must not be empty, nor contain a space, a line end or a half of a surrogate pair"
            )
    taken = set(ids.values())
    if gaps := [number for number in range(len(ids)) if number not in taken]:
        raise UserError(
            f"{path}: no token has the id {gaps[0]}; {len(ids):,} tokens must have the ids 0 to {len(ids) - 1:,}"
        )
    ordered = tuple(sorted(ids, key=ids.__getitem__))
    if ordered[: len(SPECIALS)] != SPECIALS:
        raise UserError(
            f"{path}: the ids 0 to 3 are {' '.join(ordered[:4])!r:.200}; they must be {' '.join(SPECIALS)}, as in RoBERTa's file"
        )
    if len(ordered) == len(SPECIALS):
        raise UserError(f"{path} holds only the four special tokens; give the vocab.json of a model")
    return Vocabulary(ordered)


def _holdable(token: str) -> bool:
    """Whether a line of tokens can contain the token: it has no space, no line end and no half of a surrogate pair."""
    return bool(token) and not any(letter in " \n" or "\ud800" <= letter <= "\udfff" for letter in token)

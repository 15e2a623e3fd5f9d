"""Tokens as Hugging Face publishes them: a vocab.json, one object of tokens and their ids."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from one_layer.data.text.lines import read_lines
from one_layer.data.text.vocabulary import SPECIALS, Vocabulary
from one_layer.errors import UserError


def read_ids(path: str | Path) -> dict[str, int]:
    """The id of every token.

    Raises: UserError that names the file, and the token or the id, for what is no such object, and a token or an id that stands
    twice.
    """
    try:
        pairs: Any = json.loads("\n".join(read_lines(path)), object_pairs_hook=_Pairs)
    except json.JSONDecodeError as error:
        raise UserError(f"{path}, line {error.lineno}: this is no JSON ({error.msg}); is the file whole?") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is no JSON that can be read ({error}); copy it again") from None
    if not isinstance(pairs, _Pairs) or not all(type(number) is int and number >= 0 for _, number in pairs):
        raise UserError(f"{path} is no JSON object that gives every token its id, as RoBERTa's vocab.json is")
    ids: dict[str, int] = {}
    tokens: dict[int, str] = {}
    for token, number in pairs:
        if token in ids:
            raise UserError(f"{path}: the token {token!r:.200} has more than one id; it needs one")
        if number in tokens:
            raise UserError(
                f"{path}: {token!r:.200} and {tokens[number]!r:.200} have the same id, {number:,}; each needs its own"
            )
        ids[token], tokens[number] = number, token
    return ids


def read_vocabulary_json(path: str | Path) -> Vocabulary:
    """The tokens in the order of their ids, without counts.

    Raises: UserError as `read_ids` does, and for ids with gaps, tokens that no line of text can hold, and where ids 0 to 3 are not
    `<s> <pad> </s> <unk>`, as they are in RoBERTa's.
    """
    ids = read_ids(path)
    for token in ids:
        if not _holdable(token):
            raise UserError(
                f"{path}: the token {token!r:.200} is empty, or holds what no token of a line of text can hold"
            )
    taken = set(ids.values())
    if gaps := [number for number in range(len(ids)) if number not in taken]:
        raise UserError(
            f"{path}: no token has the id {gaps[0]}, but {len(ids):,} tokens need the ids 0 to {len(ids) - 1:,}"
        )
    ordered = tuple(sorted(ids, key=ids.__getitem__))
    if ordered[: len(SPECIALS)] != SPECIALS:
        raise UserError(
            f"{path}: the ids 0 to 3 are {' '.join(ordered[:4])!r:.200}; they must be {' '.join(SPECIALS)}, as in RoBERTa's"
        )
    if len(ordered) == len(SPECIALS):
        raise UserError(f"{path} has no token but the four special ones; is this a model's vocab.json?")
    return Vocabulary(ordered)


class _Pairs(list[tuple[str, Any]]):
    """What an object holds, in its order and with what stands in it twice."""


def _holdable(token: str) -> bool:
    """Whether a token can stand in a line of tokens: no space, no line end, no half of a surrogate pair."""
    return bool(token) and not any(letter in " \n" or "\ud800" <= letter <= "\udfff" for letter in token)

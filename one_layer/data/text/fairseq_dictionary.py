"""Reads fairseq's dict.txt as a vocabulary with the same ids."""

from __future__ import annotations

from pathlib import Path

from one_layer.data.text.lines import read_lines
from one_layer.data.text.vocabulary import SPECIALS, Vocabulary, token_and_count
from one_layer.system.errors import UserError

_OVERWRITE = " #fairseq:overwrite"


def read_dictionary(path: str | Path) -> Vocabulary:
    """Returns the vocabulary of lines `token count`, in the order of ids after the four special tokens.

    fairseq fills its dictionaries up to a multiple of 8 with lines such as `madeupword0000 0`. These are ordinary tokens, because
    each has a row in the embeddings. A token may occur again if the line ends with `#fairseq:overwrite`. The token then means the
    last of its lines, except that a special token keeps its own id. The other lines keep their ids under names that no text contains.

    Raises: UserError that names a malformed line, or a repetition without that mark.
    """
    tokens, counts = list(SPECIALS), [0] * len(SPECIALS)
    places = {token: place for place, token in enumerate(SPECIALS)}
    for number, line in enumerate(read_lines(path), start=1):
        stated = line.rstrip()
        entry = stated.removesuffix(_OVERWRITE)
        if (found := token_and_count(entry)) is None:
            raise UserError(
                f"{path}, line {number}: {line!r:.200} is not of the form `token count` (a token, one space, a whole number); give the "
                "dict.txt that the model was trained with"
            )
        token, count = found
        here = len(tokens)
        if token in places:
            if entry == stated:
                raise UserError(
                    f"{path}, line {number}: {token!r:.200} already has an id; fairseq accepts a repeated token only if its line ends "
                    f"with{_OVERWRITE}"
                )
            if places[token] < len(SPECIALS):
                token = _hidden(here)
            else:
                tokens[places[token]] = _hidden(places[token])
        places[token] = here
        tokens.append(token)
        counts.append(count)
    return Vocabulary(tuple(tokens), tuple(counts))


def check_rows(vocabulary: Vocabulary, path: str | Path, rows: int, table: str) -> None:
    """Checks that the dictionary in `path` has as many types as the table has rows. Raises: UserError if not."""
    if len(vocabulary) != rows:
        raise UserError(
            f"{path} has {len(vocabulary):,} types (4 special types and one for each line), but {table} has {rows:,} rows; "
            "give the dict.txt that the model was trained with"
        )


def _hidden(place: int) -> str:
    return f"<overwritten:{place}>"

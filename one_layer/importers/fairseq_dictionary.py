"""fairseq's dict.txt as a vocabulary with the same ids."""

from __future__ import annotations

from pathlib import Path

from one_layer.data.text.lines import read_lines
from one_layer.data.text.vocabulary import SPECIALS, Vocabulary
from one_layer.errors import UserError

_OVERWRITE = " #fairseq:overwrite"


def read_dictionary(path: str | Path) -> Vocabulary:
    """The vocabulary of lines `token count`, in the order of ids after the four special tokens.

    The lines `madeupword0000 0` that fill fairseq's dictionaries up to a multiple of 8 are tokens like any other: each has its
    row in the embeddings. A token may stand once more where the line ends in `#fairseq:overwrite`. Its text then means the
    last of its lines (a special token's stays what it is); the others keep their ids under names that no text has.

    Raises: UserError that names the line which is malformed, or a repetition without that mark.
    """
    tokens, counts = list(SPECIALS), [0] * len(SPECIALS)
    places = {token: place for place, token in enumerate(SPECIALS)}
    for number, line in enumerate(read_lines(path), start=1):
        stated = line.rstrip()
        entry = stated.removesuffix(_OVERWRITE)
        token, _, count = entry.rpartition(" ")
        if not token or " " in token or not (count.isascii() and count.isdigit() and len(count) < 20):
            raise UserError(
                f"{path}, line {number}: {line!r:.200} is not `token count` (a token, one space, a number); give the dict.txt that "
                "the model was trained with"
            )
        here = len(tokens)
        if token in places:
            if entry == stated:
                raise UserError(
                    f"{path}, line {number}: {token!r:.200} has an id already; fairseq takes a token twice only where the line ends "
                    f"in{_OVERWRITE}"
                )
            if places[token] < len(SPECIALS):
                token = _hidden(here)
            else:
                tokens[places[token]] = _hidden(places[token])
        places[token] = here
        tokens.append(token)
        counts.append(int(count))
    return Vocabulary(tuple(tokens), tuple(counts))


def check_rows(vocabulary: Vocabulary, path: str | Path, rows: int, table: str) -> None:
    """Makes sure that a dictionary, that of `path`, has a type for every row of the table. Raises: UserError where it has not."""
    if len(vocabulary) != rows:
        raise UserError(
            f"{path} has {len(vocabulary):,} types (4 special ones and a line for each of the others), but {table} {rows:,} rows; "
            "give the dict.txt that the model was trained with"
        )


def _hidden(place: int) -> str:
    return f"<overwritten:{place}>"

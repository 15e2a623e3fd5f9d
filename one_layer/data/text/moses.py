"""Moses' tokenisation and how it is undone, by sacremoses, which is imported at first use."""

import re
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache

_MOST_DOTS = 1000  # in a row: sacremoses takes time that grows with their square
_MANY_DOTS = re.compile(rf"\.{{{_MOST_DOTS},}}")
_LAST_WORD_WITH_STOP = re.compile(r"[^ .]\.$")


@lru_cache(maxsize=8)
def tokenizer(language: str, normalize: bool, split_hyphens: bool) -> Callable[[str], str]:
    """The function that makes tokens of a line, with Moses' escapes; see `one_layer.data.text.preprocess.Preprocessing`."""
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    normalizer, moses = MosesPunctNormalizer(language, perl_parity=True), MosesTokenizer(language)

    def tokenize(line: str) -> str:
        line = _MANY_DOTS.sub("." * _MOST_DOTS, line)
        if normalize:
            # Moses' script sees the line end; it needs it to exchange a quotation mark at the end with a full stop.
            line = printable(normalizer.normalize(line + "\n"))
        line = moses.tokenize(line, aggressive_dash_splits=split_hyphens, return_str=True, escape=True).strip(" ")
        # Moses' script separates the full stop from the last word even if that is an abbreviation; sacremoses does not.
        return line[:-1] + " ." if _LAST_WORD_WITH_STOP.search(line) else line

    return tokenize


@lru_cache(maxsize=8)
def detokenizer(language: str) -> Callable[[str], str]:
    """The function that makes plain text of a line of tokens.

    sacremoses raises errors at some lines, for instance at quotation marks in Czech. Such a line gets the rules that all languages share.
    """
    from sacremoses import MosesDetokenizer

    rules = MosesDetokenizer(language), MosesDetokenizer("")

    def detokenize(line: str) -> str:
        for each in rules:
            with suppress(Exception):
                return each.detokenize(line.split(" "), return_str=True, unescape=True)
        return line

    return detokenize


def printable(line: str) -> str:
    """Replaces every control, format, private and unassigned character (Unicode categories C*) of `line` by a space.

    This is Moses' remove-non-printing-char. It keeps separators such as U+2028, which tokenisation turns into spaces.
    """
    if line.isprintable():
        return line
    return "".join(" " if unicodedata.category(letter)[0] == "C" else letter for letter in line)

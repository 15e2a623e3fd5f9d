"""What Moses' rules in JavaScript (one_layer/page/text/moses.js) need to know: abbreviations, and which characters are letters or numbers.

sacremoses has both; it is imported at first use. Its characters are those of an older Unicode than JavaScript's, so that a page needs them
to cut lines as Python does.
"""

from collections.abc import Iterable
from typing import Any

from one_layer.data.text.languages import code
from one_layer.data.text.preprocess import MOSES, Preprocessing

LANGUAGES = ("de", "en")  # for which the page has rules


def moses_tables(sides: Iterable[Preprocessing]) -> dict[str, Any] | None:
    """The tables for the sides of a model, ready for JSON; None if no side has Moses' tokens of a language with rules in the page.

    `languages` has the code and the abbreviations of each language, by its name in the ticket. The others are the insides of character
    classes.
    """
    names = {each.language for each in sides if each.spaced and (each.tokenize or MOSES in each.undone)}
    names = {name for name in names if code(name) in LANGUAGES}
    if not names:
        return None
    from sacremoses.corpus import NonbreakingPrefixes, Perluniprops
    from sacremoses.indic import NUKTAS, VIRAMAS
    from sacremoses.util import CJKChars

    words, properties = NonbreakingPrefixes().words, Perluniprops().chars
    classes = {"alnum": "IsAlnum", "alpha": "IsAlpha", "lower": "IsLower", "number": "IsN", "currency": "IsSc"}
    return {
        "languages": {name: {"code": code(name), "prefixes": list(words(code(name)))} for name in sorted(names)},
        **{name: _ranges(map(ord, "".join(properties(category)))) for name, category in classes.items()},
        "marks": _ranges(map(ord, (*VIRAMAS, *NUKTAS))),
        "cjk": "".join(f"{chr(first)}-{chr(last)}" for first, last in CJKChars.ranges),
    }


def _ranges(numbers: Iterable[int]) -> str:
    """The inside of a character class with these code points. A line end, which sacremoses counts as a number, is in no line."""
    parts: list[list[int]] = []
    for number in sorted({*numbers} - {ord("\n")}):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return "".join(chr(first) if first == last else f"{chr(first)}-{chr(last)}" for first, last in parts)

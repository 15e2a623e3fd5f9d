"""Tells by its words how much a text looks like one language, where that is easy."""

import re
from collections.abc import Sequence

from one_layer.data.text.languages import code

# What the words of a language look like: they have its letters, or are among its commonest ones.
_WORDS = {
    **dict.fromkeys(("ru", "uk", "bg"), r"[\u0400-\u04ff]+"),
    "el": r"[\u0370-\u03ff]+",
    "he": r"[\u0590-\u05ff]+",
    **dict.fromkeys(("ar", "fa", "ur"), r"[\u0600-\u06ff]+"),
    **dict.fromkeys(("hi", "mr", "ne"), r"[\u0900-\u097f]+"),
    "th": r"[\u0e00-\u0e7f]+",
    "ko": r"[\uac00-\ud7af]+",
    **dict.fromkeys(("ja", "zh", "yue"), r"[\u3040-\u30ff\u4e00-\u9fff]+"),
    "cs": "a|je|se|na|že|to|v|s|do|jsem|ale",
    "da": "og|er|det|at|en|jeg|ikke|til|som|der|på",
    "de": "der|die|und|das|ist|ein|eine|nicht|ich|mit|den|zu",
    "en": "the|a|of|and|to|in|is|on|with|it|you|are",
    "es": "el|la|de|que|y|los|en|es|un|una|por|no",
    "fi": "ja|on|ei|se|hän|että|oli|mutta|ovat|kun",
    "fr": "le|la|les|de|et|des|est|un|une|dans|que|il",
    "hu": "a|az|és|hogy|nem|egy|is|van|meg|volt",
    "it": "il|la|di|che|e|un|una|è|per|non|in|sono",
    "nl": "de|het|een|en|van|is|in|op|niet|dat|ik|met",
    "pl": "i|w|na|nie|się|jest|to|z|że|do|jak",
    "pt": "o|a|de|que|e|um|uma|não|os|em|do|para",
    "ro": "și|de|a|în|la|este|nu|o|pe|cu|că|un",
    "sv": "och|är|en|det|att|jag|inte|på|som|i|för|av",
    "tr": "bir|ve|bu|için|çok|ne|de|da|var|değil",
}
# A text looks like a language by at least this share, and by so many times more than by its own name.
_LEAST, _TIMES = 0.05, 2.0


def swapped(source: Sequence[str], target: Sequence[str], languages: tuple[str, str]) -> bool:
    """Whether the lines of each side look like the language of the other side. Never, where it is not easy to tell."""
    ours, theirs = map(code, languages)
    if ours == theirs or not {ours, theirs} <= _WORDS.keys():
        return False
    return _rather(source, theirs, ours) and _rather(target, ours, theirs)


def _rather(lines: Sequence[str], one: str, other: str) -> bool:
    share = _likeness(lines, one)
    return share >= _LEAST and share > _TIMES * _likeness(lines, other)


def _likeness(lines: Sequence[str], language: str) -> float:
    """The share of the words that look like those of the language."""
    words = re.findall(r"[^\W\d_]+", " ".join(lines).lower())
    return sum(re.fullmatch(_WORDS[language], word) is not None for word in words) / max(len(words), 1)

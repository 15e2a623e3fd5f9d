"""Languages whose scripts put no spaces between words, and how sacreBLEU cuts them into tokens."""

from __future__ import annotations

import re

# ISO 639 codes of two and three letters: Chinese, Japanese, Thai, Lao, Khmer, Burmese, Tibetan, Dzongkha. Files often have the country's
# code (`train.cn`) or the name of the language in their place; neither is the code of another language.
_CHINESE = ("zh", "zho", "chi", "cmn", "yue", "wuu", "lzh", "cn", "chinese", "mandarin", "cantonese")
_CONTINUOUS = (
    *_CHINESE,
    "ja",
    "jpn",
    "th",
    "tha",
    "lo",
    "lao",
    "km",
    "khm",
    "my",
    "mya",
    "bur",
    "bo",
    "bod",
    "tib",
    "dz",
    "dzo",
    "jp",
    "japanese",
    "thai",
    "khmer",
    "burmese",
    "tibetan",
    "dzongkha",
)
# Han, kana, their punctuation and full-width forms. Between two of them, no space is ever meant.
_EAST_ASIAN = r"[⺀-〿぀-ヿㇰ-ㇿ㐀-䶿一-鿿豈-﫿＀-￯\U00020000-\U0003fffd]"
_INNER_SPACE = re.compile(f"(?<={_EAST_ASIAN}) +(?={_EAST_ASIAN})")


def has_spaces(language: str) -> bool:
    """Whether the language (`de`, `zh`, `zh-Hant`) has spaces between its words."""
    return _code(language) not in _CONTINUOUS


def sacrebleu_tokenizer(language: str) -> str:
    """The name of sacreBLEU's tokenizer for text of this language: 13a where words have spaces, zh for Chinese, else characters.

    sacreBLEU's own choice for Japanese, ja-mecab, needs a dictionary that is not installed.
    """
    if has_spaces(language):
        return "13a"
    return "zh" if _code(language) in _CHINESE else "char"


def without_inner_spaces(line: str) -> str:
    """Removes the spaces between East Asian characters, which segmented text has."""
    return _INNER_SPACE.sub("", line)


def characters(line: str) -> str:
    """The characters of a line with spaces between them: tokens of a script that has none."""
    return " ".join("".join(line.split()))


def _code(language: str) -> str:
    return re.split("[-_]", language.lower())[0]

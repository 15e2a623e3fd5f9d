"""Codes of languages: one for all spellings of a language, which scripts have no spaces, and how sacreBLEU cuts these into tokens."""

import re

# Languages for which Moses or this project has rules: the code that sacremoses knows, then other spellings of it: codes of three letters
# (ISO 639-2, both kinds, and 639-3), and what files often have in their place, which is never the code of another language: the
# country's code (`train.cn`) or the name of the language.
_SPELLINGS = """
as asm assamese
bn ben bengali
bo bod tib tibetan
ca cat catalan
cs ces cze cz czech
de deu ger german
dz dzo dzongkha
el ell gre greek
en eng english
es spa spanish
et est ekk estonian
fi fin finnish
fr fra fre french
ga gle irish
gu guj gujarati
hi hin hindi
hu hun hungarian
is isl ice icelandic
it ita italian
ja jpn jp japanese
kn kan kannada
km khm khmer
ko kor korean
lo lao
lt lit lithuanian
lv lav lvs latvian
ml mal malayalam
mni manipuri
mr mar marathi
my mya bur burmese
nl nld dut dutch
or ori ory oriya
pa pan punjabi
pl pol polish
pt por portuguese
ro ron rum romanian
ru rus russian
sk slk slo slovak
sl slv slovenian
sv swe swedish
ta tam tamil
tdt tet tetum
te tel telugu
th tha thai
yue cantonese
zh zho chi cmn wuu lzh cn chinese mandarin
"""
_CODES = {spelling: line.split()[0] for line in _SPELLINGS.strip().split("\n") for spelling in line.split()}
_CHINESE = ("zh", "yue")
_CONTINUOUS = (*_CHINESE, "ja", "th", "lo", "km", "my", "bo", "dz")
# Han, kana, their punctuation and full-width forms, but no hangul. Between two of them, no space is ever meant.
# Escapes, because U+F900 becomes U+8C48 where an editor normalises text.
_EAST_ASIAN = r"[\u2e80-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003fffd]"
_INNER_SPACE = re.compile(f"(?<={_EAST_ASIAN}) +(?={_EAST_ASIAN})")


def code(language: str) -> str:
    """The code of a language, however it is written: `de` for `de`, `DE`, `de-AT`, `deu`, `ger` and `german`.

    Where no other spelling is known, it is the part before the country, in small letters.
    """
    first = re.split("[-_]", language.lower())[0]
    return _CODES.get(first, first)


def has_spaces(language: str) -> bool:
    """Whether the language (`de`, `zh`, `zh-Hant`) has spaces between its words."""
    return code(language) not in _CONTINUOUS


def sacrebleu_tokenizer(language: str) -> str:
    """The name of sacreBLEU's tokenizer for text of this language: 13a where words have spaces, zh for Chinese, else characters.

    sacreBLEU's own choice for Japanese, ja-mecab, needs a dictionary that is not installed.
    """
    if has_spaces(language):
        return "13a"
    return "zh" if code(language) in _CHINESE else "char"


def without_inner_spaces(line: str) -> str:
    """Removes the spaces between East Asian characters, which segmented text has."""
    return _INNER_SPACE.sub("", line)


_CHARACTERS = re.compile(r"<<unk>>|<unk>|\S")


def characters(line: str) -> str:
    """The characters of a line with spaces between them: tokens of a script that has none. An unknown token stays one."""
    return " ".join(_CHARACTERS.findall(line))

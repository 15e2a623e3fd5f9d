"""Pieces that hold their spaces: every text comes back. tests/page compares the pieces with those of another reader."""

import unicodedata
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from one_layer.data.special_tokens import UNK
from one_layer.data.text import metaspace
from one_layer.data.text.preprocess import Preprocessing, count_words
from one_layer.data.text.vocabulary import BYTES, Vocabulary
from tests import user_error

# Simple sentences, with the signs that tokenisers change.
SENTENCES = {
    "en": "It's 5:30 — the 8' x 10' room, see https://example.org/a?b=c&d (50 % off)!",
    "de": "„Das geht so nicht“, sagte er; z. B. 3,5 km² am 1. Mai.",
    "uk": "П'ять дітей їдять м'ясо, а сім'я п’є воду.",
    "nl": "Zo'n auto's zijn 's avonds te duur, hè?",
    "hi": "लड़का पानी पीता है। क्या वह घर जाएगी?",
    "ur": "بچہ پانی پیتا ہے۔ کیا وہ گھر جائے گی؟",
    "yo": "Ọmọ náà ń jẹ ẹ̀bà; ó sì ń mu omi.",
    "fa": "می‌خواهم به خانه‌ات بروم؛ کتاب‌ها آنجاست.",
    "si": "ශ්‍රී ලංකාව ලස්සන රටකි.",
    "ar": "شربَ الولدُ الماءَ، ثم ذهبَ إلى البيت.",
    "he": 'הילד שתה מים, וצה"ל הלך הביתה.',
    "zh": "他说：“我有两只猫。” iPhone 12 很贵！",
    "ja": "「猫が２匹います」と言った。　そうです。",
    "ko": "아이가 물을 마셨다. 집에 갈까요?",
    "th": "เด็กดื่มน้ำที่บ้าน มากๆ",
    "my": "ကလေးက ရေသောက်တယ်။",
    "ru": "Мальчик пьёт воду — «очень холодную».",
    "ta": "குழந்தை தண்ணீர் குடிக்கிறது.",
    "sw": "Mtoto anakunywa maji, ng'ombe pia.",
    "pl": "Dziecko pije wodę, a „mama” śpi…",
}
ODD = [
    "the 'best' film",
    "AT&amp;T &lt; AT&T",
    "5 % off ( today )",
    "@@ -1,3 +1,4 @@",
    "▁do g▁▁ ▁",
    "<0xE2> <0x41><s> </s> <unk> <pad>",
    "a\tb  c   d\u00a0e\u3000f\u2028g\u0085h",
    "👩‍👩‍👧❤️ 🏳️‍🌈 cafe\u0301 n\u0303",
    "\ufeffmark \x00\x07\x1f\x7f \u200b\u200e\u202e",
    "one\ntwo\rthree\r\nfour",
    "",
]
TEXT = st.text(
    st.one_of(st.characters(codec="utf-8"), st.sampled_from("the house's  \t\r\n▁<0xE2>@&;‌‍é\u0301न्दी漢👩🏽'\"")),
    max_size=40,
)
LINES = [*SENTENCES.values(), "the house, the houses and the newest house in 1990 and 1991"] * 2


def learned(lines: list[str], merges: int, **keys: bool) -> Preprocessing:
    words = Preprocessing("xx", bpe_kind="metaspace", **keys).words(lines)
    return Preprocessing("xx", bpe_kind="metaspace", codes=metaspace.learn(count_words(words), merges), **keys)


@cache
def learned_from(lines: tuple[str, ...], merges: int) -> tuple[Preprocessing, Vocabulary]:
    """The steps that were learned from the lines, and a vocabulary of the first half of them."""
    steps = learned(list(lines), merges)
    return steps, Vocabulary.build(steps.apply(list(lines[: 1 + len(lines) // 2])), BYTES)


STEPS = learned(LINES, 300)
VOCABULARY = Vocabulary.build(STEPS.apply(LINES[: len(LINES) // 4]), BYTES)  # lacks most characters of the others


def there_and_back(steps: Preprocessing, vocabulary: Vocabulary, text: str) -> str:
    (line,) = steps.apply([text])
    assert "\n" not in line and steps.undo([line]) == [text.strip(" ")]
    ids = vocabulary.encode(line)
    assert UNK not in ids
    return steps.undo([vocabulary.decode(ids)])[0]


@settings(deadline=None, max_examples=400)
@given(TEXT)
def test_every_text_comes_back_from_its_pieces_and_from_its_ids(text: str) -> None:
    assert there_and_back(STEPS, VOCABULARY, text) == text.strip(" ")


@pytest.mark.parametrize("merges", [1, 40, 2000])
@pytest.mark.parametrize("text", [*SENTENCES.values(), *ODD])
def test_sentences_come_back(text: str, merges: int) -> None:
    """In each language, in both normal forms, whatever was learned: from all sentences, or from one in another language."""
    for lines in (tuple(LINES), ("the house, the house",)):
        steps, vocabulary = learned_from(lines, merges)
        for each in (text, unicodedata.normalize("NFD", text), f"  {text} {text}  "):
            assert there_and_back(steps, vocabulary, each) == each.strip(" ")
    lower = Preprocessing("xx", lowercase=True, bpe_kind="metaspace", codes=steps.codes)
    assert (
        there_and_back(lower, vocabulary, text.lower()) == lower.undo(lower.apply([text]))[0] == text.lower().strip(" ")
    )


def test_a_vocabulary_keeps_its_tokens_in_its_file() -> None:
    lines = STEPS.apply([*LINES, *ODD])
    whole = Vocabulary.build(lines, BYTES)
    again = Vocabulary.parse(whole.text.removeprefix("\ufeff").removesuffix("\n").split("\n"), "file")
    assert again == whole and again.has_bytes and len(set(whole.tokens)) == len(whole.tokens)


def test_what_is_a_word() -> None:
    assert metaspace.words("  It's 5:30pm, (now)!  Yes ") == "▁It ' s ▁5 : 30 pm , ▁( now )! ▁ ▁Yes"
    assert metaspace.words("है। می‌خواهم ❤️") == "▁है । ▁می‌خواهم ▁❤️"
    assert metaspace.words("a▁b\n") == "▁a <0xE2> <0x96> <0x81> b <0x0A>"
    assert metaspace.words(" ") == metaspace.words("") == ""


def test_a_model_may_write_any_pieces() -> None:
    assert metaspace.join("<0xE2> <0x96> ▁a <0xFF> b") == "\ufffd a\ufffdb"
    assert metaspace.join("▁ ▁ <0x20> x ▁") == "x"
    assert metaspace.join("<unk> ▁<0x41> <0x4 1>") == "<unk> <0x41><0x41>", "only whole tokens are bytes"


def test_a_pair_that_is_there_twice_is_merged_in_its_first_place() -> None:
    assert metaspace.splitter("a b\nb c\na b\n")("abc") == "ab c"


def test_pieces_that_a_vocabulary_lacks_are_characters_and_then_bytes() -> None:
    vocabulary = Vocabulary(("<s>", "<pad>", "</s>", "<unk>", "▁ab", "b", "ß", *BYTES))
    assert vocabulary.decode(vocabulary.encode("▁ab ▁aßb")) == "▁ab <0x20> <0x61> ß b"
    partly = Vocabulary(vocabulary.tokens[:-1])
    assert not partly.has_bytes and partly.encode("▁ab c").tolist() == [4, UNK, 2]


def test_tokens_of_moses_are_refused() -> None:
    with user_error(r"data\.bpe_kind=metaspace keeps text as it is, but data\.tokenize changes it: give"):
        Preprocessing("en", tokenize=True, bpe_kind="metaspace")

"""Pieces that hold their spaces: every text comes back, and another reader of the rules on the format page gives the same pieces."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import chain, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from one_layer.data.special_tokens import UNK
from one_layer.data.text import byte_level, metaspace
from one_layer.data.text.preprocess import Preprocessing, check_codes, count_words
from one_layer.data.text.vocabulary import BYTES, Vocabulary
from one_layer.system.errors import UserError

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
    "km": "ក្មេងផឹកទឹក។",
    "bo": "ཁྱི་ཆུ་འཐུང་།",
    "vi": "Đứa trẻ uống nước; nó có về nhà không?",
    "tr": "Çocuk su içti; İstanbul'a mı gitti?",
    "ru": "Мальчик пьёт воду — «очень холодную».",
    "cs": "Otevřete 'Outlook' - mailový klient .",
    "el": "Το παιδί πίνει νερό· πού πάει;",
    "fr": "L'enfant boit de l’eau : « c’est bon » !",
    "es": "¿Qué bebe el niño? ¡Agua!",
    "fi": "EU:n lapsi joi vettä.",
    "hu": "A gyerek vizet iszik, ugye?",
    "ta": "குழந்தை தண்ணீர் குடிக்கிறது.",
    "bn": "শিশুটি জল খায়।",
    "te": "పిల్లవాడు నీళ్ళు తాగాడు.",
    "ka": "ბავშვი წყალს სვამს.",
    "hy": "Երեխան ջուր է խմում։",
    "am": "ልጁ ውሃ ጠጣ።",
    "sw": "Mtoto anakunywa maji, ng'ombe pia.",
    "ca": "L'al·lot beu aigua d'en Joan.",
    "ga": "D'ól an páiste an t-uisce.",
    "pl": "Dziecko pije wodę, a „mama” śpi…",
    "haw": "ʻAi ke keiki i ka iʻa.",
}
# Four sentences each in the languages that lost most.
MORE = {
    "uk": [
        "П'ять дітей їдять м'ясо.",
        "Сім'я п'є чай на подвір'ї.",
        "Об'єкт з'явився о 5:30.",
        "Він сказав: «Здоров'я!»",
    ],
    "nl": ["'s Avonds eten we pizza's.", "Zo'n auto is te duur.", "De foto's zijn van oma's huis.", "'t Is 20:15, hè?"],
    "hi": ["लड़का पानी पीता है।", "वह घर जाती है।", "मैं 5:30 बजे आऊँगा।", "क्या यह 50% सस्ता है?"],
    "ur": ["بچہ پانی پیتا ہے۔", "وہ گھر جاتی ہے۔", "میں کل آؤں گا۔", "کیا یہ کتاب ہے؟"],
    "yo": ["Ọmọ náà ń jẹ ẹ̀bà.", "Mo fẹ́ lọ sí ọjà.", "Ṣé o ti jẹun?", "Bàbá mi ń ṣiṣẹ́ ní oko."],
    "en": [
        "We met at 5:30.",
        "The room is 8' x 10'.",
        "See https://example.org/a?b=c&d=e.",
        "It's 50 % off ( today )!",
    ],
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
LINES = [*SENTENCES.values(), *chain(*MORE.values()), "the house, the houses and the newest house in 1990 and 1991"] * 2


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
@pytest.mark.parametrize("text", [*SENTENCES.values(), *map(" ".join, MORE.values()), *ODD])
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


def test_the_pieces_of_language_models_hold_every_text_too() -> None:
    steps = Preprocessing("xx", codes=byte_level.learn(LINES, 100), bpe_kind="byte-level")
    for text in (*SENTENCES.values(), *ODD):
        assert steps.undo(steps.apply([text])) == [text]


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


def test_learning_depends_on_the_words_alone() -> None:
    assert learned(LINES[::-1], 50).codes == learned(LINES, 50).codes
    assert "0xE" not in str(learned(["▁ ▁ ▁ ab ab"], 20).codes), "tokens of bytes are not text"


def test_a_pair_that_is_there_twice_is_merged_in_its_first_place() -> None:
    assert metaspace.splitter("a b\nb c\na b\n")("abc") == "ab c"


def test_pieces_that_a_vocabulary_lacks_are_characters_and_then_bytes() -> None:
    vocabulary = Vocabulary(("<s>", "<pad>", "</s>", "<unk>", "▁ab", "b", "ß", *BYTES))
    assert vocabulary.decode(vocabulary.encode("▁ab ▁aßb")) == "▁ab <0x20> <0x61> ß b"
    partly = Vocabulary(vocabulary.tokens[:-1])
    assert not partly.has_bytes and partly.encode("▁ab c").tolist() == [4, UNK, 2]


# What a reader in another language does, from docs/ticket-format.md alone.

WHITE = {*range(9, 14), 32, 133, 160, 5760, *range(8192, 8203), 8232, 8233, 8239, 8287, 12288}


def kind_of(letter: str) -> str:
    if ord(letter) in WHITE:
        return "white"
    if letter == "▁":
        return "space letter"
    category = unicodedata.category(letter)[0]
    return {"L": "letter", "M": "mark", "N": "number"}.get(category, "joiner" if letter in "\u200c\u200d" else "other")


def words_of(text: str) -> list[str]:
    text, found, place = " " + text.strip(" "), [], 0
    while place < len(text) and text != " ":
        start = place + (text[place] == " " and place + 1 < len(text))
        for kinds in (("letter", "mark", "joiner"), ("number",), ("other", "mark", "joiner")):
            end = start
            while end < len(text) and kind_of(text[end]) in kinds:
                end += 1
            if end > start:
                break
        else:
            end = place + 1
        found.append(text[place:end])
        place = end
    return found


def pieces_of(text: str, merges: str, vocabulary: Vocabulary) -> list[str]:
    ranks = {tuple(line.split(" ")): rank for rank, line in enumerate(merges.removesuffix("\n").split("\n")[1:])}
    pieces: list[str] = []
    for word in words_of(text):
        if word in ("▁", "\n", "\r"):
            pieces += (f"<0x{byte:02X}>" for byte in word.encode())
            continue
        symbols = list(word.replace(" ", "▁"))
        while pairs := [(ranks[pair], place) for place, pair in enumerate(pairwise(symbols)) if pair in ranks]:
            place = min(pairs)[1]
            symbols[place : place + 2] = ["".join(symbols[place : place + 2])]
        for symbol in symbols:
            for part in [symbol] if symbol in vocabulary.tokens else symbol:
                known = part in vocabulary.tokens
                pieces += [part] if known else (f"<0x{byte:02X}>" for byte in part.replace("▁", " ").encode())
    return pieces


def alike(text: str) -> bool:
    """Whether both readers give the same pieces, or the text has none."""
    (line,) = STEPS.apply([text])
    ours = VOCABULARY.decode(VOCABULARY.encode(line)).split(" ")
    return not line or pieces_of(text, str(STEPS.codes), VOCABULARY) == ours


@settings(deadline=None, max_examples=200)
@given(TEXT.filter(lambda text: all(unicodedata.category(letter) != "Cn" for letter in text)))
def test_another_reader_gives_the_same_pieces(text: str) -> None:
    assert alike(text)


@pytest.mark.parametrize("text", [*SENTENCES.values(), *ODD])
def test_another_reader_gives_the_same_pieces_of_sentences(text: str) -> None:
    assert alike(text)


@pytest.mark.parametrize(
    ("merges", "message"),
    [
        ("", "holds no merges"),
        ("#version: 0.2\nt h\nth\n", "line 3: 'th' is not two symbols"),
        ("t h\nth e x\n", "line 2: 'th e x' is not two symbols"),
        ("#version: 0.2\nt h\ne r</w>\n", "line 3: 'r</w>' is neither a character nor the result of any merge"),
    ],
)
def test_invalid_merges_are_refused(merges: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        check_codes(merges, "merges.txt", "metaspace")
    with pytest.raises(
        UserError,
        match=r"data\.bpe_kind=metaspace keeps text as it is, but data\.tokenize changes it: give .*=subword-nmt",
    ):
        Preprocessing("en", tokenize=True, bpe_kind="metaspace")

"""Scripts without spaces between words: text comes back as it was, and is scored by tokens that exist."""

import pytest
from sacremoses.corpus import NonbreakingPrefixes

from one_layer.data.config import DataConfig
from one_layer.data.corpus import Split
from one_layer.data.text.bpe_learning import learn_bpe_from_counts
from one_layer.data.text.languages import characters, code, has_spaces, sacrebleu_tokenizer, without_inner_spaces
from one_layer.data.text.preprocess import Preprocessing, count_words
from one_layer.tasks.translation import bleu
from one_layer.tasks.translation.settings import SearchSettings
from tests import user_error

TEXTS = {
    "ja": ["これは猫です。", "私は1匹の犬と Apple が好き。", "これは犬です。"],
    "zh": ["我喜欢猫，也喜欢 iPhone 12。", "我喜欢狗。", "我喜欢 “猫” 。"],
    "th": ["ฉันชอบแมวที่บ้าน มาก", "ฉันชอบหมาที่บ้าน", "ฉันชอบแมว"],
    "my": ["ကျွန်တော် မြန်မာ", "ကျွန်တော်", "မြန်မာ"],
    "km": ["ខ្ញុំស្រឡាញ់", "ខ្ញុំស្រឡាញ់ឆ្មា", "ឆ្មា"],
}


def preprocessing(language: str, codes: str | None = None) -> Preprocessing:
    return DataConfig(tokenize=True, source_language="de").preprocessing(codes, language)


@pytest.mark.parametrize("language", TEXTS)
def test_text_comes_back_as_it_was(language: str) -> None:
    texts = TEXTS[language]
    codes = learn_bpe_from_counts(count_words(preprocessing(language).words(texts)), 3)
    step = preprocessing(language, codes)
    expected = [without_inner_spaces(text) for text in texts]
    assert step.undo(step.apply(texts)) == expected
    assert [text.replace(" ", "") for text in expected] == [text.replace(" ", "") for text in texts]
    assert any("@@" in line for line in step.apply(texts))
    assert Preprocessing.from_dict(step.to_dict()) == step and not step.spaced


def test_spaces_between_hangul_are_meant() -> None:
    for meant in ("한 국 어", "\ua000 \ue000 \uf8ff"):
        assert without_inner_spaces(meant) == meant
    assert without_inner_spaces("\uf900 \uf901 カ \u4e00") == "\uf900\uf901カ\u4e00"


def test_segmented_text_is_joined_without_spaces() -> None:
    assert preprocessing("zh").undo(["我 喜欢 iPhone 12 ， 也 喜欢 猫 。"]) == ["我喜欢 iPhone 12 ，也喜欢猫。"]


@pytest.mark.parametrize(
    ("language", "spaces", "tokenizer"),
    [("de", True, "13a"), ("ko", True, "13a"), ("zh", False, "zh"), ("zh-Hant", False, "zh"), ("zho_Hans", False, "zh")]
    + [
        ("zh_CN", False, "zh"),
        ("cn", False, "zh"),
        ("Chinese", False, "zh"),
        ("English", True, "13a"),
        ("tw", True, "13a"),
    ]
    + [(code, False, "char") for code in ("ja", "jp", "Japanese", "jpn", "th", "lo", "km", "my", "bo")],
)
def test_the_language_chooses(language: str, spaces: bool, tokenizer: str) -> None:
    assert has_spaces(language) == spaces and sacrebleu_tokenizer(language) == tokenizer
    assert preprocessing(language).spaced == spaces


@pytest.mark.parametrize("language", TEXTS)
def test_scores_count_characters_and_say_so(language: str) -> None:
    """No text is one word: mjpost/sacrebleu 181 and 147, facebookresearch/fairseq 4689."""
    target, texts = preprocessing(language), TEXTS[language]
    given = [texts[0], texts[1], texts[1]]
    split = Split(source_text=texts, reference=target.words(texts), reference_detokenized=texts)
    scores = bleu.all_scores(target, target.words(given), split)
    assert 0 < scores["bleu_tokenized"] < 100 and 0 < scores["bleu_sacre"] < 100
    assert f"tok:{sacrebleu_tokenizer(language)}" in scores["signature"]
    assert scores["details_tokenized"].endswith("where each character is a token")
    assert f"of {sum(len(text.replace(' ', '')) for text in texts)} tokens" in scores["details_tokenized"]
    assert bleu.all_scores(target, target.words(texts), split)["bleu_tokenized"] == pytest.approx(100)
    assert "tok:intl" in bleu.all_scores(target, target.words(given), split, "intl")["signature"]


def test_a_tokenizer_that_is_not_there_is_refused() -> None:
    with user_error(r"evaluation.tokenize is 'mecab'; give one of 13a, zh, char"):
        SearchSettings(tokenize="mecab")
    with user_error(r"evaluation.tokenize=ja-mecab cannot be used .*sacrebleu\[ja\]"):
        bleu.bleu_sacre(["a"], ["a"], tokenize="ja-mecab")


@pytest.mark.parametrize("language", ["eng", "en-US", "en_GB", "EN", "English"])
def test_moses_rules_follow_from_any_spelling_of_the_code(language: str) -> None:
    texts, expected = ["I don't think Mr. Smith's dog"], ["I don &apos;t think Mr. Smith &apos;s dog"]
    step = Preprocessing(language, tokenize=True)
    assert step.apply(texts) == expected == Preprocessing("en", tokenize=True).apply(texts)
    assert step.undo(expected) == texts
    assert step.to_dict()["language"] == language


SPELLINGS = {
    "de": "deu ger DE de-AT",
    "fr": "fra fre fr-FR",
    "cs": "ces cze cz",
    "nl": "nld dut",
    "el": "ell gre",
    "is": "isl ice",
    "ro": "ron rum",
    "sk": "slk slo",
    "zh": "zho chi zh-Hant",
    "pt": "por pt_BR",
}


def test_codes_of_three_letters_and_countries() -> None:
    for two, spellings in SPELLINGS.items():
        assert {code(spelling) for spelling in spellings.split()} == {two}
    assert code("sw") == "sw" and code("tw") == "tw"


def test_languages_have_the_codes_of_sacremoses() -> None:
    known = NonbreakingPrefixes().available_langs  # codes by codes and English names
    assert {name: code(name) for name in known} == known


def test_characters() -> None:
    assert characters(" ab c ") == "a b c"

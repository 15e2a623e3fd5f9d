"""The page's text modules give what Python gives: the same ids and the same text, line by line, on thousands of lines."""

import gzip
import random
from dataclasses import asdict, replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from one_layer.data.text import byte_level, units
from one_layer.data.text.bpe_learning import learn_bpe_from_counts
from one_layer.data.text.languages import without_inner_spaces
from one_layer.data.text.marks import composed
from one_layer.data.text.metaspace import learn
from one_layer.data.text.moses_tables import moses_tables
from one_layer.data.text.preprocess import Preprocessing, count_words
from one_layer.data.text.vocabulary import BYTES, SPECIALS, Vocabulary
from one_layer.data.tokens import cut, cut_texts
from tests import mostly_slow
from tests.data.text.test_metaspace import ODD, SENTENCES
from tests.page.node import evaluate

LINES = 2000
# What Moses' rules look for, and what lies beside it.
SIGNS = [
    *"'\"`.,;:!?()[]{}<>&|@#%-–—„“”‘’‚«»…/\\´$€§▁²٣ß😀",
    *("''", "...", "....", "``", "''", " ", "  ", "\t", "\u00a0"),
]
SIGNS += ["\u3000", "\ufeff"]
WORDS = "z.B. Dr. Nr. No. 5 5,300 3.5 1\u00a0000 nº\u00a0 don't it's 's U.S. e.g. a-b @-@ @@ x@@ <unk> </s> &apos; &amp; DOTMULTI"
SIGNS += WORDS.split(" ")
SIGNS += ["İ", "ΟΔΟΣ", "한국", "中文", "ก็", "\x85", "\x1c", "\u200b"]

ENCODE = """
    const { textOf } = await import(`${page}/text/index.js`);
    return given.map(({ assets, tables, lines, side, ids }) => {
        const text = textOf(assets, tables);
        const unread = lines.map((line) => text.unread(line) !== "");
        return { unread, ids: lines.map((line) => text.encode(line, side)), text: ids.map((each) => text.decode(each)), notes: text.notes };
    });
"""


def made_up(count: int, seed: int) -> list[str]:
    """Lines of many scripts, cut and mixed with the signs that the rules look for."""
    draw, known = random.Random(seed), [*SENTENCES.values(), *ODD]
    words = [word for line in known for word in line.split()]
    parts = [*words, *SIGNS * 8]
    lines = ["", " ", "\t", *known]
    while len(lines) < count:
        chosen = draw.choices(parts, k=draw.randint(1, 14))
        lines.append("".join(part + draw.choice(["", " ", " ", " "]) for part in chosen))
    return lines[:count]


def real(shared, language: str) -> list[str]:
    """The first lines of raw text, of captions and of speeches."""
    lines = []
    for name in (f"multi30k/test2016.{language}.gz", f"europarl_deen/europarl-v7.first20k.{language}.gz"):
        with gzip.open(shared / "data" / name, "rt", encoding="utf-8", newline="\n") as file:
            lines += [line.rstrip("\n") for line, _ in zip(file, range(LINES // 2), strict=False)]
    return lines


def side(steps: Preprocessing, vocabulary: Vocabulary) -> dict[str, Any]:
    return {**steps.to_dict(), "vocabulary": vocabulary.text}


def typed(steps: Preprocessing, encode: Any, lines: list[str]) -> list[str]:
    return steps.apply(composed(line, lambda text: encode(*steps.apply([text]))) for line in lines)


def translation(
    steps: Preprocessing, vocabulary: Vocabulary, lines: list[str]
) -> tuple[dict[str, Any], list[str], list[list[int]]]:
    """What the page is given to read and write `lines` of both sides, and Python's texts and ids."""
    prepared = typed(steps, vocabulary.encode, lines)
    blank_stays = [text if line.strip() else "" for line, text in zip(lines, prepared, strict=True)]
    ids = [cut(vocabulary.encode(line)).tolist() for line in blank_stays]
    texts = steps.undo([vocabulary.decode(each) for each in ids])
    assets = {"task": "translation", "data": {}, "source": side(steps, vocabulary), "target": side(steps, vocabulary)}
    return {"assets": assets, "tables": moses_tables([steps]), "lines": lines, "side": "source", "ids": ids}, texts, ids


def assert_equal(cases: list[tuple[dict[str, Any], list[str], list[list[int]]]]) -> None:
    for (given, texts, ids), found in zip(cases, evaluate(ENCODE, [case[0] for case in cases]), strict=True):
        wrong = [case for case in zip(given["lines"], ids, found["ids"], strict=True) if case[1] != case[2]]
        assert not wrong, (len(wrong), wrong[0])
        one_line = [" ".join(text.replace("\r\n", "\n").replace("\r", "\n").split("\n")) for text in texts]
        wrong = [case for case in zip(given["lines"], one_line, found["text"], strict=True) if case[1] != case[2]]
        assert not wrong, (len(wrong), wrong[0])


def vocabulary_of(steps: Preprocessing, lines: list[str], always: tuple[str, ...] = ()) -> Vocabulary:
    """The vocabulary of every second line, so that the others have unknown tokens."""
    return Vocabulary.build(steps.apply(lines[::2]), always=always)


def moses_cases(lines: list[str], language: str) -> list[Any]:
    cases, codes = [], learn_bpe_from_counts(count_words(Preprocessing(language, tokenize=True).words(lines[::6])), 200)
    for kind in ({}, {"split_hyphens": True, "normalize": False, "lowercase": True}):
        steps = Preprocessing(language, tokenize=True, codes=codes, **kind)
        cases.append(translation(steps, vocabulary_of(steps, lines), lines))
    return cases


@pytest.mark.parametrize("language", mostly_slow(["de", "en"], ["de"]))
def test_moses_and_subword_nmt_on_made_up_lines(language):
    assert_equal(moses_cases(made_up(LINES, seed=1), {"de": "de-AT", "en": "english"}[language]))


@pytest.mark.parametrize("language", mostly_slow(["de", "en"], ["en"]))
def test_moses_and_subword_nmt_on_real_lines(shared, language):
    assert_equal(moses_cases(real(shared, language), language))


def test_lossless_pieces():
    lines = made_up(LINES, seed=2)
    cases = []
    for lowercase in (False, True):
        words = Preprocessing("uk", bpe_kind="metaspace", lowercase=lowercase)
        steps = replace(words, codes=learn(count_words(words.words(lines[::6])), 300))
        cases.append(translation(steps, vocabulary_of(steps, lines, BYTES), lines))
    assert_equal(cases)


def test_codes_in_an_odd_order_codes_twice_and_codes_of_the_first_version_count_as_in_the_libraries():
    lines, cases = ["abab abc bcab abababc", "aabb"], []
    for kind, codes in product(("metaspace", "byte-level", "subword-nmt"), ("b c\na b\nb c\n", "ab a\na b\n")):
        steps = Preprocessing("en", bpe_kind=kind, codes=f"#version: 0.2\n{codes}")
        cases.append(translation(steps, vocabulary_of(steps, [*lines, ""], BYTES), lines))
    first, lines = Preprocessing("en", codes="a b\nab </w>\nb </w>\n"), ["ab abb b", "aab ba", "a"]
    assert_equal([*cases, translation(first, Vocabulary.build(first.apply(lines)), lines)])


def test_text_without_spaces_and_text_that_was_prepared_elsewhere():
    lines = [
        line for line in made_up(LINES // 4, seed=3) if not {*"\n\r"} & {*line}
    ]  # tokens that a vocabulary's file cannot hold
    kinds = [Preprocessing("zh", tokenize=True, spaced=False), Preprocessing("en", inverse="none")]
    kinds += [
        Preprocessing("en", inverse=each)
        for each in ("moses", "sentencepiece", "byte-level", "subword-nmt", "subword-nmt,moses")
    ]
    lines += ["中 文 カ ナ", "한 국 어", "\uf900 \uf901 中"]  # hangul has spaces, which are meant
    assert_equal([translation(steps, vocabulary_of(steps, lines), lines) for steps in kinds])
    assert without_inner_spaces("中 文") == "中文"


def test_classifiers_of_one_text_and_of_two():
    lines = [
        f"{first}\t{second}"
        for first, second in zip(made_up(LINES // 4, seed=4), made_up(LINES // 4, seed=5), strict=True)
    ]
    lines = [line for line in lines if line.count("\t") == 1] + ["one text", "one\ttwo"]
    labels = Vocabulary((*SPECIALS, "no", "yes"))
    cases = []
    words = Preprocessing("en", tokenize=True, pairs=True, lowercase=True)
    merges = byte_level.learn([line + "\n" for line in lines[::3]], 300)
    for steps in (words, Preprocessing("en", codes=merges, bpe_kind="byte-level", pairs=True)):
        vocabulary = Vocabulary.build(part for line in steps.apply(lines[::2]) for part in line.split("\t"))
        prepared = typed(steps, vocabulary.encode_texts, lines)
        ids = [cut_texts(vocabulary.encode_texts(line), 40).tolist() for line in prepared]
        sides = {"source": side(steps, vocabulary), "target": side(Preprocessing("label"), labels)}
        assets = {"task": "classification", "data": {"max_length": 40}, **sides}
        given = {"assets": assets, "tables": moses_tables([steps]), "lines": lines, "side": "source", "ids": [[4], [5]]}
        unread = [len(vocabulary.encode_texts(line)) > 40 for line in prepared]
        cases.append((given, ["no", "yes"], ids, unread))
    for (given, *wanted), found in zip(cases, evaluate(ENCODE, [case[0] for case in cases]), strict=True):
        assert [found[name] for name in ("text", "ids", "unread")] == wanted, given["assets"]["source"]["bpe_kind"]


@pytest.mark.parametrize("name", ["bytes", "bpe"])
def test_units_of_language_models(name):
    lines = [*made_up(LINES // 2, seed=6), "two\nlines\n", "\n\n"]
    merges = byte_level.learn([line + "\n" for line in lines[::3]], 300) if name == "bpe" else None
    vocabulary = units.vocabulary_of(merges)
    unit, block = units.Pieces(vocabulary, merges) if merges else units.Bytes(vocabulary), 64
    steps = side(Preprocessing("en", codes=merges, bpe_kind="byte-level"), vocabulary)
    assets = {"task": "causal_lm", "data": {"unit": name, "block": block}, "source": steps, "target": steps}
    ids = [np.concatenate([[2], unit.ids(line)])[-block:].tolist() for line in lines]
    cut_anywhere = [each[: len(each) // 2] for each in ids]  # also inside a character
    found = evaluate(
        ENCODE, [{"assets": assets, "tables": None, "lines": lines, "side": "source", "ids": cut_anywhere}]
    )[0]
    assert found["ids"] == ids
    assert found["text"] == [unit.text(each) for each in cut_anywhere]


WHITE = " \t\u3000\x85\xa0\u2009"  # all that tokenizers takes with a token that has lstrip


def test_masks_take_the_white_space_before_them_as_in_roberta():
    merges = byte_level.learn(["the cat sat on the mat\n"] * 3, 20)
    vocabulary = Vocabulary((*SPECIALS, *byte_level.pieces(merges), "<mask>"))
    steps = side(Preprocessing("en", codes=merges, bpe_kind="byte-level"), vocabulary)
    assets = {"task": "masked_lm", "data": {"unit": "bpe", "block": 12}, "source": steps, "target": steps}
    unit, mask = units.Pieces(vocabulary, merges), len(vocabulary) - 1
    given = {"assets": assets, "tables": None, "lines": [f"the{WHITE}<mask> sat on"], "side": "source", "ids": []}
    assert evaluate(ENCODE, [given])[0]["ids"] == [
        [0, *unit.ids("the").tolist(), mask, *unit.ids(" sat on").tolist(), 2]
    ]


def test_other_languages_are_said_to_need_tokens():
    steps = Preprocessing("fr", tokenize=True)
    vocabulary = Vocabulary.build(["l' eau &apos;"])
    given, _, _ = translation(steps, vocabulary, ["l' eau"])
    assert given["tables"] is None
    found = evaluate(ENCODE, [given])[0]
    assert found["ids"] == [vocabulary.encode("l' eau").tolist()]
    assert [note for note in found["notes"] if "language fr" in note and "tokenizer" in note]


REFUSE = """
    const { textOf } = await import(`${page}/text/index.js`);
    return given.map(({ assets }) => { try { textOf(assets); return ""; } catch (error) { return error.message; } });
"""


def test_what_the_reader_refuses_the_page_refuses_in_a_sentence():
    whole = {**asdict(Preprocessing("en")), "vocabulary": "a 1\n"}
    byte_pieces = "#version: 0.2\nĠ a\n"
    wrong = [
        ({"vocabulary": "a\n"}, "line 1"),
        ({"vocabulary": "a 1\na 2\n"}, "more than once"),
        ({"vocabulary": "<s> 1\n"}, "more than once"),
        ({"codes": "#version: 0.2\n"}, "no merges"),
        ({"codes": "#version: 0.3\na b\n"}, "unknown"),
        ({"codes": "#version: 0.2\na b c\n"}, "line 2"),
        ({"codes": byte_pieces}, "byte-level"),
        ({"codes": "#version: 0.2\nab c\n", "bpe_kind": "byte-level"}, "neither a byte"),
        ({"codes": "#version: 0.2\na b\n", "bpe_kind": "metaspace"}, "lacks a token"),
        ({"bpe_kind": "other"}, "unknown"),
        ({"inverse": "other"}, "unknown"),
    ]
    cases = [
        {"assets": {"task": "translation", "data": {}, "source": whole | change, "target": whole}}
        for change, _ in wrong
    ]
    for (change, words), message in zip(wrong, evaluate(REFUSE, cases), strict=True):
        assert words in message and "\n" not in message, (change, message)

"""Cases from public bug reports of programs of this kind, each tried here; docs/reliability.md lists them with what happens."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from one_layer.data.config import DataConfig
from one_layer.data.loading import load
from one_layer.data.sources.table import Table
from one_layer.data.text import byte_level
from one_layer.data.text.languages import sacrebleu_tokenizer
from one_layer.data.text.lines import read_lines, stream_lines
from one_layer.data.text.preprocess import Preprocessing, check_codes
from one_layer.data.text.units import unit, vocabulary_of
from one_layer.data.text.vocabulary import Vocabulary, unknown_marked
from one_layer.system.errors import UserError
from one_layer.tasks.translation import bleu
from tests.tasks.translation.test_model import Parrot, model_with


def sacre(hypotheses: list[str], references: list[str]) -> float:
    return bleu.bleu_sacre(hypotheses, references)[0]


ENDS = "a\u2028b\u2029c\u0085d\x0be\x0cf\rg\x1ch"  # what Python's `splitlines` and `codecs` take for line ends


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    """rsennrich/subword-nmt 29, huggingface/datasets 3729 and 622, facebookresearch/fairseq 591."""
    lines = [ENDS, "", ENDS[::-1].strip(), "x"]
    (tmp_path / "a").write_bytes("".join(f"{line}\n" for line in lines).encode())
    steps = Preprocessing("en", codes="#version: 0.2\na b\n")
    for found in (read_lines(tmp_path / "a"), list(stream_lines(tmp_path / "a"))):
        assert found == lines and len(steps.apply(found)) == len(lines)


def test_huggingface_datasets_855_a_quotation_mark_in_tab_separated_text_joins_no_lines(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text('s\tt\n"open\t1\nplain\t2\nclose"\t3\n')
    assert [cells for _, cells in Table(tmp_path / "a.tsv", ("s", "t"))] == [
        ['"open', "1"],
        ["plain", "2"],
        ['close"', "3"],
    ]


@pytest.mark.parametrize(
    ("report", "second", "message"),
    [
        ("huggingface/datasets 7059", {"s": None, "t": "b"}, r"line 2: 's' is None; it must be a text"),
        ("huggingface/datasets 7169", {"t": "b"}, r"line 2: there is no 's' of data.columns=s,t among 't'"),
    ],
)
def test_a_value_that_is_missing_shifts_no_other(tmp_path: Path, report: str, second: object, message: str) -> None:
    (tmp_path / "a.jsonl").write_text(f'{{"s": "a", "t": "b"}}\n{json.dumps(second)}\n')
    with pytest.raises(UserError, match=message):
        list(Table(tmp_path / "a.jsonl", ("s", "t")))


def test_huggingface_datasets_5827_numbers_and_texts_in_one_column_are_texts(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"s": "a", "t": 1}\n{"s": "b", "t": "NaN"}\n{"s": "c", "t": 3}\n')
    assert [cells[1] for _, cells in Table(tmp_path / "a.jsonl", ("s", "t"))] == ["1", "NaN", "3"]


def test_awslabs_sockeye_649_and_opennmt_py_39_blank_lines_on_one_side_end_nothing(tmp_path: Path) -> None:
    """The pairs around them stay together, and the report counts what is left out."""
    source = ["a", "", "b b", " ", "c", "d"]
    target = ["A", "X", "B B", "Y", "", "D"]
    for name in ("train", "valid", "test"):
        for language, lines in (("de", source), ("en", target)):
            (tmp_path / f"{name}.{language}").write_text("".join(f"{line}\n" for line in lines))
    corpus = load(DataConfig(source="text", directory=str(tmp_path), prepared=True))
    decode = corpus.source_vocabulary.decode, corpus.target_vocabulary.decode
    pairs = [(decode[0](a), decode[1](b)) for a, b in zip(corpus.train.source, corpus.train.target, strict=True)]
    assert pairs == [("a", "A"), ("b b", "B B"), ("d", "D")] and "3 pairs with an empty side" in corpus.report[0]
    assert len(corpus.valid) == 6


def test_every_line_has_its_own_translation(tmp_path: Path) -> None:
    """joeynmt/joeynmt 183, awslabs/sockeye 477, OpenNMT/OpenNMT-py 1317, marian-nmt/marian-dev 667: blank lines among others, many lines,
    and a line that is only an escaped sign, again and again.
    """
    model = model_with(tmp_path, Parrot())
    lines = ["mai", "", "  ", "&apos;" * 300, "er mai", "\u00a0"] * 500
    found = model.translate(lines)
    assert len(found) == len(lines)
    assert (
        {*found[::6]} == {"mai"} and {*found[4::6]} == {"er mai"} and {*found[1::6], *found[2::6], *found[5::6]} == {""}
    )
    assert all(found[3::6])


def test_marian_115_a_hypothesis_that_ends_inside_a_word_is_not_lost() -> None:
    steps = Preprocessing("ru", tokenize=True, codes="#version: 0.2\nа н\n")
    assert steps.undo(["Сан-Хуан-@@", "Х@@"]) == ["Сан-Хуан-", "Х"]


def test_subword_nmt_114_codes_that_are_a_list_of_tokens_are_refused() -> None:
    with pytest.raises(UserError, match=r"line 2"):
        check_codes("#version: 0.2\n__en__\n")


@pytest.mark.parametrize(
    ("report", "content", "message"),
    [
        ("OpenNMT/OpenNMT-py 723", b"a 3\n\nb 2\n", r"line 2: '' is not of the form"),
        ("facebookresearch/fairseq 303", b"<s> 0\n<pad> 0\na 3\n", r"line 1: '<s>' is a special token"),
        ("facebookresearch/fairseq 437", b"a 3\n\x8e 2\n", r"line 2: the byte 0x8e is not UTF-8; convert the file"),
    ],
)
def test_a_dictionary_that_cannot_be_meant_is_refused_with_its_line(
    tmp_path: Path, report: str, content: bytes, message: str
) -> None:
    (tmp_path / "dict.txt").write_bytes(content)
    with pytest.raises(UserError, match=message):
        Vocabulary.load(tmp_path / "dict.txt", fairseq=True)


def test_fairseq_3705_a_token_that_is_overwritten_keeps_its_ids_in_the_file_that_is_written(tmp_path: Path) -> None:
    (tmp_path / "dict.txt").write_text("a 3\n<pad> 0 #fairseq:overwrite\na 0 #fairseq:overwrite\nb 1\n")
    vocabulary = Vocabulary.load(tmp_path / "dict.txt", fairseq=True)
    vocabulary.save(tmp_path / "again.txt")
    assert (
        vocabulary.encode("a b <pad>").tolist() == Vocabulary.load(tmp_path / "again.txt").encode("a b <pad>").tolist()
    )
    assert vocabulary.encode("a b").tolist() == [6, 7, 2]


def test_sacrebleu_161_and_239_empty_references_and_hypotheses_are_scored_as_they_are() -> None:
    full = "the quick brown fox jumps over it"
    score, _ = bleu.bleu_sacre([full, ""], [full, ""])
    assert score == pytest.approx(100)
    less, _ = bleu.bleu_sacre(["", full], [full, full])
    assert less == pytest.approx(100 * np.exp(1 - 2))  # all n-grams are right, and half of the text is missing
    assert bleu.bleu_sacre(["", ""], [full, full])[0] == 0


def test_sacrebleu_275_every_line_is_compared_with_its_own_reference() -> None:
    references = ["The dog bit the man .", "It was not unexpected .", "The man bit him first ."]
    hypotheses = [references[0], "It wasn't surprising .", "The man had just bitten him ."]
    for score in (bleu.bleu_sacre(hypotheses, references)[0], bleu.bleu_tokenized(hypotheses, references)):
        assert 0 < score < 60
    assert bleu.bleu_sacre([references[0], *references[:0:-1]], references)[0] < 60


def test_text_without_spaces_is_not_scored_as_one_word() -> None:
    """mjpost/sacrebleu 181 and 147, facebookresearch/fairseq 4689."""
    references, hypothesis = ["我有两只猫和一只狗。"], ["我有三只猫和一只狗。"]
    for language in ("zh", "zh-CN", "zho_Hans", "ja", "th"):
        score, signature = bleu.bleu_sacre(hypothesis, references, tokenize=sacrebleu_tokenizer(language))
        assert score > 30 and "tok:13a" not in signature


SPLIT = pytest.mark.xfail(
    strict=True, reason="sacreBLEU's tokenizer splits <<unk>> and <unk> into signs that are the same"
)


@pytest.mark.parametrize("score", [bleu.bleu_tokenized, pytest.param(sacre, marks=SPLIT)])
def test_fairseq_1827_and_2274_an_unknown_word_is_as_wrong_as_any_other(score: Callable[..., float]) -> None:
    """With `<unk>` in the hypothesis and the reference, no score is above that of two words that differ."""
    reference, unknown, other = "this is a new <unk> .", "this is a new <unk> .", "this is a new thing ."
    marked = unknown_marked(reference)
    assert score([unknown], [marked]) <= score([other], [marked])


@pytest.mark.parametrize(
    ("report", "language", "line"),
    [
        (
            "hplt-project/sacremoses 152",
            "en",
            "“See what you have done!” she screamed. “In a minute I shall melt away.”",
        ),
        ("hplt-project/sacremoses 43", "fr", "L'amitié nous a fait forts d'esprit"),
        ("hplt-project/sacremoses 8", "en", "a Latvian television series (with a parliamentary setting)."),
        ("hplt-project/sacremoses 27", "en", "a global lingua franca.[4][5]"),
        ("huggingface/tokenizers 1164", "en", "is it ?"),
        ("huggingface/tokenizers 817", "en", "a    b  c   d"),
    ],
)
def test_text_in_pieces_comes_back(report: str, language: str, line: str) -> None:
    steps = Preprocessing(language, codes="#version: 0.2\na n\n", bpe_kind="metaspace")
    assert steps.undo(steps.apply([line])) == [line]


@pytest.mark.parametrize(
    ("report", "text"),
    [
        ("huggingface/tokenizers 1392", "ilÖveyou"),
        ("huggingface/tokenizers 1996", "Začnimo kuća međa"),
    ],
)
def test_bytes_come_back_whatever_letters_stand_for_them(report: str, text: str) -> None:
    merges = byte_level.learn(["il love you\n"] * 9, 5)
    pieces = unit("bpe", vocabulary_of(merges), merges)
    assert pieces.text(pieces.ids(text)) == text

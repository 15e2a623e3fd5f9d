"""Cases from public bug reports of programs of this kind, as far as no other test has them; docs/reliability.md says what happens."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from one_layer.data.sources.table import Table
from one_layer.data.text.preprocess import Preprocessing
from one_layer.data.text.vocabulary import unknown_marked
from one_layer.tasks.translation import bleu
from tests.tasks.translation.test_model import Parrot, model_with


def sacre(hypotheses: list[str], references: list[str]) -> float:
    return bleu.bleu_sacre(hypotheses, references)[0]


def test_huggingface_datasets_855_a_quotation_mark_in_tab_separated_text_joins_no_lines(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text('s\tt\n"open\t1\nplain\t2\nclose"\t3\n')
    assert [cells for _, cells in Table(tmp_path / "a.tsv", ("s", "t"))] == [
        ['"open', "1"],
        ["plain", "2"],
        ['close"', "3"],
    ]


def test_huggingface_datasets_5827_numbers_and_texts_in_one_column_are_texts(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"s": "a", "t": 1}\n{"s": "b", "t": "NaN"}\n{"s": "c", "t": 3}\n')
    assert [cells[1] for _, cells in Table(tmp_path / "a.jsonl", ("s", "t"))] == ["1", "NaN", "3"]


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


SPLIT = pytest.mark.xfail(
    strict=True, reason="sacreBLEU's tokenizer splits <<unk>> and <unk> into signs that are the same"
)


@pytest.mark.parametrize("score", [bleu.bleu_tokenized, pytest.param(sacre, marks=SPLIT)])
def test_fairseq_1827_and_2274_an_unknown_word_is_as_wrong_as_any_other(score: Callable[..., float]) -> None:
    """With `<unk>` in the hypothesis and the reference, no score is above that of two words that differ."""
    reference, unknown, other = "this is a new <unk> .", "this is a new <unk> .", "this is a new thing ."
    marked = unknown_marked(reference)
    assert score([unknown], [marked]) <= score([other], [marked])

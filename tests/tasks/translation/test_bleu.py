"""BLEU: against a direct count of n-grams, multi-bleu's conventions, and the three kinds kept apart, each under its name."""

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from one_layer.data.corpus import Split
from one_layer.data.text.lines import read_lines
from one_layer.data.text.preprocess import Preprocessing
from one_layer.data.text.vocabulary import unknown_marked
from one_layer.tasks.translation import bleu
from one_layer.tasks.translation.model import TranslationModel
from one_layer.tasks.translation.settings import TOKENIZERS, SearchSettings
from tests import user_error

LINE = st.lists(st.sampled_from("abc"), max_size=12).map(" ".join)


def counted_bleu(hypotheses: list[str], references: list[str]) -> float:
    """Papineni et al. 2002, section 2.3, as multi-bleu.perl counts: no smoothing."""
    right, total, length, reference_length = [0] * 4, [0] * 4, 0, 0
    for hypothesis, reference in zip(map(str.split, hypotheses), map(str.split, references), strict=True):
        length, reference_length = length + len(hypothesis), reference_length + len(reference)
        for n in range(1, 5):
            ours, theirs = (
                Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1)) for words in (hypothesis, reference)
            )
            right[n - 1] += (ours & theirs).total()
            total[n - 1] += ours.total()
    if 0 in right:
        return 0.0
    precision = math.exp(sum(math.log(a / b) for a, b in zip(right, total, strict=True)) / 4)
    return 100 * precision * min(1.0, math.exp(1 - reference_length / length))


@settings(deadline=None)
@given(st.lists(st.tuples(LINE, LINE), min_size=1, max_size=12))
def test_tokenized_is_what_counting_gives(pairs: list[tuple[str, str]]) -> None:
    hypotheses, references = map(list, zip(*pairs, strict=True))
    assert bleu.bleu_tokenized(hypotheses, references) == pytest.approx(counted_bleu(hypotheses, references), abs=1e-9)


@settings(deadline=None)
@given(st.lists(st.text("ab .-", max_size=9), min_size=1, max_size=4), st.sampled_from(["none", "13a", "char", "zh"]))
def test_bleu_can_measure_a_text_exactly_where_a_perfect_translation_has_a_score(
    lines: list[str], tokenize: str
) -> None:
    score = bleu.sacrebleu_metric(tokenize).corpus_score(lines, [lines]).score
    assert bleu.can_measure(lines, tokenize) == (score > 0)


@pytest.mark.parametrize("spaced", [True, False])
def test_no_part_of_an_unknown_token_is_right(spaced: bool) -> None:
    target, lines = Preprocessing("en", spaced=spaced), ["a <unk> b", "<unk><unk>", "c<unk>"]
    ours, theirs = (bleu.bleu_tokens(target, each) for each in (lines, list(map(unknown_marked, lines))))
    assert {token for line in ours for token in line.split()} & set(theirs[0].split()) == {"a", "b"}


def test_one_wrong_word_by_hand() -> None:
    hypothesis, reference = ["the cat sat on the mat ."], ["the cat lay on the mat ."]
    # n-grams: 6 of 7, 4 of 6, 2 of 5, 1 of 4
    expected = 100 * (6 / 7 * 4 / 6 * 2 / 5 * 1 / 4) ** 0.25
    assert bleu.bleu_tokenized(hypothesis, reference) == pytest.approx(expected)
    assert bleu.describe_tokenized(bleu.tokenized_score(hypothesis, reference)) == (
        f"tokenised BLEU {expected:.2f} (85.7/66.7/40.0/25.0, BP 1.000, ratio 1.000, 7 of 7 tokens)"
    )


def test_sacre_tokenises_by_itself_and_signs() -> None:
    hypothesis, reference = ["It's here, now."], ["It's here, today."]
    score, signature = bleu.bleu_sacre(hypothesis, reference)
    for part in ("nrefs:1", "case:mixed", "tok:13a", "smooth:exp", "version:"):
        assert part in signature
    # 13a sees "It's here , now ." on either side: 4 of 5 tokens are right, and of the two 4-grams, exp counts the half of one.
    assert score == pytest.approx(100 * (4 / 5 * 2 / 4 * 1 / 3 * 0.5 / 2) ** 0.25)
    assert score > bleu.bleu_tokenized(hypothesis, reference) == 0


def test_split_compounds() -> None:
    assert bleu.split_compounds("rich-text format - yes") == "rich ##AT##-##AT## text format - yes"
    assert bleu.split_compounds("-a b- Ost-West-Dialog") == "-a b- Ost ##AT##-##AT## West ##AT##-##AT## Dialog"
    assert bleu.split_compounds("Meteor-1-Rakete") == "Meteor ##AT##-##AT## 1-Rakete"  # matches do not overlap
    assert bleu.split_compounds("Ost @-@ West") == "Ost @ ##AT##-##AT## @ West"  # as the script does


def test_compound_split_scores_the_parts() -> None:
    hypothesis, reference = ["ein rich-text format für alle"], ["ein plain-text format für alle"]
    split = bleu.bleu_compound_split(hypothesis, reference)
    assert split == pytest.approx(100 * (6 / 7 * 4 / 6 * 3 / 5 * 2 / 4) ** 0.25)
    assert bleu.bleu_tokenized(hypothesis, reference) == 0


@pytest.mark.parametrize("score", [bleu.bleu_tokenized, bleu.bleu_compound_split, bleu.bleu_sacre])
def test_unequal_or_no_lines(score: Callable[[list[str], list[str]], object]) -> None:
    with user_error("1 hypotheses and 2 references"):
        score(["a"], ["a", "b"])
    with user_error("0 hypotheses and 0 references"):
        score([], [])


def test_compounds_of_the_published_newstest(shared: Path) -> None:
    published = read_lines(shared / "data/wmt_newstest/newstest2013.tok_at.de")
    joined = [line.replace(" ##AT##-##AT## ", "-") for line in published]
    pairs = zip(map(bleu.split_compounds, joined), published, strict=True)
    assert (
        sum(ours != theirs for ours, theirs in pairs) == 2
    )  # "Meteor-1-Rakete" and its like, which that set splits twice


TOKENS = ["das Ost-West-Haus ist n@@ eu .", "er sagt &quot; ja &quot; , und dann geht er ."]
RAW = ["Das Ost-Nord-Haus ist neu.", 'Er sagt "ja", und dann geht er weg.']


def split_of(target: Preprocessing) -> Split:
    return Split(source_text=RAW, reference=target.words(RAW), reference_detokenized=RAW)


@pytest.mark.parametrize("lowercase", [True, False])
def test_sacrebleu_says_whether_case_counts(lowercase: bool) -> None:
    target = Preprocessing("en", tokenize=True, lowercase=lowercase)
    scores = bleu.all_scores(target, TOKENS, split_of(target))
    assert ("case:lc" in scores["signature"], "case:mixed" in scores["signature"]) == (lowercase, not lowercase)
    references = [line.lower() for line in RAW] if lowercase else RAW
    assert scores["bleu_sacre"] == bleu.bleu_sacre(target.undo(TOKENS), references)[0]


def test_a_text_that_bleu_cannot_measure_has_no_bleu_and_says_so() -> None:
    """No reference has four tokens, so that the references themselves would have BLEU 0. Each form counts its own tokens."""
    target, short = Preprocessing("de"), ["ja !", "gut, gut"]
    scores = bleu.all_scores(target, short, Split(source_text=short, reference=short, reference_detokenized=short))
    assert not [name for name in scores if name.startswith("bleu")] and "cannot measure" in scores["details_tokenized"]
    scores = bleu.all_scores(
        target, short, Split(source_text=short, reference=short, reference_detokenized=["a, b!", "c"])
    )
    assert [name for name in scores if name.startswith("bleu")] == ["bleu_sacre"]
    hyphens = ["Ost-West ja", "gut"]
    scores = bleu.all_scores(target, hyphens, Split(reference=hyphens, reference_detokenized=hyphens))
    assert {name: round(value) for name, value in scores.items() if name.startswith("bleu")} == {
        "bleu_compound_split": 100
    }


@pytest.mark.parametrize("tokenize", TOKENIZERS)
def test_a_ticket_never_starts_a_download(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tokenize: str) -> None:
    """Whatever tokenizer it asks for: one that sacreBLEU would download is refused before anything is computed."""
    monkeypatch.setattr(bleu, "SACREBLEU_DIR", str(tmp_path))
    model = TranslationModel.__new__(TranslationModel)
    monkeypatch.setattr(TranslationModel, "settings", SearchSettings(tokenize=tokenize), raising=False)
    monkeypatch.setattr(TranslationModel, "assets", None, raising=False)
    loads = tokenize in ("flores101", "flores200")
    for file_bytes in (100, None):
        monkeypatch.setattr(TranslationModel, "file_bytes", file_bytes)
        refused = user_error(f"evaluation.tokenize={tokenize} needs a model that sacreBLEU downloads")
        with refused if loads and file_bytes else pytest.raises(AttributeError):  # the fake model cannot search
            model.score(Split(), "test")
    if loads:
        (tmp_path / "models").mkdir()
        for name in ("sacrebleu_tokenizer_spm.model", "flores200sacrebleuspm"):
            (tmp_path / "models" / name).touch()
        bleu.refuse_download(tokenize)


@pytest.mark.parametrize("language", ["de", "deu", "de-AT", "en"])
def test_compounds_are_split_in_german_alone(language: str) -> None:
    target = Preprocessing(language, tokenize=True)
    scores, lines = bleu.all_scores(target, TOKENS, split_of(target)), target.join(TOKENS)
    assert ("bleu_compound_split" in scores) == (language != "en")
    if language != "en":
        assert scores["bleu_compound_split"] == bleu.bleu_compound_split(lines, target.words(RAW))
        assert (
            scores["bleu_compound_split"] != scores["bleu_tokenized"] == bleu.bleu_tokenized(lines, target.words(RAW))
        )

"""Which BLEU is reported of which text, and that its name or signature says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from one_layer.data.corpus import Split
from one_layer.data.text.preprocess import Preprocessing
from one_layer.system.errors import UserError
from one_layer.tasks.translation import bleu
from one_layer.tasks.translation.model import TranslationModel
from one_layer.tasks.translation.settings import TOKENIZERS, SearchSettings

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
        refused = pytest.raises(
            UserError, match=f"evaluation.tokenize={tokenize}, for which sacreBLEU downloads a model"
        )
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

"""BLEU (Papineni et al. 2002, section 2.3), in the three forms that papers report. Their values are not comparable.

| name | text | as in |
|---|---|---|
| tokenised | the model's tokens, BPE joined | multi-bleu.perl, fairseq's generate |
| compound-split | the same, split at hyphens inside words | tensor2tensor's get_ende_bleu, for WMT14 en-de |
| sacreBLEU | plain detokenised text, the tokens that its signature names | Post 2018 (arXiv 1804.08771), with its signature |

Where the model's pieces hold their spaces (`one_layer.data.text.metaspace`), its text has no tokens, and tokenised BLEU takes those of
mteval-v13a. In a language without spaces between words, each character is a token of tokenised BLEU, and sacreBLEU has another tokenizer
than mteval-v13a's (see `one_layer.data.text.languages`).

Each is a score of the whole corpus, from 0 to 100, with one reference for each hypothesis. All are case-sensitive; only sacreBLEU can
ignore case, and its signature then says so.

A text whose references have nowhere four tokens in a row cannot be measured: its BLEU is 0 even for a perfect model (`can_measure`).
"""

import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sacrebleu.metrics.bleu import BLEU, BLEUScore
from sacrebleu.significance import PairedTest, Result
from sacrebleu.tokenizers.tokenizer_spm import SPM_MODELS
from sacrebleu.utils import SACREBLEU_DIR

from one_layer.data.corpus import Split
from one_layer.data.text.languages import characters, code, sacrebleu_tokenizer
from one_layer.data.text.preprocess import METASPACE, Preprocessing
from one_layer.system.errors import UserError
from one_layer.tasks.protocol import FEWEST, Paired

SAMPLES = 1000  # of the paired bootstrap
UNMEASURED = (
    "BLEU cannot measure this text, because no reference has four tokens: it would be 0 for a perfect translation"
)


def bleu_tokenized(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Tokenised BLEU of lines of tokens (BPE joined, Moses' escapes kept).

    It equals that of multi-bleu.perl if all white space is ASCII, as it is after Moses' tokenisation. Other white space, such as the
    no-break space, separates tokens here, but not in that script.

    There is no smoothing: if no 4-gram of the corpus is right, the score is 0, as in multi-bleu.
    Raises: UserError for no lines or lists of unequal length.
    """
    return tokenized_score(hypotheses, references).score


def bleu_compound_split(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Tokenised BLEU after `split_compounds` on both sides; usually a little higher than tokenised BLEU."""
    return bleu_tokenized(
        [split_compounds(line) for line in hypotheses], [split_compounds(line) for line in references]
    )


def bleu_sacre(
    hypotheses: Sequence[str], references: Sequence[str], lowercase: bool = False, tokenize: str = "13a"
) -> tuple[float, str]:
    """sacreBLEU of lines of detokenised text, and the signature that says how it was computed.

    `lowercase`: lower-case both sides first (`case:lc`). Use this for a model of lower-cased text; its references may keep their case.
    `tokenize`: the name of sacreBLEU's tokenizer.
    Raises: UserError for no lines, lists of unequal length, and a tokenizer whose package is missing.
    """
    _check(hypotheses, references)
    metric = sacrebleu_metric(tokenize, lowercase)
    score = metric.corpus_score(hypotheses, [references])
    return score.score, str(metric.get_signature())


def can_measure(references: Sequence[str], tokenize: str = "none") -> bool:
    """Whether BLEU can measure this text: else every hypothesis has BLEU 0, even the reference itself, which has no four tokens anywhere.

    `references` are the lines that are compared, and `tokenize` the tokenizer of that comparison.
    """
    metric = sacrebleu_metric(tokenize)
    return any(len(metric.tokenizer(line.strip()).split()) >= metric.max_ngram_order for line in references)


def describe_tokenized(score: BLEUScore) -> str:
    """One line: tokenised BLEU with its n-gram precisions, brevity penalty and lengths."""
    precisions = "/".join(f"{precision:.1f}" for precision in score.precisions)
    lengths = f"ratio {score.ratio:.3f}, {score.sys_len:,} of {score.ref_len:,} tokens"
    return f"tokenised BLEU {score.score:.2f} ({precisions}, BP {score.bp:.3f}, {lengths})"


def bleu_tokens(target: Preprocessing, lines: Sequence[str]) -> list[str]:
    """The lines as tokens separated by spaces: as they are, cut by sacreBLEU if they are text whose pieces hold their spaces, or their
    characters if the language has no spaces between words.
    """
    if not target.spaced:
        return list(map(characters, lines))
    return list(map(sacrebleu_metric("13a").tokenizer, lines)) if target.bpe_kind == METASPACE else list(lines)


def describe_tokens(target: Preprocessing) -> str:
    """A phrase for people about the tokens of `bleu_tokens`; empty where they are those of the text."""
    if not target.spaced:
        return ", where each character is a token"
    return ", with the tokens of sacreBLEU's 13a" if target.bpe_kind == METASPACE else ""


def split_compounds(line: str) -> str:
    """Makes a hyphen between two characters of a word a separate token: `a ##AT##-##AT## b`.

    This is the pattern of tensor2tensor's get_ende_bleu, also where it meets Moses' token `@-@`. Matches do not overlap: in "x-y-z" only
    the first hyphen is split off.
    """
    return re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", line)


def tokenized_score(hypotheses: Sequence[str], references: Sequence[str]) -> BLEUScore:
    """The same with its parts."""
    _check(hypotheses, references)
    return BLEU(tokenize="none", smooth_method="none", force=True).corpus_score(hypotheses, [references])


def refuse_download(tokenize: str) -> None:
    """Raises: UserError for a tokenizer whose model sacreBLEU would have to download first."""
    if tokenize not in SPM_MODELS:
        return
    model = Path(SACREBLEU_DIR) / "models" / Path(SPM_MODELS[tokenize]["url"]).name
    if not model.exists():
        how = f"""python -c "from sacrebleu.metrics import BLEU; BLEU(tokenize='{tokenize}')\""""
        raise UserError(
            f"evaluation.tokenize={tokenize} needs a model that sacreBLEU downloads, and scoring a ticket never starts a download: get it "
            f"with {how}, or give the ticket's --config and another --config.evaluation.tokenize"
        )


def sacrebleu_metric(tokenize: str, lowercase: bool = False) -> BLEU:
    """sacreBLEU with one of its tokenizers. Raises: UserError if the package of the tokenizer is missing."""
    try:
        return BLEU(lowercase=lowercase, force=True, tokenize=tokenize)
    except (ImportError, RuntimeError, OSError) as error:
        reason = str(error).strip().split("\n")[0][:200]
        raise UserError(
            f"evaluation.tokenize={tokenize} cannot be used ({reason}); install what it needs (pip install 'sacrebleu[ja]' for ja-mecab, "
            "'sacrebleu[ko]' for ko-mecab), or give char"
        ) from None


def _check(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if not hypotheses or len(hypotheses) != len(references):
        raise UserError(
            f"BLEU needs one reference for each hypothesis and at least one: "
            f"there are {len(hypotheses):,} hypotheses and {len(references):,} references"
        )


def all_scores(target: Preprocessing, subwords: list[str], split: Split, tokenize: str = "") -> dict[str, Any]:
    """All BLEU scores of hypotheses (lines of the model's tokens); each name says which form it is.

    A form that cannot measure this text (`can_measure`) has no score, and `details_tokenized` says so of tokenised BLEU.
    If the model's text is lower-cased, sacreBLEU ignores case, and its signature says so. German, the target of WMT14 en-de, is also
    scored with compounds split. `tokenize`: the name of sacreBLEU's tokenizer; empty: the target language decides.
    """
    lines, references = bleu_tokens(target, target.join(subwords)), bleu_tokens(target, split.reference)
    tokenize = tokenize or sacrebleu_tokenizer(target.language)
    sacre, signature = bleu_sacre(target.undo(subwords), split.reference_detokenized, target.lowercase, tokenize)
    scores: dict[str, Any] = {"signature": signature, "sentences": len(lines), "details_tokenized": UNMEASURED}
    if can_measure(references):
        score = tokenized_score(lines, references)
        details = describe_tokenized(score) + describe_tokens(target)
        scores |= {"bleu_tokenized": score.score, "details_tokenized": details}
    if code(target.language) == "de" and can_measure(list(map(split_compounds, references))):
        scores["bleu_compound_split"] = bleu_compound_split(lines, references)
    if can_measure(split.reference_detokenized, tokenize):
        scores["bleu_sacre"] = sacre
    return scores


def translations(
    references: Sequence[str], systems: tuple[Sequence[str], Sequence[str]], tokenize: str, lowercase: bool
) -> Paired:
    """sacreBLEU of two lists of plain translations: of the corpus, and of each sentence with its effective order.

    The test is sacreBLEU's paired bootstrap (Koehn 2004), whose seed is the environment's SACREBLEU_SEED or 12345.
    Raises: UserError for lists of unequal lengths, and for a tokenizer whose package is missing.
    """
    found = [bleu_sacre(lines, references, lowercase, tokenize) for lines in systems]
    by_line = BLEU(lowercase=lowercase, tokenize=tokenize, effective_order=True)
    scores = [
        [
            round(by_line.sentence_score(line, [reference]).score, 6)
            for line, reference in zip(lines, references, strict=True)
        ]
        for lines in systems
    ]
    totals, signature = (found[0][0], found[1][0]), found[0][1]
    paired = Paired(f"sacreBLEU ({signature})", totals, list(zip(*scores, strict=True)))
    seen = str.lower if lowercase else str
    differing = sum(seen(one) != seen(other) for one, other in zip(*systems, strict=True))
    # sacreBLEU gives two equal lists p = 0.001, and resampling says little where only a few lines differ.
    if differing < FEWEST or not can_measure(references, tokenize):
        return paired
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)
    test = PairedTest(
        [("first", systems[0]), ("second", systems[1])],
        {"BLEU": sacrebleu_metric(tokenize, lowercase)},
        [references],
        test_type="bs",
        n_samples=SAMPLES,
    )
    _, results = test()
    (p,) = (each[1].p_value for each in results.values() if isinstance(each[1], Result))
    return paired._replace(p=p, test=f"paired bootstrap by sacreBLEU, {SAMPLES:,} samples")

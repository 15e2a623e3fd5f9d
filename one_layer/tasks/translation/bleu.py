"""BLEU (Papineni et al. 2002, section 2.3), in the three forms that the papers give; they are not comparable.

| name | text | as in |
|---|---|---|
| tokenised | tokens as the model uses them, BPE joined | multi-bleu.perl, fairseq's generate |
| compound-split | the same, split at hyphens inside of words | tensor2tensor's get_ende_bleu, for WMT14 en-de |
| sacreBLEU | plain detokenised text, mteval-v13a's tokens | Post 2018 (arXiv 1804.08771), with its signature |

All of them are of the whole corpus, in 0 to 100, and have one reference for each hypothesis. They mind case; sacreBLEU alone can be
told not to, and says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sacrebleu.metrics.bleu import BLEU, BLEUScore

from one_layer.errors import UserError


def bleu_tokenized(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Tokenised BLEU of lines of tokens (BPE joined, Moses' escapes left in), equal to multi-bleu.perl's.

    Nothing is smoothed: where no 4-gram of the corpus is right the score is 0, as multi-bleu says.
    Raises UserError for no lines or lists of unequal length.
    """
    return _tokenized(hypotheses, references).score


def bleu_compound_split(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Tokenised BLEU after `split_compounds` on both sides; usually a little higher than without."""
    return bleu_tokenized(
        [split_compounds(line) for line in hypotheses], [split_compounds(line) for line in references]
    )


def bleu_sacre(hypotheses: Sequence[str], references: Sequence[str], lowercase: bool = False) -> tuple[float, str]:
    """sacreBLEU of lines of detokenised text, and the signature that says how it was computed.

    `lowercase`: both sides are lower-cased first (`case:lc`). A model of lower-cased text is scored so, against references as they
    were written. Raises UserError for no lines or lists of unequal length.
    """
    score, signature = _sacre(hypotheses, references, lowercase)
    return score.score, signature


def describe_tokenized(hypotheses: Sequence[str], references: Sequence[str]) -> str:
    """One line: tokenised BLEU with its n-gram precisions, brevity penalty and lengths."""
    return f"tokenised BLEU {_details(_tokenized(hypotheses, references))}"


def describe_sacre(hypotheses: Sequence[str], references: Sequence[str], lowercase: bool = False) -> str:
    """One line: sacreBLEU with its n-gram precisions, brevity penalty, lengths and signature."""
    score, signature = _sacre(hypotheses, references, lowercase)
    return f"sacreBLEU {_details(score)} {signature}"


def split_compounds(line: str) -> str:
    """A hyphen between two characters of a word becomes a token of its own: `a ##AT##-##AT## b`.

    Matches do not overlap, as in get_ende_bleu: of "x-y-z" only the first hyphen is split off. Moses' token `@-@` is such a hyphen
    already, and stays one token.
    """
    return re.sub(
        r"(?<!\S)@-@(?!\S)|(\S)-(\S)", lambda m: m[0] if m[1] is None else f"{m[1]} ##AT##-##AT## {m[2]}", line
    )


def _tokenized(hypotheses: Sequence[str], references: Sequence[str]) -> BLEUScore:
    _check(hypotheses, references)
    return BLEU(tokenize="none", smooth_method="none", force=True).corpus_score(hypotheses, [references])


def _sacre(hypotheses: Sequence[str], references: Sequence[str], lowercase: bool) -> tuple[BLEUScore, str]:
    _check(hypotheses, references)
    metric = BLEU(lowercase=lowercase, force=True)
    score = metric.corpus_score(hypotheses, [references])
    return score, str(metric.get_signature())


def _check(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if not hypotheses or len(hypotheses) != len(references):
        raise UserError(
            f"BLEU needs one reference for each hypothesis and at least one: "
            f"there are {len(hypotheses):,} hypotheses and {len(references):,} references"
        )


def _details(score: BLEUScore) -> str:
    precisions = "/".join(f"{precision:.1f}" for precision in score.precisions)
    lengths = f"ratio {score.ratio:.3f}, {score.sys_len:,} of {score.ref_len:,} tokens"
    return f"{score.score:.2f} ({precisions}, BP {score.bp:.3f}, {lengths})"

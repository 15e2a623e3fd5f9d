"""The records of a corpus: its splits as ids, with what is needed to score them. `one_layer.data.loading` makes them."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int32

from one_layer.data.special_tokens import EOS
from one_layer.data.text.assets import TextAssets
from one_layer.data.tokens import TokenStore


@dataclass(frozen=True, eq=False)
class Split:
    """The pairs of one split of a corpus. The training split has ids only, and no texts.

    - `source`, `target`: ids ending in eos, each int32 [length].
    - `source_text`: the lines as they were read.
    - `reference`: target tokens, BPE joined, for tokenised BLEU; an unknown token is marked as `unknown_marked` does.
    - `reference_detokenized`: plain text with its original case, for sacreBLEU, which lower-cases it if needed. If the files were
      prepared already, it may be lower-cased.
    """

    source: TokenStore = field(default_factory=lambda: TokenStore.of([]))
    target: TokenStore = field(default_factory=lambda: TokenStore.of([]))
    source_text: list[str] = field(default_factory=list)
    reference: list[str] = field(default_factory=list)
    reference_detokenized: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.source)

    @property
    def sentences(self) -> list[Int32[np.ndarray, " length"]]:
        """`source` as it is translated: a line of white space alone has no tokens, whatever the preprocessing made of it."""
        sides = zip(self.source, self.source_text, strict=True)
        return [ids if text.strip() else np.array([EOS], np.int32) for ids, text in sides]


@dataclass(frozen=True, eq=False)
class Corpus(TextAssets):
    """All splits of a task's text. With a joined vocabulary, source and target share one object.

    `tests` has the test sets that were asked for. `valid` is empty if only test sets were asked for.
    """

    train: Split
    valid: Split
    tests: dict[str, Split]
    report: list[str]  # lines for people: pairs, tokens, vocabularies, what was left out, unknown share

    def fingerprints(self) -> dict[str, str]:
        """Fingerprints of the ids of both sides of `train` and `valid`, by which a run recognises its text."""
        parts = {"train": self.train, "valid": self.valid}
        return {name: f"{part.source.fingerprint} {part.target.fingerprint}" for name, part in parts.items()}

"""The numbers of paper A, each with the place where it stands. The points of its figures were never published as numbers.

Paper A: Shen et al. 2021, "What's Hidden in a One-layer Randomly Weighted Transformer?", arXiv 2109.03939.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A row of paper A's Table 1: what kind of model it is, BLEU and memory (MB) on IWSLT14 and WMT14, and the source."""

    kind: str
    title: str
    iwslt14: str
    wmt14: str
    memory: str
    source: str


DENSE, RANDOM, PRETRAINED, WIDE, DEEP = "dense", "random", "pretrained", "wide", "deep"
TABLE_1 = (
    Row(DENSE, "fully weighted (small, base)", "34.66 ± 0.11", "27.51", "148, 328", "Table 1"),
    Row(RANDOM, "one random layer, random embeddings", "29.45", "17.29", "not given", "abstract and section 1"),
    Row(PRETRAINED, "one random layer, pre-trained embeddings", "30.95 ± 0.12", "20.35", "28, 96", "Table 1"),
    Row(WIDE, "the same, twice as wide (wide, wider)", "34.14 ± 0.08", "25.24", "71, 227", "Table 1"),
    Row(DEEP, "the same, twice as deep (deep, deeper)", "31.51 ± 0.10", "21.76", "29, 98", "Table 1"),
)

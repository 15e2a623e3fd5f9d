"""Numbers of the papers, each with the place where it stands.

Paper A: Shen et al. 2021, "What's Hidden in a One-layer Randomly Weighted Transformer?", arXiv 2109.03939. Paper B: Shen et al. 2021,
"Reservoir Transformers", arXiv 2012.15045. The points of paper A's figures were never published as numbers.
"""

from __future__ import annotations

from collections.abc import Collection
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

# The rows that belong to the questions of paper A's figures 3 and 4, which embeddings and which shape. All have the fully weighted model.
FIGURES = {
    "figure2": (DENSE,),
    "figure3": (DENSE, RANDOM, PRETRAINED),
    "figure4": (DENSE, PRETRAINED, WIDE, DEEP),
    "figure5": (DENSE,),
}


class Number(NamedTuple):
    """A row of Table 1 on one corpus: its name, BLEU and its deviation, bytes, keep, and the figures to which it belongs."""

    label: str
    mean: float
    deviation: float | None
    bytes: float | None
    keep: float
    figures: tuple[str, ...]


def numbers(commands: Collection[str]) -> list[Number]:
    """Table 1 for runs by these commands, if all are of the config of one of its corpora: on other text its scores mean nothing."""
    for column, name in enumerate(("iwslt14", "wmt14")):
        if commands and all(f"configs/{name}.py" in command for command in commands):
            return [_number(row, column) for row in TABLE_1]
    return []


def _number(row: Row, column: int) -> Number:
    mean, _, deviation = (row.iwslt14, row.wmt14)[column].partition(" ± ")
    size = float(row.memory.split(", ")[column]) * 1e6 if "," in row.memory else None
    figures = tuple(name for name, kinds in FIGURES.items() if row.kind in kinds)
    title = f"paper A: {row.title.partition(' (')[0]}"
    return Number(title, float(mean), float(deviation or 0) or None, size, 1.0 if row.kind == DENSE else 0.5, figures)


# What the papers say in words about results for which they give no table. Each begins with the labels (`data.labels`) or the layers that it
# is about.
RESERVOIRS = "reservoirs"
STATEMENTS = (
    (
        "qqp",
        "QQP, best one-layer model",
        "keep 0.7; 79 % of the fully weighted base model, 84 % with the large width",
        "A, section 4",
    ),
    (
        "mnli",
        "MNLI, best one-layer model",
        "keep 0.7; 91 % of the fully weighted base model, 92 % with the large width",
        "A, section 4",
    ),
    (
        RESERVOIRS,
        "reservoir layers",
        "replacing regular layers by fixed random ones gives a better area under the convergence curve",
        "B, section 1",
    ),
)

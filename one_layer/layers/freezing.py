"""Which parts of a model are trained: the names that `optim.train_only` and `optim.freeze` take.

Each trained array has words: its stack and the number of its layer, from 1; `attention` or `ffn`; `norms`; `masks` if it has scores;
`embeddings` for tables; `head` for what comes after the last layer. A name is one word, or words joined by dots, and means the
arrays that have all of them: `encoder.2.ffn` is the feed-forward network of the encoder's second layer.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from one_layer.layers.trees import Path

STACKS = ("encoder", "decoder")
WORDS = (*STACKS, "attention", "ffn", "norms", "masks", "embeddings", "head", "all")


def words(path: Path, number: int | None = None) -> frozenset[str]:
    """The words of the array at `path` in the collection `params`. `number`: that of its layer, from 1, if it belongs to one layer."""
    found = {"all", path[0] if path[0] in STACKS else "embeddings" if "embedding" in path[0] else "head"}
    if number is not None:
        found.add(str(number))
    if path[-1] == "scores":
        found.add("masks")
    if any(part.endswith("norm") for part in path):
        found.add("norms")
    elif any(part.endswith("attention") for part in path):
        found.add("attention")
    elif any(part.startswith("ffn") for part in path):
        found.add("ffn")
    return frozenset(found)


def names(key: str) -> list[str]:
    """The names in the value of `optim.train_only` or `optim.freeze`."""
    return [name.strip() for name in key.split(",") if name.strip()]


def means(name: str, words: Iterable[str]) -> bool:
    """Whether a name means the array with these words."""
    return set(name.split(".")) <= set(words)


@dataclass(frozen=True)
class Freezing:
    """Only the parts in `train_only` are trained, or all if it is empty, without those in `freeze`: names separated by commas."""

    train_only: str = ""
    freeze: str = ""

    def trains(self, words: Iterable[str]) -> bool:
        """Whether an array with these words is trained."""
        only, frozen = (any(means(name, words) for name in names(key)) for key in (self.train_only, self.freeze))
        return (only or not names(self.train_only)) and not frozen

    @property
    def by_layer(self) -> bool:
        """Whether the layers of a stack may differ in what is trained."""
        return any(word.isdecimal() for name in names(f"{self.train_only},{self.freeze}") for word in name.split("."))

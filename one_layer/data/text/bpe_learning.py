"""Learns byte pair encodings from word counts in little memory. The merges are the same as subword-nmt's, but where words
have white space inside them, such as a no-break space (U+00A0), at which subword-nmt would cut them.

Source: Sennrich et al. 2016 (arXiv 1508.07909), section 3.2. subword-nmt keeps a dictionary of words for every pair of symbols,
which takes several gigabytes for the three million words of WMT14. Here all words are one array of symbols. The positions of a
pair are stored only for frequent pairs; the positions of rarer pairs are looked up when those pairs become the most frequent.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Mapping

import numpy as np
from jaxtyping import Int
from tqdm import tqdm

from one_layer.system.errors import UserError

# These stand in place of a symbol: _EDGE between two words, _GONE where the symbol was merged into the one before it.
_EDGE, _GONE = -1, -2
_LEAST = 2  # subword-nmt does not merge a pair that occurs only once
_FALL = 8  # positions are looked up again when the most frequent remaining pair has become this many times rarer


def learn_bpe_from_counts(counts: Mapping[str, int], merges: int, end: str = "</w>") -> str:
    """Returns the text of a codes file with up to `merges` merges; `counts` gives the number of occurrences of each word, and `end` marks
    its last letter.

    Of two equally frequent pairs, the one with the greater code points is merged first, as in subword-nmt.
    Raises: UserError if nothing can be merged at all.
    """
    if merges < 1:
        raise UserError(f"{merges} BPE merges cannot be learned: give at least 1")
    if not any(len(word) > 1 for word in counts):
        raise UserError(
            "no BPE can be learned: the training text has no word of two or more letters; give another training text"
        )
    learner = _Learner(counts, end)
    found: list[str] = []
    with tqdm(total=merges, desc="learning BPE", unit=" merges", disable=None, leave=False) as bar:
        while len(found) < merges and (pair := learner.merge_next()):
            found.append(f"{pair[0]} {pair[1]}\n")
            bar.update()
    if not found:
        raise UserError(
            "no BPE can be learned: no pair of letters occurs twice in the training text; give a larger training text"
        )
    return "#version: 0.2\n" + "".join(found)


class _Pair:
    """Two symbols, ordered so that a heap returns the greatest pair first. `key` packs both ids into one number."""

    __slots__ = ("key", "symbols")

    def __init__(self, key: int, symbols: tuple[str, str]) -> None:
        self.key, self.symbols = key, symbols

    def __lt__(self, other: _Pair) -> bool:
        return self.symbols > other.symbols


class _Learner:
    def __init__(self, counts: Mapping[str, int], end: str) -> None:
        self.names: list[str] = []
        self.ids: dict[str, int] = {}
        stream, weights, lengths = array("i", [_EDGE]), array("i", [0]), array("i", [1])
        for word, count in counts.items():
            letters = [self._id(letter) for letter in word[:-1]]
            stream.extend([*letters, self._id(word[-1] + end), _EDGE])
            weights.append(count)
            lengths.append(len(word) + 1)
        self.symbols = np.frombuffer(stream, np.int32)
        self.weights = np.repeat(np.frombuffer(weights, np.int32), lengths)  # at each place, the count of its word
        del stream
        self.tracked: dict[int, int] = {}  # the count of every pair that occurs at least `floor` times
        self.heap: list[tuple[int, _Pair]] = []
        self.floor = 0
        self._look_up()

    def merge_next(self) -> tuple[str, str] | None:
        """Merges the most frequent pair and returns it, or None if no pair occurs twice."""
        while True:
            while self.heap:
                count, pair = heapq.heappop(self.heap)
                now = self.tracked.get(pair.key, 0)
                if now == -count:
                    self._merge(pair)
                    return pair.symbols
                if now >= self.floor:
                    heapq.heappush(self.heap, (-now, pair))
            if self.floor == _LEAST:
                return None
            self._look_up()

    def _id(self, name: str) -> int:
        if name not in self.ids:
            self.ids[name] = len(self.names)
            self.names.append(name)
        return self.ids[name]

    def _look_up(self) -> None:
        """Closes the gaps that merging left, then finds all pairs that are frequent enough, and their positions."""
        self.before = self.after = np.zeros(0, np.int32)  # frees the memory of the old arrays
        kept = self.symbols != _GONE
        self.symbols, self.weights = self.symbols[kept], self.weights[kept]
        self.places: dict[int, list[np.ndarray]] = {}
        self.tracked, self.heap = {}, []
        starts = np.flatnonzero((self.symbols[:-1] >= 0) & (self.symbols[1:] >= 0)).astype(np.int32)
        groups = _groups(_key(self.symbols[starts], self.symbols[starts + 1]), starts, self.weights)
        most = max((count for _, count, _ in groups), default=0)
        self.floor = max(_LEAST, most // _FALL)
        for key, count, where in groups:
            self._track(key, count, where)
        self.before = np.arange(-1, len(self.symbols) - 1, dtype=np.int32)
        self.after = np.arange(1, len(self.symbols) + 1, dtype=np.int32)

    def _track(self, key: int, count: int, where: Int[np.ndarray, "places"]) -> None:
        if count >= self.floor:
            self.tracked[key] = count
            self.places[key] = [where.copy()]
            names = self.names[key >> 32], self.names[key & 0xFFFFFFFF]
            heapq.heappush(self.heap, (-count, _Pair(key, names)))

    def _merge(self, pair: _Pair) -> None:
        left, right = pair.key >> 32, pair.key & 0xFFFFFFFF
        name = pair.symbols[0] + pair.symbols[1]
        again = name in self.ids  # an earlier merge of another pair produced the same symbol
        merged = self._id(name)
        first = self._standing(pair.key, left, right)
        second = self.after[first]
        following, preceding = self.after[second], self.before[first]
        # A place is joined if the pair right before it is merged too. That pair then counts the symbols between the two.
        joined = np.zeros(len(first), bool)
        joined[1:] = following[:-1] == first[1:]
        follows, precedes = self.symbols[following] >= 0, (self.symbols[preceding] >= 0) & ~joined
        self._subtract(_key(right, self.symbols[following[follows]]), first[follows])
        self._subtract(_key(self.symbols[preceding[precedes]], left), first[precedes])
        self.symbols[first], self.symbols[second] = merged, _GONE
        self.after[first], self.before[following] = following, first
        del self.tracked[pair.key]
        if again:  # pairs with this symbol may occur elsewhere; they were too rare to be tracked until now
            self._look_up()
            return
        keys = np.concatenate(
            [_key(merged, self.symbols[following[follows]]), _key(self.symbols[preceding[precedes]], merged)]
        )
        for group in _groups(keys, np.concatenate([first[follows], preceding[precedes]]), self.weights):
            self._track(*group)

    def _standing(self, key: int, left: int, right: int) -> Int[np.ndarray, "places"]:
        """Returns where the pair still occurs, from left to right without overlaps: in `aaa`, only the first two letters."""
        first = np.sort(np.concatenate(self.places.pop(key)))
        first = first[(self.symbols[first] == left) & (self.symbols[self.after[first]] == right)]
        if left == right and len(first):
            starts = np.flatnonzero(np.append(True, self.after[first[:-1]] != first[1:]))  # where each run starts
            rank = np.arange(len(first)) - np.repeat(starts, np.diff(np.append(starts, len(first))))
            first = first[rank % 2 == 0]
        return first

    def _subtract(self, keys: Int[np.ndarray, "pairs"], where: Int[np.ndarray, "pairs"]) -> None:
        for key, count, _ in _groups(keys, where, self.weights):
            if key in self.tracked:
                self.tracked[key] -= count


def _key(left: Int[np.ndarray, "*pairs"] | int, right: Int[np.ndarray, "*pairs"] | int) -> Int[np.ndarray, "*pairs"]:
    return (np.asarray(left, np.int64) << 32) | np.asarray(right, np.int64)


def _groups(
    keys: Int[np.ndarray, "pairs"], where: Int[np.ndarray, "pairs"], weights: Int[np.ndarray, "places"]
) -> list[tuple[int, int, np.ndarray]]:
    """Returns, for every key, (key, sum of the weights at its positions, its positions in rising order)."""
    if not len(keys):
        return []
    order = np.argsort(keys, kind="stable").astype(np.int32)
    keys, where = keys[order], where[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    counts = np.add.reduceat(weights[where], starts, dtype=np.int64)
    return list(zip(keys[starts].tolist(), counts.tolist(), np.split(where, starts[1:]), strict=True))

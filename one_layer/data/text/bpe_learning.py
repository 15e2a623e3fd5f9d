"""Byte pair encodings learned from word counts in little memory: the merges of subword-nmt, found with arrays.

Sennrich et al. 2016 (arXiv 1508.07909), section 3.2. subword-nmt keeps a dictionary of words for every pair of symbols, which
for the three million words of WMT14 is several gigabytes. Here the words are one array of symbols; where a pair stands is kept
for frequent pairs alone, and found again for rarer ones when their turn comes.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Mapping

import numpy as np
from jaxtyping import Int
from tqdm import tqdm

from one_layer.errors import UserError

_EDGE, _GONE = -1, -2  # instead of a symbol: between two words; a place whose symbol was merged into the one before
_LEAST = 2  # subword-nmt merges nothing that stands only once
_FALL = 8  # the places of pairs are looked up anew when the most frequent one left is so many times rarer


def learn_bpe_from_counts(counts: Mapping[str, int], merges: int) -> str:
    """The text of a codes file with up to `merges` merges; `counts` says how often each word stands in the text.

    A pair that is as frequent as another goes first if it is the greater in code points, as in subword-nmt.
    Raises UserError where nothing can be merged at all.
    """
    if merges < 1:
        raise UserError(f"{merges} BPE merges cannot be learned: give at least 1")
    if not any(len(word) > 1 for word in counts):
        raise UserError("no BPE can be learned: the training text holds no word of two or more letters")
    learner = _Learner(counts)
    found: list[str] = []
    with tqdm(total=merges, desc="learning BPE", unit=" merges", disable=None, leave=False) as bar:
        while len(found) < merges and (pair := learner.merge_next()):
            found.append(f"{pair[0]} {pair[1]}\n")
            bar.update()
    if not found:
        raise UserError("no BPE can be learned: no pair of letters occurs twice in the training text")
    return "#version: 0.2\n" + "".join(found)


class _Pair:
    """Two symbols, ordered so that a heap gives the greatest first. `key` packs their ids into one number."""

    __slots__ = ("key", "symbols")

    def __init__(self, key: int, symbols: tuple[str, str]) -> None:
        self.key, self.symbols = key, symbols

    def __lt__(self, other: _Pair) -> bool:
        return self.symbols > other.symbols


class _Learner:
    def __init__(self, counts: Mapping[str, int]) -> None:
        self.names: list[str] = []
        self.ids: dict[str, int] = {}
        stream, weights, lengths = array("i", [_EDGE]), array("i", [0]), array("i", [1])
        for word, count in counts.items():
            letters = [self._id(letter) for letter in word[:-1]]
            stream.extend([*letters, self._id(word[-1] + "</w>"), _EDGE])
            weights.append(count)
            lengths.append(len(word) + 1)
        self.symbols = np.frombuffer(stream, np.int32)
        self.weights = np.repeat(np.frombuffer(weights, np.int32), lengths)  # of each place's word
        del stream
        self.tracked: dict[int, int] = {}  # pair to count, of all pairs that stand `floor` times or more
        self.heap: list[tuple[int, _Pair]] = []
        self.floor = 0
        self._look_up()

    def merge_next(self) -> tuple[str, str] | None:
        """Merges the most frequent pair; None where none is left that stands twice."""
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
        """Closes the gaps that merging left, and finds all pairs frequent enough, and where they stand."""
        self.before = self.after = np.zeros(0, np.int32)  # frees their memory
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
        again = name in self.ids  # another pair has made this symbol already
        merged = self._id(name)
        first = self._standing(pair.key, left, right)
        second = self.after[first]
        following, preceding = self.after[second], self.before[first]
        joined = np.zeros(
            len(first), bool
        )  # to a place right before, which is merged too: that one sees to what is between
        joined[1:] = following[:-1] == first[1:]
        follows, precedes = self.symbols[following] >= 0, (self.symbols[preceding] >= 0) & ~joined
        self._subtract(_key(right, self.symbols[following[follows]]), first[follows])
        self._subtract(_key(self.symbols[preceding[precedes]], left), first[precedes])
        self.symbols[first], self.symbols[second] = merged, _GONE
        self.after[first], self.before[following] = following, first
        del self.tracked[pair.key]
        if again:  # pairs with it may stand elsewhere, too rare to be tracked until these are added
            self._look_up()
            return
        keys = np.concatenate(
            [_key(merged, self.symbols[following[follows]]), _key(self.symbols[preceding[precedes]], merged)]
        )
        for group in _groups(keys, np.concatenate([first[follows], preceding[precedes]]), self.weights):
            self._track(*group)

    def _standing(self, key: int, left: int, right: int) -> Int[np.ndarray, "places"]:
        """Where the pair still stands, from left to right and without overlaps: of `aaa` the first two letters."""
        first = np.sort(np.concatenate(self.places.pop(key)))
        first = first[(self.symbols[first] == left) & (self.symbols[self.after[first]] == right)]
        if left == right and len(first):
            starts = np.flatnonzero(np.append(True, self.after[first[:-1]] != first[1:]))  # of runs of one symbol
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
    """(key, sum of the weights at its places, its places in rising order) of every key that there is."""
    if not len(keys):
        return []
    order = np.argsort(keys, kind="stable").astype(np.int32)
    keys, where = keys[order], where[order]
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    counts = np.add.reduceat(weights[where], starts, dtype=np.int64)
    return list(zip(keys[starts].tolist(), counts.tolist(), np.split(where, starts[1:]), strict=True))

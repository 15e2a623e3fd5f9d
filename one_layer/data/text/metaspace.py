"""Lossless byte pair encoding: spaces are part of the pieces, so that every line comes back as it was, but for spaces at its ends.

A line is cut into words of one kind of character, each with the space before it, which is written as `▁` (U+2581). BPE (Sennrich et al.
2016, arXiv 1508.07909, section 3.2) then merges the characters of each word. `▁` as a character of the text is written as its bytes:
`<0xE2> <0x96> <0x81>`, and so is each character that a vocabulary lacks (`Vocabulary.encode`). No other text gives the tokens of bytes,
because `<`, letters and numbers are never in one piece. docs/ticket-format.md has the rules for readers in other languages. The library
tokenizers applies them; it is imported at first use.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from one_layer.data.text import byte_level
from one_layer.data.text.bpe_learning import learn_bpe_from_counts
from one_layer.data.text.vocabulary import BYTES, SPACE

# Letters with their marks and joiners, numbers, and all else: each with a space before it. Then white space and `▁`, one by one.
_WORD = r" ?[\p{L}\p{M}\x{200C}\x{200D}]+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}\x{2581}]+|\p{White_Space}|\x{2581}"
_CACHED_WORDS, _LONG = 200_000, 100  # the most words whose pieces are kept, and the length from which they are not
_VALUES = {token: bytes([value]) for value, token in enumerate(BYTES)}
_SPELLED = {letter: " ".join(BYTES[byte] for byte in letter.encode()) for letter in (SPACE, "\n", "\r")}


def words(line: str) -> str:
    """The words of a line, with spaces between them. `▁` and line ends, which lines of tokens cannot hold, are tokens of bytes."""
    line = line.strip(" ")
    found = _splitter().pre_tokenize_str(f" {line}") if line else []
    return " ".join(_SPELLED.get(word) or word.replace(" ", SPACE) for word, _ in found)


@lru_cache(maxsize=8)
def splitter(merges: str) -> Callable[[str], str]:
    """The function that splits the words of a line into pieces; `merges` is the text of a file of merges."""
    from tokenizers import Tokenizer, models

    # A pair that is there twice counts where it is first; the library would take the last place.
    pairs = list(dict.fromkeys((left, right) for _, left, right in byte_level.pairs_of(merges, "the merges")))
    symbols = dict.fromkeys(["", *(symbol for pair in pairs for symbol in (*pair, "".join(pair)))])
    model = models.BPE({symbol: number for number, symbol in enumerate(symbols)}, pairs, unk_token="")
    tokenizer, cache = Tokenizer(model), dict[str, str]()

    def split(word: str) -> str:
        if not word or word in _VALUES:
            return word
        # Characters that no merge has are unknown to the library, so that pieces are read off the word itself.
        pieces = " ".join(word[first:end] for first, end in tokenizer.encode(word).offsets)
        if len(cache) >= _CACHED_WORDS:
            cache.clear()
        if len(word) < _LONG:
            cache[word] = pieces
        return pieces

    return lambda line: " ".join(cache.get(word) or split(word) for word in line.split(" "))


def learn(counts: Mapping[str, int], merges: int) -> str:
    """Learns up to `merges` merges from the counts of words. Raises: UserError if nothing can be merged."""
    return learn_bpe_from_counts({word: count for word, count in counts.items() if word not in _VALUES}, merges, "")


def join(pieces: str) -> str:
    """The text of a line of pieces, also of SentencePiece's. Bytes that are not valid UTF-8 (a model may make them) become U+FFFD."""
    content = b"".join(_VALUES.get(piece) or piece.replace(SPACE, " ").encode() for piece in pieces.split(" "))
    return content.decode("utf-8", "replace").strip(" ")


@lru_cache(maxsize=1)
def _splitter() -> Any:
    from tokenizers import Regex, pre_tokenizers

    return pre_tokenizers.Split(Regex(_WORD), "isolated")

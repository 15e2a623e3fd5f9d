"""The words and the digests of the page are those of NumPy and hashlib, at every end of a block."""

import hashlib

import numpy as np

from tests.page.node import evaluate

DICE = np.random.default_rng(0)


def philox(role: str, counter: int, count: int) -> list[int]:
    """NumPy's first `count` words of 32 bits behind the block with this number."""
    key = int.from_bytes(hashlib.blake2b(role.encode(), digest_size=16).digest(), "little")
    stream = np.random.Philox(key=key, counter=counter)
    return stream.random_raw(4 * -(-count // 8)).astype("<u8").view("<u4")[:count].tolist()


def test_words_are_those_of_philox():
    """Calls of many sizes, each of which begins with a new block, up to the last block that the page can number."""
    counts = [0, 1, 7, 8, 9, 63, 64, 65, 127, 129, 600]
    starts = [0, 2**31 - 40, 2**32 - 1 - sum(-(-count // 8) for count in counts)]
    script = """
        const { Stream } = await import(`${page}/engine/philox.js`);
        return given.starts.map((start) => {
            const stream = new Stream(5, "a/é");
            stream.counter = start;
            return given.counts.map((count) => [...stream.words(count)]);
        });
    """
    found = evaluate(script, {"starts": starts, "counts": counts})
    for start, lists in zip(starts, found, strict=True):
        for count, words in zip(counts, lists, strict=True):
            assert words == philox("5/a/é", start, count)
            start += -(-count // 8)
    assert start == 2**32 - 1


def test_no_product_of_a_round_is_rounded():
    """Two million products of 64 bits, of many keys: float64 holds 53 of their 128 bits."""
    script = """
        const { Stream } = await import(`${page}/engine/philox.js`);
        const { Blake2b } = await import(`${page}/engine/blake2b.js`);
        return given.map((seed) => new Blake2b(16).update(new Uint8Array(new Stream(seed, "x").words(16384).slice().buffer)).hex());
    """
    seeds = list(range(50))
    words = [np.array(philox(f"{seed}/x", 0, 16384), "<u4") for seed in seeds]
    assert evaluate(script, seeds) == [hashlib.blake2b(each, digest_size=16).hexdigest() for each in words]


def test_digests_are_those_of_hashlib():
    """Of every length about the ends of blocks and of every size, at once and in pieces of any length."""
    contents = [DICE.bytes(length) for length in (0, 1, 2, 127, 128, 129, 255, 256, 257, 383, 384, 385, 1000, 4096)]
    contents += [b"\0" * 300, b"\xff" * 300]
    sizes = [1, 16, 32, 63, 64]
    script = """
        const { Blake2b } = await import(`${page}/engine/blake2b.js`);
        return given.contents.flatMap((hex) => {
            const bytes = Uint8Array.from(Buffer.from(hex, "hex"));
            return given.sizes.map((size) => given.pieces.map((piece) => {
                const digest = new Blake2b(size);
                for (let at = 0; at < bytes.length; at += piece) digest.update(bytes.subarray(at, at + piece));
                return digest.hex();
            }));
        });
    """
    pieces = [1, 5, 127, 128, 129, 256, 5000]
    given = {"contents": [each.hex() for each in contents], "sizes": sizes, "pieces": pieces}
    expected = [hashlib.blake2b(each, digest_size=size).hexdigest() for each in contents for size in sizes]
    assert evaluate(script, given) == [[each] * len(pieces) for each in expected]

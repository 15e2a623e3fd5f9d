"""Measures one thing as a ratio inside one run, prints a short table and appends one JSON line to a file.

    python launch/benchmark.py NAME [--size=small] [--quick] [--out=FILE]

NAME: `select` (a mask by counting against one by sorting), `train` (a masked training step against a dense one, and the memory
of the first), `decode` (beam search with packed masks, with masks multiplied out beforehand, and dense) or `data` (batches from a
million mapped pairs against what a training step needs). The sides of a ratio are run in turn, so that a busy machine slows them
all; times are medians.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import jax
import jax.numpy as jnp
import numpy as np

from configs.common import SIZES
from one_layer.data import toy
from one_layer.data.batches import TrainingBatches
from one_layer.data.corpus import DataConfig, load
from one_layer.data.tokens import TokenStore
from one_layer.data.vocabulary import EOS
from one_layer.generate import search
from one_layer.layers import materialize
from one_layer.models import ModelConfig, initialize
from one_layer.optim import OptimConfig, optimizer
from one_layer.results import commit, peak_memory_bytes
from one_layer.settings import flatten
from one_layer.step import train_step
from one_layer.supermask import Supermask, kept_count, topk_mask

IWSLT14_VOCABULARIES = (8848, 6632)
PAIRS, LENGTH, BEAM = 32, 24, 5


def select(name: str, quick: bool) -> dict[str, Any]:
    """Seconds for a mask of the shapes of size `name`, against a mask whose threshold comes from a sort."""
    d, ffn, _, _ = SIZES[name]
    rows = []
    for shape in [(d, d), (d, ffn), (IWSLT14_VOCABULARIES[0], d)]:
        size = shape[0] * shape[1]  # distinct values: the sorted side keeps too many at a tie
        scores = jax.random.permutation(jax.random.key(0), jnp.arange(size) / size - 0.5).reshape(shape)
        sides = {"counting": jax.jit(lambda s: topk_mask(s, 0.5)), "sorting": jax.jit(_mask_by_sorting)}
        assert jnp.array_equal(*(side(scores) for side in sides.values())), "the two masks differ"
        seconds = _in_turn({name: partial(side, scores) for name, side in sides.items()}, 3 if quick else 15)
        rows.append({"shape": list(shape), **seconds, "ratio": seconds["sorting"] / seconds["counting"]})
    return {"masks": rows}


def _mask_by_sorting(scores: jax.Array) -> jax.Array:
    size = jnp.abs(scores)
    return (size >= jnp.sort(size.reshape(-1))[size.size - kept_count(size.size, 0.5)]).astype(scores.dtype)


def train(size: str, quick: bool) -> dict[str, Any]:
    """Seconds for one update of 32 pairs of 24+24 tokens, one-layer masked at keep 0.5 and dense, float32, no dropout."""
    batch = _batch()
    masked = _Training("one_layer", size, batch)
    masked()
    peak = peak_memory_bytes()  # before the dense model takes its share
    sides: dict[str, Callable[[], Any]] = {
        "masked_seconds": masked,
        "dense_seconds": _Training("dense", size, batch),
        **_peers(size, batch),
    }
    seconds = _in_turn(sides, 2 if quick else 7)
    return {
        "pairs": PAIRS,
        "tokens": 2 * PAIRS * LENGTH,
        **seconds,
        "ratio": seconds["masked_seconds"] / seconds["dense_seconds"],
        "peak_bytes": peak,
    }


def decode(size: str, quick: bool) -> dict[str, Any]:
    """Sentences a second of beam search, beam 5, 32 sentences of 24 tokens, to the maximal length: random models seldom end."""
    source = _batch()["source"][0]
    variables = initialize(_model("one_layer", size), 0)
    packed = _pack(variables, _model("one_layer", size))
    kinds = {
        "packed": ("one_layer", packed),
        "materialized": ("one_layer", jax.jit(materialize, static_argnums=1)(variables, Supermask())),
        "dense": ("dense", initialize(_model("dense", size), 0)),
    }
    sides: dict[str, Callable[[], Any]] = {
        name: partial(_searcher(_model(weights, size)), tree, source) for name, (weights, tree) in kinds.items()
    }
    seconds = _in_turn(sides, 1 if quick else 5)
    return {
        "sentences": PAIRS,
        "beam": BEAM,
        "sentences_per_second": {name: PAIRS / each for name, each in seconds.items()},
        "bytes": {name: _bytes(tree) for name, (_, tree) in kinds.items()},
    }


def data(size: str, quick: bool) -> dict[str, Any]:
    """Batches of 4,096 tokens from a million pairs (quick: 50,000) of about 24+24, mapped from files, against a masked update.

    `prepared_lines_per_second` is for the toy language from text to ids: Moses, lower-casing, BPE learned and applied, on all cores.
    `share` is the time for the pairs of an update over that of the update. Of the bytes, `files` are shared by processes, and
    `private` is what opening them and making every batch of an epoch adds to this process besides (under Linux).
    """
    pairs = 50_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        prepared = _prepared_per_second(Path(folder), 1_000 if quick else 40_000)
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder) / "source", Path(folder) / "target"
        for seed, path in enumerate(paths):
            _sentences(pairs, seed).save(path, np.uint16)
        before, start = _private_bytes(), time.perf_counter()
        stores = [TokenStore.open(path) for path in paths]
        opened = time.perf_counter()
        batches = TrainingBatches(*stores, max_tokens=4096)
        batches[0]
        ready = time.perf_counter()
        for number in range(batches.batches_per_epoch):
            batches[number]
        private = _private_bytes() - before
        numbers, some = itertools.count(batches.batches_per_epoch), batches.batches_per_epoch // 10
        update = _Training("one_layer", size, _batch())
        sides: dict[str, Callable[[], Any]] = {
            "batching": lambda: [batches[next(numbers)] for _ in range(some)],
            "update": update,
        }
        seconds = _in_turn(sides, 2 if quick else 7)
        files = sum(path.stat().st_size for path in Path(folder).iterdir())
    rate = some * pairs / batches.batches_per_epoch / seconds["batching"]
    need = PAIRS / seconds["update"]
    return {
        "prepared_lines_per_second": prepared,
        "pairs": pairs,
        "open_seconds": opened - start,
        "first_batch_seconds": ready - opened,
        "pairs_per_second": rate,
        "needed_per_second": need,
        "share": need / rate,
        "bytes": {"files": files, "private": private},
    }


def _prepared_per_second(folder: Path, pairs: int) -> float:
    """Lines of both languages, from parallel text files to ids."""
    for name, sides in toy.generate(0, train=pairs, valid=1, test=1).items():
        for language, lines in zip(("de", "en"), sides, strict=True):
            (folder / f"{name}.{language}").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    config = DataConfig(source="text", directory=str(folder), tokenize=True, lowercase=True, bpe_merges=1000)
    start = time.perf_counter()
    load(config)
    return 2 * pairs / (time.perf_counter() - start)


def _sentences(count: int, seed: int) -> TokenStore:
    random = np.random.default_rng(seed)
    lengths = np.clip(random.lognormal(3.0, 0.6, count).astype(np.int64), 2, 175)
    tokens = random.integers(4, min(IWSLT14_VOCABULARIES), int(lengths.sum()), np.uint16)
    starts = np.cumsum(lengths) - lengths
    tokens[starts + lengths - 1] = EOS
    return TokenStore(tokens, starts, lengths)


def _private_bytes() -> int:
    """Resident in this process now, mapped files not counted; 0 where the system does not say so as Linux does."""
    try:
        _, resident, shared, *_ = map(int, Path("/proc/self/statm").read_text().split())
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _searcher(config: ModelConfig) -> Callable[..., Any]:
    longest = int(1.2 * LENGTH + 10)
    return jax.jit(lambda v, source: search(config, v, source, beam=BEAM, max_length=longest, length_penalty=1.0))


def _pack(variables: dict[str, Any], config: ModelConfig) -> dict[str, Any]:
    """The variables with a bit a weight in the place of scores."""

    def bits(scores: jax.Array) -> jax.Array:
        return jnp.packbits(config.supermask(scores).reshape(-1) > 0, bitorder="little")

    def pack(tree: Any) -> Any:
        if "scores" in tree:
            return {"mask": (jax.lax.map(bits, tree["scores"]) if tree["scores"].ndim == 3 else bits(tree["scores"]))}
        return {name: pack(branch) for name, branch in tree.items()}

    return {"random": variables["random"], "packed": jax.jit(pack)(variables["params"])}


def _bytes(tree: Any) -> int:
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))


def _peers(size: str, batch: dict[str, np.ndarray]) -> dict[str, Callable[[], Any]]:
    """The same steps in PyTorch, masks by sorting, where it is installed."""
    if importlib.util.find_spec("torch") is None:
        return {}
    from launch.torch_peer import Training

    return {
        f"torch_{name}_seconds": Training(name == "masked", SIZES[size], IWSLT14_VOCABULARIES, batch)
        for name in ("masked", "dense")
    }


class _Training:
    """A model in training: each call is one update."""

    def __init__(self, weights: str, size: str, batch: dict[str, np.ndarray]) -> None:
        config = _model(weights, size)
        adam = optimizer(OptimConfig(), 1)
        variables = initialize(config, 0)
        params = variables.pop("params")
        self._state = params, adam.init(params)
        self._fixed, self._batch, self._number = variables, batch, 0
        self._step = train_step(config, adam, 0.1, 0)

    def __call__(self) -> Any:
        params, moments, sums = self._step(*self._state, self._fixed, self._batch, self._number)
        self._state, self._number = (params, moments), self._number + 1
        return sums


def _model(weights: str, size: str) -> ModelConfig:
    d, ffn, heads, layers = SIZES[size]
    return ModelConfig(
        *IWSLT14_VOCABULARIES, d, ffn, heads, encoder_layers=layers, decoder_layers=layers, weights=weights
    )


def _batch() -> dict[str, np.ndarray]:
    tokens = np.random.default_rng(0).integers(4, min(IWSLT14_VOCABULARIES), (3, 1, PAIRS, LENGTH)).astype(np.int32)
    return dict(zip(("source", "target_in", "target"), tokens, strict=True))


def _in_turn(sides: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The median seconds of every side; the first call of each compiles and does not count."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for measured in [False] + [True] * rounds:
        for name, side in sides.items():
            start = time.perf_counter()
            jax.block_until_ready(side())
            if measured:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def _print(result: dict[str, Any]) -> None:
    rows = result.get("masks") or [flatten({name: v for name, v in result.items() if name not in _ABOUT})]
    print("  ".join(f"{name:>14}" for name in rows[0]))
    for row in rows:
        print("  ".join(f"{v:14.4g}" if isinstance(v, float) else f"{v!s:>14}" for v in row.values()))


BENCHMARKS = {"select": select, "train": train, "decode": decode, "data": data}
_ABOUT = ("benchmark", "size", "device", "jax", "commit")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("name", choices=BENCHMARKS)
    parser.add_argument("--size", choices=SIZES, default="small", help="the model's, as in configs/common.py")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--out", type=Path, help="the file that the result is appended to, as a line of JSON")
    arguments = parser.parse_args()
    about = {
        "benchmark": arguments.name,
        "size": arguments.size,
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "commit": commit(),
    }
    result = {**about, **BENCHMARKS[arguments.name](arguments.size, arguments.quick)}
    _print(result)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        with arguments.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()

"""Where the time of an update goes, beside the time that this machine needs at least for the same operations and bytes.

The update runs under JAX's profiler, which says when each operation of the compiled program ran. Every moment is shared out among the
operations that run at it, so that the rows add up to the update. An operation's floor is its arithmetic at the rate of a large product of
its type, or its bytes at the rate of a pass over a large array, whichever is longer; the rates are measured in the same run. An
operation whose arrays stay in a cache can be faster than this.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from launch.benchmarks.programs import Operation, operations
from launch.benchmarks.workloads import Training, model_of, random_batch
from one_layer.layers.products import on_cpu
from one_layer.system.errors import UserError

_WARM = 12  # updates, after which the process asks for no new memory
_TRACED = 5  # updates, of which the fastest counts
_KINDS = {"float32": "f32", "bfloat16": "bf16"}  # the names of types in JAX and in XLA
_SIDE = 1000  # of the factors of the large product
_ARRAY = 1 << 26  # numbers of the large array, 256 MB in float32

_Span = tuple[float, float, str]  # begin and end in nanoseconds, and the name of an operation


def measure(size: str, quick: bool) -> dict[str, Any]:
    """Measures one update of a one-layer model at keep 0.5 on 32 pairs of 24+24 tokens, without dropout, in float32 and in bfloat16.

    Raises: UserError on an accelerator, whose profile has another form.
    """
    if not on_cpu():
        raise UserError(
            f"floor reads the profile of a CPU, and the device is a {jax.default_backend()}; set JAX_PLATFORMS=cpu"
        )
    sides = {dtype: Training(model_of("one_layer", size).replace(dtype=dtype), random_batch()) for dtype in _KINDS}
    known = {dtype: operations(training.program()) for dtype, training in sides.items()}
    for _ in range(2 if quick else _WARM):
        jax.block_until_ready([training() for training in sides.values()])
    rates = _rates()
    traces = {dtype: min(_traced(training, known[dtype]) for _ in range(_TRACED)) for dtype, training in sides.items()}
    rates = {name: max(rate, again) for (name, rate), again in zip(rates.items(), _rates().values(), strict=True)}
    result: dict[str, Any] = {f"{name}_billions_per_second": rate / 1e9 for name, rate in rates.items()}
    for dtype, (seconds, spans) in traces.items():
        rows = _rows(known[dtype], spans, seconds, rates)
        floor = sum(row["floor"] for row in rows) / 1e3
        result |= {f"{dtype}_seconds": seconds, f"{dtype}_floor_seconds": floor, f"{dtype}_operations": rows}
    return result


def _rates() -> dict[str, float]:
    """Operations a second in products of each type, and bytes a second."""
    rates: dict[str, float] = {}
    for dtype, kind in _KINDS.items():
        factor = jnp.ones((_SIDE, _SIDE), dtype)
        rates[kind] = 2 * _SIDE**3 / _best(jax.jit(lambda x: jnp.dot(x, x, preferred_element_type=jnp.float32)), factor)
    numbers = jnp.zeros(_ARRAY)
    return {**rates, "bytes": 2 * numbers.nbytes / _best(jax.jit(lambda x: x + 1), numbers)}


def _best(function: Callable[..., Any], *inputs: Any) -> float:
    """The least seconds of 20 calls."""
    jax.block_until_ready(function(*inputs))
    seconds = []
    for _ in range(20):
        start = time.perf_counter()
        jax.block_until_ready(function(*inputs))
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _traced(training: Training, known: Mapping[str, Operation]) -> tuple[float, list[_Span]]:
    """The seconds of an update, and when its operations ran."""
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, profiler_options=options):
            start = time.perf_counter()
            jax.block_until_ready(training())
            seconds = time.perf_counter() - start
        (path,) = Path(folder).rglob("*.xplane.pb")
        profile = jax.profiler.ProfileData.from_file(str(path))
        threads = [thread.events for plane in profile.planes for thread in plane.lines]
        spans = [
            (event.start_ns, event.start_ns + event.duration_ns, event.name)
            for events in threads
            for event in events
            if event.name in known
        ]
    return seconds, spans


def _rows(
    known: Mapping[str, Operation], spans: list[_Span], seconds: float, rates: Mapping[str, float]
) -> list[dict[str, Any]]:
    """One row for each kind of operation, the longest first, in milliseconds of an update; then the time in which none was seen.

    XLA's own products, which float32 has, end for the profiler before their threads have done them.
    """
    times: dict[str, float] = defaultdict(float)
    floors: dict[str, float] = defaultdict(float)
    for name, share in _shares(spans):
        times[known[name].group] += share / 1e6
    for _, _, name in spans:
        operation = known[name]
        least = max(operation.flops / rates.get(operation.kind, 1.0), operation.bytes / rates["bytes"])
        floors[operation.group] += 1e3 * least
    rows = [
        {"milliseconds": spent, "floor": floors[group], "times": spent / floors[group], "operation": group}
        for group, spent in sorted(times.items(), key=lambda item: -item[1])
    ]
    rest = max(0.0, 1e3 * seconds - sum(times.values()))
    return [*rows, {"milliseconds": rest, "floor": 0.0, "times": None, "operation": "nothing seen"}]


def _shares(spans: list[_Span]) -> Iterator[tuple[str, float]]:
    """Pieces of the time with the operation that each belongs to; a moment at which several run is divided among them."""
    moments = sorted(
        [(begin, 1, place) for place, (begin, _, _) in enumerate(spans)]
        + [(end, 0, place) for place, (_, end, _) in enumerate(spans)]
    )
    running: set[int] = set()
    before = 0.0
    for moment, begins, place in moments:
        for each in running:
            yield spans[each][2], (moment - before) / len(running)
        before = moment
        (running.add if begins else running.discard)(place)

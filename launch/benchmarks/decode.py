"""Measures beam search with packed masks, with weights that are masked beforehand, and with a dense model."""

from functools import partial
from typing import Any

import jax
import numpy as np

from launch.benchmarks.workloads import PAIRS, in_turn, model_of, random_batch, random_ticket
from one_layer import tickets
from one_layer.models import ModelConfig, initialize
from one_layer.tasks.translation.generate import search

BEAM = 5
_SENTENCES_ON_ACCELERATORS = (PAIRS, 256, 1024)


def measure(size: str, quick: bool) -> dict[str, Any]:
    """Measures sentences per second of beam search with beam 5, for batches of 32 sentences of 24 tokens; on accelerators also larger ones.

    The search runs to the maximal length, because random models seldom end a sentence. `allocated` is the number of bytes that XLA
    allocates at a time, including weights, for one line of 8 words and for all 32 sentences; `ratio` divides packed by materialized.
    """
    sizes = (PAIRS,) if jax.default_backend() == "cpu" else _SENTENCES_ON_ACCELERATORS
    sources = [random_batch(pairs=pairs)["source"][0] for pairs in sizes]
    ticket = random_ticket(size)
    dense = model_of("dense", size, vocabularies=(ticket.config.source_vocab, ticket.config.target_vocab))
    kinds = {
        "packed": (ticket.config, jax.device_put(tickets.variables(ticket, packed=True))),
        "materialized": (ticket.config, tickets.variables(ticket)),
        "dense": (dense, initialize(dense, 0)),
    }
    line, *batches = (
        {name: _searcher(config, tree, some) for name, (config, tree) in kinds.items()}
        for some in (sources[0][:1, :9], *sources)
    )
    rows = []
    for source, batch in zip(sources, batches, strict=True):
        sides = {name: partial(search, kinds[name][1], source) for name, search in batch.items()}
        seconds = in_turn(sides, 1 if quick else 5)
        rows.append({"sentences": len(source)} | {name: len(source) / each for name, each in seconds.items()})
    return {
        "beam": BEAM,
        "sentences_per_second": rows,
        "bytes": {name: sum(leaf.nbytes for leaf in jax.tree.leaves(tree)) for name, (_, tree) in kinds.items()},
        "allocated": [_row("line", line), _row("batch", batches[0])],
    }


def _row(what: str, searchers: dict[str, Any]) -> dict[str, Any]:
    """The bytes of the arguments, the results and the temporary values of each search."""
    known = {name: search.memory_analysis() for name, search in searchers.items()}
    sizes = {
        name: each.argument_size_in_bytes + each.output_size_in_bytes + each.temp_size_in_bytes
        for name, each in known.items()
    }
    return {"allocated": what, **sizes, "ratio": sizes["packed"] / sizes["materialized"]}


def _searcher(config: ModelConfig, variables: dict[str, Any], source: np.ndarray) -> Any:
    """The compiled search (variables, source) -> hypotheses for these shapes."""
    longest = int(1.2 * source.shape[1] + 10)

    def searched(variables: dict[str, Any], source: jax.Array) -> Any:
        return search(config, variables, source, beam=BEAM, max_length=longest, length_penalty=1.0)

    return jax.jit(searched).lower(variables, source).compile()

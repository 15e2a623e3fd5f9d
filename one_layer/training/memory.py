"""Estimates the memory of a run before anything is allocated, and refuses a run that cannot fit.

The estimate is low for training, because it leaves out what compilers and text take, and roughly right for the search.
`train.check_memory=False` trains what it refuses nevertheless. In float32, which all of it is kept in:

- state: parameters, the two moments of Adam of those that are trained, and fixed arrays;
- gradients: one for each trained parameter, and for masked matrices also the product W ⊙ M and its gradient;
- activations of a micro-batch: for a token, 8·d_model + 2·ffn in every encoder layer, 14·d_model + 2·ffn in every decoder layer
  (d_model alone where `model.remat` computes them again); and the logits of each position that the task predicts, twice, or, if this is
  more, what one layer computes again;
- batches: ids of an update, of which eight are read ahead;
- the beam search for the longest line that will be scored. (One CPU searches two batches at the same time; the other one is not counted.)
"""

import logging
import math
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import jax

from one_layer.data.corpus import Corpus
from one_layer.models import ModelConfig, shapes
from one_layer.models.trained import TrainedParts
from one_layer.runs.settings import RunConfig
from one_layer.system.errors import UserError

log = logging.getLogger(__name__)

_FLOAT, _READ_AHEAD, _ARRAYS = 4, 8, 3  # bytes; updates; `source`, `target_in` and `target`
_MOMENTS = 2  # numbers of Adam for each weight
_MEND = {
    "state": "model.d_model, model.ffn, model.encoder_layers and model.decoder_layers",
    "gradients": "model.d_model, model.ffn, model.encoder_layers and model.decoder_layers",
    "activations": "data.max_tokens, or raise optim.accumulate (micro-batches of an update), or set model.remat",
    "batches": "optim.accumulate",
    "search": "evaluation.beam, evaluation.valid_beam, evaluation.max_length_a and evaluation.max_length_b",
}


def check_memory(run: RunConfig, model: ModelConfig, corpus: Corpus | None = None, members: int = 1) -> None:
    """Raises: UserError with the estimate if `run` needs more memory than there is; a warning without `train.check_memory`.

    Without a corpus, only the model is counted.

    `members` such runs are trained together, on one device; they are scored one after the other.
    """
    parts, limit = estimate(run, model, corpus), memory_limit(jax.device_count() if members == 1 else 1)
    parts = {name: size if name == "search" else members * size for name, size in parts.items()}
    updating = sum(parts.values()) - parts["search"]
    scoring = parts["state"] + parts["search"]  # between updates
    needed = max(updating, scoring)
    if needed > limit:
        bound = "at least" if updating >= scoring else "about"
        largest = max(parts, key=parts.__getitem__)
        shown = ", ".join(f"{name} {_gigabytes(size)}" for name, size in parts.items() if size)
        what = "this run" if members == 1 else f"these {members} runs"
        message = (
            f"{what} would take {bound} {_gigabytes(needed)} of memory ({shown}), but {_gigabytes(limit)} are there; lower "
            f"{_MEND[largest] if members == 1 else '--members'}"
        )
        if run.train.check_memory:
            raise UserError(f"{message}; train.check_memory=False trains it nevertheless")
        log.warning("%s; train.check_memory=False trains it nevertheless", message)


def estimate(run: RunConfig, model: ModelConfig, corpus: Corpus | None = None) -> dict[str, int]:
    """The bytes of every part of the estimate; 0 for those that need a corpus if there is none."""
    sizes = {path: math.prod(shape) for path, shape in shapes(model).items()}
    trained = sum(size for path, size in sizes.items() if path[0] == "params")
    masked = sum(size for path, size in sizes.items() if path[-1] == "scores")
    fixed = sum(sizes.values()) - trained
    optimised = sum(math.prod(shape) for shape in TrainedParts.of(model).shapes.values())
    frozen = trained - optimised
    state = (1 + _MOMENTS) * optimised + frozen + fixed
    floats = {"state": state, "gradients": optimised + masked + min(masked, optimised)}
    floats |= {"activations": 0, "batches": 0}
    search = 0
    if corpus is not None:
        sides = [side for side in (corpus.train.source, corpus.train.target) if len(side)]
        tokens = min(run.data.max_tokens, max(int(side.lengths.sum()) for side in sides))
        mean = max(float(side.lengths.mean()) for side in sides)
        update = max(tokens, math.ceil(run.optim.accumulate * mean))
        tokens = math.ceil(update / run.optim.accumulate)  # of a micro-batch
        longest = max(int(side.lengths.max()) for side in sides)
        floats["activations"] = activations(run, model, tokens, longest)
        floats["batches"] = _READ_AHEAD * _ARRAYS * update
        scored = [split.source for split in (corpus.valid, *corpus.tests.values()) if len(split)]
        longest_scored = max((int(source.lengths.max()) for source in scored), default=1)
        search = run.task.line_work(model, run.evaluation, longest_scored).bytes
    return {name: int(_FLOAT * count) for name, count in floats.items()} | {"search": search}


def activations(run: RunConfig, model: ModelConfig, tokens: int, longest: int) -> int:
    """The numbers that the backward pass of a micro-batch keeps; its sequences have at most `longest` tokens."""
    kept, again = 0, 0  # of a token
    for stack, each in (("encoder", 8), ("decoder", 14)):
        inner = each * model.d_model + 2 * model.ffn
        for recomputed in model.stack(stack).recomputed:
            kept += model.d_model if recomputed else inner
            again = max(again, inner * recomputed)
    logits = 2 * run.task.predictions(run.data, tokens, longest) * model.target_vocab
    return tokens * kept + max(logits, tokens * again)  # the logits are gone when the first layer is computed again


def memory_limit(devices: int) -> int:
    """The bytes that the run may take: the memory of `devices` accelerators. On CPUs, the least of the machine's, its group's and its own
    limit.

    Several processes are taken to be on machines of their own.
    """
    statistics = jax.local_devices()[0].memory_stats() or {}
    if "bytes_limit" in statistics:
        return int(statistics["bytes_limit"]) * devices
    own, _ = resource.getrlimit(resource.RLIMIT_AS)
    limits = [
        os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        *_group_limits(_read(Path("/proc/self/cgroup")), Path("/sys/fs/cgroup")),
    ]
    return min(limits if own == resource.RLIM_INFINITY else [*limits, own]) * jax.process_count()


def _group_limits(groups: str, root: Path) -> Iterator[int]:
    """The limits of this process's control group and of those that it is in. `groups`: the lines of /proc/self/cgroup."""
    for line in groups.splitlines() or ["0::/"]:
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory"):  # version 2, or version 1's group for memory
            base, name = (root, "memory.max") if not controllers else (root / "memory", "memory.limit_in_bytes")
            # Within a container, the path may be that of the host: its folders are then not there.
            group = base / path.lstrip("/")
            files = [each / name for each in (group, *group.parents) if each.is_relative_to(base)]
            yield from (int(text) for text in map(_read, files) if text.isdecimal())  # not `max`


def _read(path: Path) -> str:
    try:
        return path.read_text("ascii").strip()
    except (OSError, ValueError):  # not Linux, or no such group
        return ""


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.3g} GB" if size < 1e15 else f"{size / 1e9:.2g} GB"

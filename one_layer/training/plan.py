"""What the text and the length of a run decide: how many updates it has, and the keys that its config leaves open."""

from typing import Any

import numpy as np

from one_layer.data.corpus import Corpus
from one_layer.runs.records import flatten
from one_layer.runs.settings import MOST_UPDATES, RunConfig, TrainConfig, with_values
from one_layer.system.errors import UserError

MOST_EVALUATIONS = 20  # where train.evaluate_every is open
SHORT = 2000  # updates of a run that is too short for a program that takes long to compile
# The tokens that a classifier reads of a text, at most, and the share of the training texts that are whole where these are enough.
_MOST_TOKENS, _WHOLE = 512, 0.95


def planned(run: RunConfig, epoch_updates: int) -> tuple[RunConfig, list[str]]:
    """The run with a value for every open key, and lines for people that say the length of the run and what was chosen.

    - `optim.lr` follows from the model's width: for masks 2e-3 up to width 128 and 1e-3 above, for a dense model 0.512 / width (4e-3 at
      width 128, 1e-3 at 512). docs/results.md has the measurements, for random weights of the scale that `configs/text.py` gives them.
      The length of the run has no part in it.
    - `optim.warmup` is a twentieth of the updates, but at most 4,000.
    - `train.evaluate_every` is an epoch, but a run of 10 updates or more is evaluated at least 10 times and at most 20 times.
    """
    updates = total_updates(run.train, epoch_updates)
    width = run.model["d_model"]
    dense, narrow = run.model["weights"] == "dense", width <= 128
    rules: dict[str, tuple[float, str]] = {
        "optim.lr": (
            round(0.512 / width, 6) if dense else (2e-3 if narrow else 1e-3),
            f"{'dense' if dense else 'masks'}, width {width}",
        ),
        "optim.warmup": (min(4000, max(1, updates // 20)), "a twentieth of the updates, at most 4,000"),
        "train.evaluate_every": (
            max(1, -(-updates // MOST_EVALUATIONS), min(epoch_updates, updates // 10)),
            "an epoch, but 10 to 20 times in a run",
        ),
    }
    given = flatten(run.raw)
    chosen = {name: rule for name, rule in rules.items() if given[name] is None}
    run = with_values(run, {name: value for name, (value, _) in chosen.items()})
    ends = [f"train.{key}={value}" for key in ("epochs", "updates") if (value := getattr(run.train, key))]
    lines = [f"{updates:,} updates, which are {updates / epoch_updates:.1f} epochs ({' or '.join(ends)})"]
    lines += [f"chosen: {name}={value:g} ({why})" for name, (value, why) in chosen.items()]
    return run, lines


def total_updates(train: TrainConfig, epoch_updates: int) -> int:
    """The number of updates after which the run ends, if `patience` does not end it before."""
    return min(train.updates or MOST_UPDATES, (train.epochs or MOST_UPDATES) * epoch_updates, MOST_UPDATES)


def keeps_loops(train: TrainConfig, updates: int) -> bool:
    """Whether a GPU's program of a run of so many updates keeps its loops over layers (`train.unroll`).

    For six layers on each side and 4,096 tokens, a program without them took 21 s longer to compile on two cores, and an update is
    predicted to take 5 ms less: that is 4,000 updates, and fewer where more cores compile.
    """
    # A run of minutes does not know its updates yet when it is compiled; they are many where each takes milliseconds.
    return train.unroll == "no" or (train.unroll == "auto" and updates < SHORT and not train.minutes)


def check_warmup(run: RunConfig, epoch_updates: int) -> None:
    """Raises: UserError if the run would end before its warm-up."""
    warmup: Any = run.optim.warmup
    updates = total_updates(run.train, epoch_updates)
    if updates < warmup:
        longer = f"train.{'minutes' if run.train.minutes else 'updates'} or train.epochs"
        raise UserError(
            f"optim.warmup is {warmup:,}, but the run ends after {updates:,} updates, before the learning rate has reached optim.lr; "
            f"give a smaller optim.warmup, for instance {max(1, updates // 20)}, or more {longer}"
        )


def longest_allowed(run: RunConfig) -> RunConfig:
    """The run with the greatest `data.max_length` that may be chosen: 512, or as many tokens as the model has positions."""
    model = run.model_config(_MOST_TOKENS, _MOST_TOKENS)
    most = min(_MOST_TOKENS, model.max_positions) if model.position_rows else _MOST_TOKENS
    return with_values(run, {"data.max_length": most})


def with_length(run: RunConfig, corpus: Corpus) -> tuple[RunConfig, list[str]]:
    """The run with the `data.max_length` with which nearly all training texts are read whole, and a line for people.

    The text of `corpus` is cut to the most tokens that are allowed.
    """
    lengths = corpus.train.source.lengths
    chosen = int(np.quantile(lengths, _WHOLE, method="higher"))
    cut = int((lengths > chosen).sum()) if chosen < run.data.max_length else int((lengths == chosen).sum())
    return with_values(run, {"data.max_length": chosen}), [
        f"chosen: data.max_length={chosen} ({len(lengths) - cut:,} of {len(lengths):,} training texts are certainly read whole)"
    ]

"""Sweeps as data: lists of overrides, built from `vary`, `product` and `chain`.

Overrides give config keys, by their dotted names, other values. The key `config` stands for the argument of `get_config`:

    product(vary("config", "one_layer", "multi_layer"), vary("model.keep", 0.3, 0.5), vary("seed", 1, 2, 3))

has 2 x 2 x 3 runs. The key `direction` with the values forth and back stands for a text, and for the same text with its sides exchanged.
A config's function `sweep(name)` returns such a list, and the command `sweep` runs it. In a value, `{sweep}` stands for the folder of the
sweep, so that a run can read the folder of another run of the same sweep.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Overrides = dict[str, Any]
Sweep = list[Overrides]


def vary(key: str, *values: Any) -> Sweep:
    """One run for each value of `key`."""
    return [{key: value} for value in values]


def product(*sweeps: Sweep) -> Sweep:
    """Every combination of one run from each of the sweeps; the last sweep varies fastest."""
    return [_merged(runs) for runs in itertools.product(*sweeps)]


def chain(*sweeps: Sweep) -> Sweep:
    """The runs of all sweeps, one after the other; a run that occurs again is left out."""
    found: Sweep = []
    for run in itertools.chain(*sweeps):
        if run not in found:
            found.append(run)
    return found


def choice(sweeps: Mapping[str, Sweep], file: str) -> Callable[..., Sweep]:
    """The function `sweep(name)` of the config `file`; without a name it returns the first sweep."""

    def sweep(name: str = next(iter(sweeps))) -> Sweep:
        """Returns the runs of a sweep. Raises: ValueError that lists the known names."""
        if name not in sweeps:
            raise ValueError(f"configs/{file}.py has no sweep {name!r}; it has {', '.join(sweeps)}")
        return sweeps[name]

    return sweep


def _merged(runs: Sequence[Overrides]) -> Overrides:
    """All overrides in one. Raises: ValueError if two of them give the same key."""
    merged: Overrides = {}
    for run in runs:
        if twice := merged.keys() & run.keys():
            raise ValueError(f"{', '.join(sorted(twice))} is varied twice in one product; vary each key once")
        merged |= run
    return merged

"""Keys of configs that are gone. A config that names one is refused in one sentence, whatever the value: it may mean another model.

Runs and tickets of earlier versions have all keys of these: there, a key may have the value with which it did nothing.
"""

from collections.abc import Callable, Iterable
from typing import Any

from one_layer.system.errors import UserError

# Each with the last version that reads it.
REMOVED = {
    **dict.fromkeys(("model.coats", "model.score_init", "model.reservoir_conv", "model.reservoir_width"), "0.7.0"),
    **dict.fromkeys(("evaluation.top_k", "evaluation.top_p", "train.init_partly"), "0.7.0"),
    **dict.fromkeys(("train.keep_best", "train.distil_temperature", "train.distil_top_k"), "0.5.0"),
    **dict.fromkeys(("data.min_count", "data.teacher_beam", "evaluation.candidates"), "0.5.0"),
    **dict.fromkeys(
        (
            *("model.keep_attention", "model.keep_ffn", "model.keep_embedding", "model.pruned", "model.locked"),
            *("model.share_bias", "model.score_constant", "model.reservoir_direction"),
            *("model.init_qk_gain", "model.zero_pad_row"),
            *("optim.moments", "optim.freeze_scores"),
            *("train.init_scores", "train.stall_minutes", "train.keep_every", "train.max_nonfinite"),
        ),
        "0.3.0",
    ),
}
# The values with which such keys did nothing, or what is always done now.
IDLE = {
    **{"data.min_count": 1, "data.teacher_beam": 5, "evaluation.candidates": 5},
    **{"train.keep_best": 1, "train.distil_temperature": 1.0, "train.distil_top_k": 16, "train.init_partly": False},
    **{"model.coats": 1, "model.score_init": "uniform", "model.reservoir_conv": "dynamic", "model.reservoir_width": 7},
    **{"evaluation.top_k": 0, "evaluation.top_p": 1.0},
}


def is_idle(key: str, value: Any) -> bool:
    """Whether this dotted name is gone, and did nothing with this value."""
    idle = IDLE.get(key)
    return idle is not None and type(value) is type(idle) and value == idle


def without_idle(config: dict[str, Any]) -> dict[str, Any]:
    """The config of a run, or the sections of a ticket, without keys that are gone and did nothing."""
    return _without(is_idle, config)


def without_removed(config: dict[str, Any]) -> dict[str, Any]:
    """A run's config without keys that are gone: for what reads its text again, and no model."""
    return _without(lambda key, _: key in REMOVED, config)


def _without(leaves_out: Callable[[str, Any], bool], config: dict[str, Any]) -> dict[str, Any]:
    def left(section: str, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        return {name: value for name, value in values.items() if not leaves_out(f"{section}.{name}", value)}

    return {section: left(section, values) for section, values in config.items()}


def refuse_removed(keys: Iterable[str]) -> None:
    """Raises: UserError for the first of these dotted names that is gone."""
    for key in keys:
        if key in REMOVED:
            raise UserError(
                f"the key {key} is gone; version {REMOVED[key]} is the last that reads it: leave it out, or use that version"
            )

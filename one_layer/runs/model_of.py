"""`train.model_of=RUN`: a new run begins with RUN and is the same model, without its keys on the command line."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from one_layer.layers.freezing import STACKS
from one_layer.runs.changes import STEPS
from one_layer.runs.folder import RunFolder
from one_layer.runs.records import replaced
from one_layer.system.errors import UserError

_TEXT = (*STEPS, "source_language", "target_language")
_TEXT_OF_TASK = ("unit", "bpe_merges", "bpe_codes", "joined_vocabulary")


def with_model_of(config: dict[str, Any], given: Collection[str], workdir: Path) -> dict[str, Any]:
    """The nested plain values with what `train.model_of` stands for; unchanged without it. `given` are the command line's keys, which stay.

    A run that goes on in `workdir` has these values in its own config.json, so it does not need the other folder any more.
    Raises: UserError if there is no such run, or if train.init_from names another one.
    """
    path = config.get("train", {}).get("model_of", "")
    if not path:
        return config
    if config["train"]["init_from"] not in ("", path) and "train.init_from" in given:
        raise UserError(
            f"train.model_of is {path}, and train.init_from is {config['train']['init_from']}; give only train.model_of"
        )
    own = RunFolder(workdir)
    before = own.read_config() if own.holds_run else None
    if before is None or before.train.init_from != path:
        if not RunFolder(path).holds_run:
            raise UserError(
                f"train.model_of is {path}, where there is no run with config.json and a checkpoint; give the folder of a run"
            )
        before = RunFolder(path).read_config()
    there = before.raw
    same_task = there["task"] == config["task"]
    keys = (*_TEXT, *(_TEXT_OF_TASK if same_task else ()))
    values = {f"data.{key}": there["data"][key] for key in keys} | {"seed": there["seed"]}
    values |= {f"model.{key}": value for key, value in there["model"].items()}
    if not same_task:  # a stack that the task does not have stays out
        values["model.shared_embedding"] = config["model"]["shared_embedding"]
        values |= {f"model.{stack}_layers": 0 for stack in STACKS if config["model"][f"{stack}_layers"] == 0}
    values = {name: value for name, value in values.items() if name not in given}
    return replaced(config, {**values, "train.init_from": path, "train.model_of": ""})

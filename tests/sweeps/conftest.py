"""A small config with sweeps, of which nothing is trained."""

import pytest

from one_layer.sweeps import plan as plans

CONFIG = """
import numpy as np
from ml_collections import ConfigDict, config_dict
from configs.sweeps import chain, product, vary

def get_config(arg="one_layer"):
    if arg not in ("one_layer", "dense"):
        raise ValueError(f"{arg} is unknown")
    return ConfigDict({
        "seed": 1,
        "model": {"weights": arg, "keep": 0.5, "embedding_path": ""},
        "data": {"source": "text", "directory": "text", "seed": 1, "tests": ("test",)},
        "train": {"updates": 10, "epochs": 0, "log_every": 5},
        "optim": {"warmup": config_dict.placeholder(int)},
        "evaluation": {"beam": 5, "max_tokens": 4096},
        "mesh": {},
    })

def sweep(name="small"):
    keeps = product(vary("model.keep", 0.3, 0.5), vary("seed", 1, 2))
    return {
        "small": keeps,
        "grown": chain(keeps, product(vary("model.keep", 0.7), vary("train.updates", 10, 20))),
        "failing": vary("model.keep", 0.9, 0.3),
        "late": vary("model.keep", 0.8),
        "linked": [
            {"model.embedding_path": "{sweep}/dense,keep=0.3"}, {"config": "dense", "model.keep": 0.3},
            {"config": "dense", "model.keep": 0.9}, {"config": "dense", "model.embedding_path": "{sweep}/dense,keep=0.9"},
        ],
        "mutual": [
            {"model.embedding_path": "{sweep}/dense"}, {"config": "dense", "model.embedding_path": "{sweep}/default"},
        ],
        "unknown": vary("model.kep", 0.3),
        "mistyped": vary("model.keep", "half"),
        "twice": [{"seed": 1}, {"model.keep": 0.5}],
        "named": vary("config", "one_layer", "dense"),
        "misnamed": vary("config", "sparse"),
        "empty": [],
        "unjoined": [vary("seed", 1), vary("seed", 2)],
        "generated": ({"seed": seed} for seed in (1, 2)),
        "one": 5,
        "keyless": [{1: 2}], "yielding": (int("half") for _ in range(1)), "raising": ({}["absent"] for _ in range(1)),
        "argument": [{"config": 1}],
        "nothing": vary("model.keep", None),
        "open": vary("optim.warmup", None, 5),
        "numpy": product(vary("seed", *np.arange(1, 3)), vary("model.keep", *np.array([0.25, 0.5]))),
    }[name]
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "small.py"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def planned(config, tmp_path):
    """Plans a sweep of the small config in the folder `runs`."""

    def plan(name="small", *shared):
        return plans.make(str(config), name, list(shared), tmp_path / "runs")

    return plan

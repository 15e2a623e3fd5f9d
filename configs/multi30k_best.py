"""The best small files of Multi30k English to German, trained to the end on a GPU: signs of one random layer in 0.64, 1.25 or 2.61 MB.

    python main.py --config=configs/multi30k_best.py:teacher --config.data.directory=DIR --config.data.store=STORE --workdir=runs/teacher
    python main.py --config=configs/multi30k_best.py:best --config.data.directory=DIR --config.data.store=STORE --workdir=runs/best

DIR and the text are those of configs/multi30k_small.py. The models are like its models, with larger updates, a higher learning rate, and
43 or 44 passes over the text (`teacher`: 28) in the place of 6.5 or 8.5. The bits of the random layers are signs: no weight is dropped, but
some are negated. Dropout is 0.1 (`best_wide` and its controls: 0.2, `teacher`: 0.3).

`best`, `best_wide` and `small` are signs of one random layer. Each has its controls: `..._dense`, trained in 4 bits, and `..._shared`, one
trained layer for all depths of a stack, in 4 bits, with norms, biases and gains of each depth (of these, only `small_shared` has been
trained). `small` and `teacher`, a dense model, learn from tickets/multi30k-en-de-wide.safetensors, the others from runs/teacher.

`best_one_size`, `small_one_size` and `best_wide_one_size` are the controls of trained ±1 weights: all random weights of a matrix have one
size, and training chooses their signs.

On one H200 two trainings of `small_one_size` took 2 minutes side by side, and one took 8 beside nine to thirteen others.
docs/results.md has the scores, and docs/devices.md the flags that XLA had there.

The sweeps `best`, `best_wide` and `small` train a model and its three controls with three seeds each, after the teacher where they
have it; `longer` trains `best_dense` for the operations of `best`, which has 3.3 times as many in an update.
"""

from typing import NamedTuple

from ml_collections import ConfigDict

from configs import common, multi30k, multi30k_small
from configs.sweeps import Sweep, chain, choice, product, vary


class Kind(NamedTuple):
    """The config of small files that a model begins with, its shape, its learning rate and its dropout."""

    small: str
    d_model: int
    ffn: int
    lr: float
    dropout: float


KINDS = {
    "teacher": Kind("dense_wide", 256, 512, 2.5e-3, 0.3),
    "best": Kind("one_layer_wide", 448, 896, 3e-3, 0.1),
    "best_dense": Kind("dense_wide", 228, 456, 4e-3, 0.1),
    "best_shared": Kind("shared", 300, 600, 3.3e-3, 0.1),
    "best_wide": Kind("one_layer_wide", 672, 1344, 2.5e-3, 0.2),
    "best_wide_dense": Kind("dense_wide", 348, 696, 3e-3, 0.2),
    "best_wide_shared": Kind("shared", 468, 936, 2.5e-3, 0.2),
    "small": Kind("one_layer", 304, 608, 4e-3, 0.1),
    "small_dense": Kind("dense", 152, 304, 5e-3, 0.1),
    "small_shared": Kind("shared", 196, 392, 4.5e-3, 0.1),
}
_SIGNS = ("best", "best_wide", "small")
_ONE_SIZE = "_one_size"


def _beside_controls(signs: str, **more: str) -> Sweep:
    return product(
        [{"config": f"{signs}{control}", **more} for control in ("", "_dense", "_shared", _ONE_SIZE)],
        vary("seed", *multi30k.SEEDS),
    )


_TEACHER = {"data.teacher": "{sweep}/teacher"}
SWEEPS = {
    **{name: chain(vary("config", "teacher"), _beside_controls(name, **_TEACHER)) for name in ("best", "best_wide")},
    "small": _beside_controls("small"),
    "longer": chain(
        vary("config", "teacher"),
        product(
            [{"config": "best_dense", "train.updates": 40_000, "train.evaluate_every": 4000, **_TEACHER}],
            vary("seed", *multi30k.SEEDS),
        ),
    ),
}


def get_config(arg: str = "best") -> ConfigDict:
    """Returns the config. `arg` is one of KINDS, or that of a model of signs with _one_size."""
    name, one_size = arg.removesuffix(_ONE_SIZE), arg.endswith(_ONE_SIZE)
    if name not in (_SIGNS if one_size else KINDS):
        known = ", ".join((*KINDS, *(f"{each}{_ONE_SIZE}" for each in _SIGNS)))
        raise ValueError(f"configs/multi30k_best.py:{arg} is unknown; give one of {known}")
    kind = KINDS[name]
    config = multi30k_small.get_config(kind.small)
    model, data, optim, train = config.model, config.data, config.optim, config.train
    model.d_model, model.ffn, model.dropout, model.dtype = kind.d_model, kind.ffn, kind.dropout, "bfloat16"
    if name in _SIGNS:
        model.selection, model.keep = "sign", 1.0
    if one_size:
        common.set_one_size(model)
    if name == "teacher":
        model.encoder_layers = model.decoder_layers = 3
        model.trained_precision = model.vector_precision = "float32"
    data.teacher = "runs/teacher" if name.startswith("best") else "tickets/multi30k-en-de-wide.safetensors"
    # Few shapes of batches, because each is compiled.
    data.max_tokens, data.buckets = 6144, 2
    config.evaluation.max_tokens, config.evaluation.buckets = 40_000, 1
    optim.lr, optim.warmup = kind.lr, 600
    train.updates, train.evaluate_every = 8000 if name == "teacher" else 12_000, 1000
    train.keep_last = 1
    return config


sweep = choice(SWEEPS, "multi30k_best")

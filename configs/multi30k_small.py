"""Small files of Multi30k English to German: one random layer in 0.64 or 1.2 MB, and dense models in 4 bits of about as many bytes.

    python main.py --config=configs/multi30k_small.py:one_layer --config.data.directory=DIR --workdir=runs/small
    python main.py --config=configs/multi30k_small.py:dense --config.data.directory=DIR --workdir=runs/small_dense
    python main.py --config=configs/multi30k_small.py:shared --config.data.directory=DIR --workdir=runs/small_shared
    python main.py --config=configs/multi30k_small.py:one_layer_wide --config.data.directory=DIR --workdir=runs/wide
    python main.py --config=configs/multi30k_small.py:dense_wide --config.data.directory=DIR --workdir=runs/wide_dense

DIR holds the raw text of task 1 of the GitHub repository multi30k/dataset: train, valid, test2016 and test2017 .en and .de, plain or .gz.
The runs make tokens of it in lower case, and 3,000 BPE merges. All learn from the references and from the translations of a teacher, the
ticket tickets/multi30k-en-de-wide.safetensors, which takes ten minutes of a core; --config.data.store=runs/store keeps them for other runs.

`one_layer` trains masks, also over its random table, so that a piece costs a bit for each number and not four. So the table of a small
file can be wide, or have many pieces. Norms, biases and a gain for each column are trained beside the masks, in 8 bits. `dense` has the
same depth, pieces, text, teacher and number of updates, and sees its weights in 4 bits in training. `shared` is dense too, but all layers
of a stack have the same trained matrices, with norms, biases and gains of their own. `one_layer_wide` and `dense_wide` are
the same in twice the bytes, for 5,000 updates; the bits of that random layer are signs, and drop nothing. docs/results.md has the scores.

The sweeps `small` and `wide` train the models of a size, with three seeds each.
"""

from typing import NamedTuple

from ml_collections import ConfigDict

from configs import multi30k
from configs.sweeps import choice, product, vary


class Kind(NamedTuple):
    """The shape of a model, and how it is trained."""

    d_model: int
    ffn: int
    lr: float
    updates: int


# The files of each two are of about equal size: 0.6 MB, and 1.2 MB.
KINDS = {
    "one_layer": Kind(304, 608, 1.5e-3, 6500),
    "dense": Kind(140, 280, 3.5e-3, 6500),
    "shared": Kind(180, 360, 3e-3, 6500),
    "one_layer_wide": Kind(448, 896, 1.2e-3, 5000),
    "dense_wide": Kind(228, 456, 2.5e-3, 5000),
}
SWEEPS = {
    "small": product(vary("config", "one_layer", "dense", "shared"), vary("seed", *multi30k.SEEDS)),
    "wide": product(vary("config", "one_layer_wide", "dense_wide"), vary("seed", *multi30k.SEEDS)),
}


def get_config(arg: str = "one_layer") -> ConfigDict:
    """Returns the config. `arg` is one of KINDS."""
    if arg not in KINDS:
        raise ValueError(f"configs/multi30k_small.py:{arg} is unknown; give one of {', '.join(KINDS)}")
    weights = "one_layer" if arg.startswith("one_layer") else "dense"
    config = multi30k.get_config(f"{weights}_cpu")
    _text(config)
    model, optim, train = config.model, config.optim, config.train
    chosen = KINDS[arg]
    model.d_model, model.ffn, optim.lr, train.updates = chosen.d_model, chosen.ffn, chosen.lr, chosen.updates
    model.encoder_layers = model.decoder_layers = 2
    model.shared_embedding = config.data.joined_vocabulary = True
    model.vector_precision, model.dtype = "int8", "float32"
    if weights == "dense":
        model.trained_precision = "int4"
        if arg == "shared":
            model.sharing, model.gains = "weights", "columns"
    else:
        model.embedding, model.norm, model.bias, model.gains = "masked", "affine", True, "columns"
        model.dropout = 0.1
    if arg == "one_layer_wide":
        model.selection, model.keep = "sign", 1.0
    config.data.max_tokens, train.evaluate_every = 1536, 500
    return config


def _text(config: ConfigDict) -> None:
    data = config.data
    data.undo, data.tokenize, data.lowercase, data.bpe_merges = "", True, True, 3000
    data.train, data.valid, data.tests = "train", "valid", ("test2016", "test2017")
    data.teacher, data.teacher_mix = "tickets/multi30k-en-de-wide.safetensors", "both"


sweep = choice(SWEEPS, "multi30k_small")

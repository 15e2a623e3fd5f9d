"""Small files of Multi30k English to German: one random layer in 0.64 MB, and a dense model in 4 bits, in 0.57 MB.

    python main.py --config=configs/multi30k_small.py:one_layer --config.data.directory=DIR --workdir=runs/small
    python main.py --config=configs/multi30k_small.py:one_layer_further --config.data.directory=DIR --workdir=runs/small_further
    python main.py --config=configs/multi30k_small.py:dense --config.data.directory=DIR --workdir=runs/small_dense
    python main.py --config=configs/multi30k_small.py:dense_further --config.data.directory=DIR --workdir=runs/small_dense_further

DIR holds the raw text of task 1 of the GitHub repository multi30k/dataset: train, valid, test2016 and test2017 .en and .de, plain or .gz.
The runs make tokens of it in lower case, and 3,000 BPE merges. Both learn from the references and from the translations of a teacher, the
ticket tickets/multi30k-en-de-best.safetensors, which takes ten minutes of a core; --config.data.store=runs/store keeps them for other runs.

`one_layer` trains masks, also over its random table, so that a piece costs a bit for each number and not four. So the table of a small
file can be wide, or have many pieces. Norms, biases and a gain for each column are trained beside the masks, in 8 bits. `dense` has the
same depth, pieces, text, teacher and number of updates, and sees its weights in 4 bits in training. The runs `further` begin with what
these two have learned, and train for as many updates again, at two thirds of the learning rate. docs/results.md has their scores.

The sweep `small` trains `one_layer` and `dense`, with three seeds each.
"""

from ml_collections import ConfigDict

from configs import multi30k
from configs.sweeps import Sweep, named, product, vary

WIDTHS = {"one_layer": (304, 608), "dense": (140, 280)}  # d_model and ffn, of files of about equal size
# The runs that go further, by what they train: the folder that they begin with, and their learning rate.
FURTHER = {"one_layer": ("runs/small", 1e-3), "dense": ("runs/small_dense", 2.3e-3)}
SWEEPS = {"small": product(vary("config", *WIDTHS), vary("seed", *multi30k.SEEDS))}


def get_config(arg: str = "one_layer") -> ConfigDict:
    """Returns the config. `arg` is one_layer or dense, or one of these with _further."""
    kind = arg.removesuffix("_further")
    if kind not in WIDTHS:
        known = ", ".join((*WIDTHS, *(f"{kind}_further" for kind in WIDTHS)))
        raise ValueError(f"configs/multi30k_small.py:{arg} is unknown; give one of {known}")
    config = multi30k.get_config(f"{kind}_cpu")
    _text(config)
    model, optim, train = config.model, config.optim, config.train
    model.d_model, model.ffn = WIDTHS[kind]
    model.encoder_layers = model.decoder_layers = 2
    model.shared_embedding = config.data.joined_vocabulary = True
    model.vector_precision, model.dtype = "int8", "float32"
    if kind == "dense":
        model.trained_precision, optim.lr = "int4", 3.5e-3
    else:
        model.embedding, model.norm, model.bias, model.gains = "masked", "affine", True, "columns"
        model.dropout, optim.lr = 0.1, 1.5e-3
    config.data.max_tokens, train.updates, train.evaluate_every = 1536, 6500, 500
    if arg != kind:
        train.init_from, optim.lr = FURTHER[kind]
    return config


def _text(config: ConfigDict) -> None:
    data = config.data
    data.undo, data.tokenize, data.lowercase, data.bpe_merges = "", True, True, 3000
    data.train, data.valid, data.tests = "train", "valid", ("test2016", "test2017")
    data.teacher, data.teacher_mix = "tickets/multi30k-en-de-best.safetensors", "both"


def sweep(name: str = "small") -> Sweep:
    """Returns the runs of small."""
    return named(SWEEPS, name, "multi30k_small")

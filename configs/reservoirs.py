"""Reservoir Transformers (Shen et al. 2021, arXiv 2012.15045) on Multi30k, English to German.

    python main.py --config=configs/reservoirs.py:LLLL --config.data.directory=DIR --workdir=runs/LLLL
    python main.py --config=configs/reservoirs.py:4L+3R_ffn --config.data.directory=DIR --workdir=runs/ffn

DIR is that of configs/multi30k.py. The argument is LAYERS or LAYERS_KIND: the layer string of the encoder (see `model.encoder_layers` in
configs/common.py) and the kind of its reservoirs: transformer, ffn, gru or conv.

As in the paper: pre-LN, a decoder of one updatable layer, reservoirs in the encoder alone, and the number of updatable layers is what
runs have in common. One table for both languages and the output, as in configs/multi30k.py. The other settings suit a small CPU. The
sweep `kinds` has the runs of docs/reservoirs.md.
"""

from ml_collections import ConfigDict

from configs import multi30k
from configs.sweeps import chain, choice, product, vary

SWEEPS = {
    "kinds": chain(
        vary("config", "LLLL"),
        product(vary("config", "LLLL"), vary("model.layerdrop", 0.1)),
        vary("config", *(f"4L+3R_{kind}" for kind in ("transformer", "ffn", "gru", "conv"))),
        product(vary("config", "4L+3R_ffn"), vary("train.backskip", "identity", "policy")),
    )
}


def get_config(arg: str = "4L+3R_ffn") -> ConfigDict:
    """Returns the config. `arg` is the layer string of the encoder and, after an underscore, the kind of its reservoirs."""
    layers, _, kind = arg.partition("_")
    config = multi30k.get_config("dense_tiny")
    model, optim, train = config.model, config.optim, config.train
    model.encoder_layers, model.decoder_layers = int(layers) if layers.isdigit() else layers, 1
    model.reservoir = kind or "transformer"
    model.norm_position, model.dropout = "pre", 0.2
    config.data.max_tokens, optim.accumulate = 2048, 1
    optim.lr, optim.warmup, optim.schedule = 3e-3, 200, "cosine"
    train.updates, train.evaluate_every, train.patience, train.keep_last = 1200, 100, 0, 1
    return config


sweep = choice(SWEEPS, "reservoirs")

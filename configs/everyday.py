"""A translator for everyday sentences, English and German, both ways: signs of one random layer in 1.5 or 2.9 MB for both directions.

    python main.py prepare_everyday --tatoeba=deu.txt --multi30k=DIR --out=data/everyday
    python main.py sweep --config=configs/everyday.py --sweep=both --workdir=runs/everyday --config.data.directory=data/everyday

The first command says what its two corpora are, and what it holds out. The second one trains both directions. One alone:

    python main.py --config=configs/everyday.py:en_de --config.data.directory=data/everyday --workdir=runs/en_de

The text is read as it is written, with its case and signs; pieces of words hold their spaces. Both directions have the same seed and the
same pieces, and so **the same random layer and the same random table**: only the bits that training chooses differ, and norms, biases and
gains. The bits are signs: no random weight is dropped, but some are negated.

The argument is DIRECTION, and may go on with a size, and with a control, for instance en_de_large_dense:

| argument | model | file of a direction, about |
|---|---|---|
| `en_de`, `de_en` | width 304, feed-forward width 608, 2+2 layers | 0.74 MB |
| `..._large` | width 448, feed-forward width 896 | 1.45 MB |
| `..._dense` | its control: dense, trained in 4 bits, with a narrower layer of its own for each depth | the same |
| `..._shared` | its control: one *trained* layer for all depths of a stack, in 4 bits | the same |
| `..._one_size` | its control: the random weights of a matrix have one size, so that nothing of them is random but the signs | the same |

The sweeps are `both`, `both_large`, `controls` and `controls_large` (three seeds of both directions with their controls) and `seeds` (the
direction de_en with another seed than en_de: what does it cost that both share one random layer?).
"""

import itertools
from typing import NamedTuple

from ml_collections import ConfigDict

from configs import common
from configs.sweeps import Sweep, chain, choice, product, vary

DIRECTIONS = ("en_de", "de_en")
SEEDS = (1, 2, 3)


class Size(NamedTuple):
    """Widths and learning rates of signs and of the controls that train weights in 4 bits, whose files have about the same bytes."""

    d_model: int
    lr: float
    dense_d_model: int
    shared_d_model: int
    trained_lr: float


SIZES = {"": Size(304, 4e-3, 152, 188, 5e-3), "_large": Size(448, 3e-3, 228, 284, 4e-3)}
CONTROLS = ("", "_dense", "_shared", "_one_size")


def _both(size: str, *controls: str) -> Sweep:
    return vary("config", *(f"{direction}{size}{control}" for direction in DIRECTIONS for control in controls))


SWEEPS = {
    **{f"both{size}": _both(size, "") for size in SIZES},
    **{f"controls{size}": product(_both(size, *CONTROLS), vary("seed", *SEEDS)) for size in SIZES},
    "seeds": chain(_both("", ""), product(vary("config", "de_en"), vary("seed", *SEEDS[1:]))),
}
_MODELS = {"".join(parts): parts for parts in itertools.product(DIRECTIONS, SIZES, CONTROLS)}


def get_config(arg: str = "en_de") -> ConfigDict:
    """Returns the config. `arg` is a direction, with a size and a control."""
    if arg not in _MODELS:
        raise ValueError(f"configs/everyday.py:{arg} is unknown; give one of {', '.join(_MODELS)}")
    direction, size, control = _MODELS[arg]
    config = common.get_config()
    _set_text(config, direction)
    _set_model(config, SIZES[size], control)
    config.optim.schedule, config.optim.warmup = "cosine", 500
    config.train.updates, config.train.evaluate_every = 12_000, 1000
    return config


def _set_text(config: ConfigDict, direction: str) -> None:
    data = config.data
    data.source_language, data.target_language = direction.split("_")
    data.source, data.valid, data.tests = "text", "valid", ("everyday", "test2016")
    data.bpe_kind, data.bpe_merges, data.joined_vocabulary = "metaspace", 5000, True
    data.max_length, data.max_tokens, data.buckets = 100, 3072, 4


def _set_model(config: ConfigDict, size: Size, control: str) -> None:
    model = config.model
    trained = {"_dense": size.dense_d_model, "_shared": size.shared_d_model}.get(control)
    model.weights, model.d_model = ("dense", trained) if trained else ("one_layer", size.d_model)
    config.optim.lr = size.trained_lr if trained else size.lr
    model.ffn, model.heads = 2 * model.d_model, 4
    model.encoder_layers = model.decoder_layers = 2
    model.shared_embedding, model.dtype, model.dropout = True, "bfloat16", 0.0
    if trained:
        model.trained_precision, model.vector_precision = "int4", "int8"
        if control == "_shared":
            model.sharing, model.gains = "weights", "columns"
        return
    model.embedding = "masked"
    common.set_random_weights(model)
    common.set_signs(model)
    if control:
        common.set_one_size(model)


sweep = choice(SWEEPS, "everyday")

"""Causal language models: a decoder alone that predicts each byte of a text from those before it.

    python main.py --config=configs/lm.py:one_layer_mini --workdir=runs/lm --config.data.directory=DIR --config.data.train=text.txt
    python main.py --config=configs/lm.py:dense_enwik8 --workdir=runs/enwik8 --config.data.directory=DIR

DIR has plain text, as it is or as .gz. The last 5 % of it are the test set, and the 5 % before them the validation set; with
--config.data.held_out=0, data.valid and data.tests name files of their own. The argument is WEIGHTS_SIZE, where WEIGHTS is dense,
one_layer, multi_layer or signs and SIZE is one of these:

| SIZE | layers, width, feed-forward, heads | context | updates, bytes in each | what for |
|---|---|---|---|---|
| mini | 4, 128, 512, 4 | 256 | 1,200 of 2,048 | five minutes on one core, see docs/language-models.md |
| enwik8 | 12, 512, 2048, 8 | 512 | 100,000 of 16,384 | the file enwik8 with its standard split; needs an accelerator; not trained yet |

`enwik8` has the layers, the widths and the context of T12, the smaller model of Al-Rfou et al. 2019 (arXiv 1808.04444); its batches,
updates and schedule are this project's choice.

LayerNorm comes before each block, but after it with `signs`: docs/language-models.md has what was tried. The weights of their random
layer have one size, and the bits of its masks are signs. The table of bytes is trained in 4 bits; norms, biases and gains are trained in 8.

The sweep `bytes` trains `signs_mini`, and a dense model in 4 bits whose file has as many bytes, with two seeds each.
"""

from ml_collections import ConfigDict

from configs import common, paper
from configs.sweeps import Overrides, choice, product, vary
from configs.text import leave_open

# name: ((layers, d_model, ffn, heads), block, updates, bytes in an update)
SIZES = {
    "mini": ((4, 128, 512, 4), 256, 1200, 2048),
    "enwik8": ((12, 512, 2048, 8), 512, 100_000, 16_384),
}
# The dense model whose file in 4 bits has as many bytes as the ticket of signs_mini
_DENSE_OF_EQUAL_BYTES: Overrides = {
    "config": "dense_mini",
    "model.d_model": 72,
    "model.ffn": 288,
    "model.norm_position": "post",
    "model.trained_precision": "int4",
    "model.vector_precision": "int8",
}
SWEEPS = {
    "keep": vary("model.keep", 0.3, 0.5, 0.7),
    "bytes": product([{"config": "signs_mini"}, _DENSE_OF_EQUAL_BYTES], vary("seed", 1, 2)),
}


def get_config(arg: str = "one_layer_mini") -> ConfigDict:
    """Returns the config. `arg` is weights and size, for instance dense_enwik8."""
    weights, size = paper.weights_and_size("lm", arg, SIZES, (*paper.WEIGHTS, "signs"))
    config = common.get_config()
    config.task = "causal_lm"
    model, data, train, evaluation = config.model, config.data, config.train, config.evaluation
    shape, data.block, train.updates, data.max_tokens = SIZES[size]
    model.decoder_layers, model.d_model, model.ffn, model.heads = shape
    model.encoder_layers, model.dropout = 0, 0.0
    _set_weights(model, weights)
    data.source, data.held_out = "plain", 0.05
    if size == "enwik8":
        data.source, data.held_out = "enwik8", 0.0
    evaluation.stride, evaluation.valid_tokens = data.block // 2, 20_000 if size == "mini" else 500_000
    evaluation.max_tokens = max(4096, data.max_tokens // 2)
    train.select, config.optim.label_smoothing = "nll", 0.0
    config.optim.clip = 1.0
    leave_open(config)
    if weights == "signs":
        config.optim.lr = 3e-3 if model.d_model <= 128 else 1e-3  # the second is not measured
    elif weights != "dense":
        # Measured at width 128 with these random weights; others are bad here, see docs/results.md.
        config.optim.lr = 1e-3 if model.d_model <= 128 else 5e-4
    return config


def _set_weights(model: ConfigDict, weights: str) -> None:
    model.weights, model.norm_position = weights, "pre"
    if weights == "signs":
        model.weights, model.norm_position = "one_layer", "post"
        model.embedding, model.trained_precision = "trained", "int4"
        common.set_signs(model)
        common.set_one_size(model)
    elif weights != "dense":
        model.init_scheme = "signed_constant"


sweep = choice(SWEEPS, "lm")

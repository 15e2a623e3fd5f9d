"""Masked language models: an encoder that predicts masked tokens from those around them (RoBERTa, Liu et al. 2019, arXiv 1907.11692).

    python main.py --config=configs/mlm.py:one_layer_cpu --workdir=runs/mlm --config.data.directory=DIR --config.data.train=text.txt
    echo "the <mask> is open" | python main.py --mode=fill --workdir=runs/mlm

DIR has plain text with one sentence (or one paragraph) on each line, as it is or as .gz. The last 5 % of it are the test set, and the 5 %
before them the validation set; with --config.data.held_out=0, data.valid and data.tests name files of their own. Its byte-level BPE is
learned on the training text. The argument is WEIGHTS_SIZE, where WEIGHTS is dense, one_layer or multi_layer and SIZE is one of these:

| SIZE | layers, width, feed-forward, heads | context | merges | updates, tokens in each |
|---|---|---|---|---|
| mini | 2, 128, 256, 4 | 64 | 4,000 | 3,000 of 2,048; for a first look |
| cpu | 3, 256, 512, 4 | 64 | 4,000 | 10,000 of 2,048; about an hour on one core |
| base | 12, 768, 3072, 12 | 512 | 50,000 | 100,000 of 131,072; RoBERTa's encoder; needs accelerators |

`base` is as RoBERTa is: LayerNorm after each block, and 15 % of the tokens are predicted; its batches are smaller, and it has not been
trained yet. Small models on small batches do not learn in that way for a long time, so the others have LayerNorm before each block, predict
30 % of the tokens, and draw the random matrices of attention by Xavier's rule; results/README.md has the measurements. All sizes have
exact GELU, LayerNorm after the sum of embedding and position, and sinusoids as positions.
"""

from ml_collections import ConfigDict

from configs import common, paper
from configs.sweeps import choice, vary
from configs.text import leave_open

# name: ((layers, d_model, ffn, heads), block, merges, updates, tokens in an update)
SIZES = {
    "mini": ((2, 128, 256, 4), 64, 4000, 3000, 2048),
    "cpu": ((3, 256, 512, 4), 64, 4000, 10_000, 2048),
    "base": ((12, 768, 3072, 12), 512, 50_000, 100_000, 131_072),
}
SWEEPS = {"keep": vary("model.keep", 0.3, 0.5, 0.7)}


def get_config(arg: str = "one_layer_cpu") -> ConfigDict:
    """Returns the config. `arg` is weights and size, for instance one_layer_cpu."""
    weights, size = paper.weights_and_size("mlm", arg, SIZES)
    config = common.get_config()
    config.task = "masked_lm"
    model, data, train, evaluation = config.model, config.data, config.train, config.evaluation
    shape, data.block, data.bpe_merges, train.updates, data.max_tokens = SIZES[size]
    model.encoder_layers, model.d_model, model.ffn, model.heads = shape
    model.decoder_layers, model.weights = 0, weights
    model.activation, model.embedding_norm, model.dropout = "gelu", True, 0.0
    if weights != "dense":
        model.init_scheme = "signed_constant"
    data.source, data.held_out, data.unit, data.bpe_kind = "plain", 0.05, "bpe", "byte-level"
    evaluation.max_tokens, evaluation.valid_tokens = max(4096, data.max_tokens // 8), 100_000
    train.select, config.optim.label_smoothing = "nll", 0.0
    leave_open(config)
    if size == "base" and weights != "dense":
        config.optim.lr = 5e-4  # not measured
    if size != "base":
        model.norm_position, data.mask_share, config.optim.lr = "pre", 0.3, 1e-3
        if weights != "dense":
            model.init_attention = "xavier"
    return config


sweep = choice(SWEEPS, "mlm")

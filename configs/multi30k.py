"""Multi30k English to German (task 1), BPE'd text of 29,000 captions: the smallest real corpus here.

    python main.py --config=configs/multi30k.py:dense_tiny --config.data.directory=DIR --workdir=runs/dense_tiny
    python main.py --config=configs/multi30k.py:one_layer_small --config.data.directory=DIR --workdir=runs/one_layer_small

DIR holds train.bpe10k.{en,de}, valid..., test2016..., test2017... (plain or .gz), tokenised, lower-cased, joint 10k BPE. For raw
captions, set data.train=train etc., data.tokenize, data.lowercase and data.bpe_merges=10000.

The argument is WEIGHTS_SIZE: weights dense, one_layer or multi_layer; size as in `configs/common.py`.

`dense_tiny` is the recipe published with this text by LividWo/Revisit-MMT: joined dictionary, all embeddings shared, dropout 0.3,
lr 5e-3, warm-up 2,000, 2 x 4,096 tokens an update, at most 8,000 updates, patience 10; the average of the last 10 checkpoints
(`--mode=evaluate --checkpoint=average:10 --split=test2016`), beam 5, has 41.02 tokenised BLEU on test2016.
Masked models have vocabularies and embeddings of their own a side, as in paper A (arXiv 2109.03939, section 4), less dropout and a
learning rate that ends at 0: what a score needs is not what a weight needs. On two CPU cores a size between tiny and small is
affordable: `one_layer_tiny` with --config.model.d_model=256 --config.model.ffn=512.
"""

from ml_collections import ConfigDict

from configs import common


def get_config(arg: str = "dense_tiny") -> ConfigDict:
    """`arg`: weights and size, for instance one_layer_small."""
    weights, _, size = arg.rpartition("_")
    if weights not in ("dense", "one_layer", "multi_layer") or size not in common.SIZES:
        raise ValueError(
            f"configs/multi30k.py:{arg} is unknown; give dense_, one_layer_ or multi_layer_ and one of {', '.join(common.SIZES)}"
        )
    config = common.get_config()
    config.model.weights = weights
    common.set_size(config, size)
    data, optim, train = config.data, config.optim, config.train
    data.source, data.source_language, data.target_language = "text", "en", "de"
    data.train, data.valid, data.tests = "train.bpe10k", "valid.bpe10k", ("test2016.bpe10k", "test2017.bpe10k")
    train.keep_last, train.patience = 10, 10
    optim.weight_decay, optim.clip, optim.label_smoothing = 0.0, 0.0, 0.1
    if weights == "dense":
        config.model.dropout = 0.3
        config.model.shared_embedding = data.joined_vocabulary = True
        data.max_tokens, optim.accumulate = 8192, 2
        optim.lr, optim.warmup = 5e-3 if size == "tiny" else 1e-3, 2000
        train.updates = 8000
    else:
        config.model.dropout = 0.1
        data.max_tokens = 4096
        optim.lr, optim.warmup, optim.schedule = 2e-3, 500, "cosine"
        train.updates = 8000
        train.patience = 0
    return config

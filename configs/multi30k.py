"""Multi30k English to German (task 1): 29,000 captions, already split by BPE; the smallest real corpus here.

    python main.py --config=configs/multi30k.py:dense_tiny --config.data.directory=DIR --workdir=runs/dense_tiny
    python main.py --config=configs/multi30k.py:one_layer_small --config.data.directory=DIR --workdir=runs/one_layer_small

DIR holds train.bpe10k.{en,de}, valid..., test2016..., test2017... (plain or .gz), tokenised, lower-cased, with a joint 10k BPE: the files
train, valid, test.2016 and test.2017 of data/multi30k-en-de in the GitHub repository LividWo/Revisit-MMT, and its file code as
bpe10k.codes. If the model shall translate raw lines (`--mode=translate`), say in training how this text was prepared:

    --config.data.prepared=True --config.data.tokenize=True --config.data.lowercase=True --config.data.bpe_codes=DIR/bpe10k.codes

The argument is `best`, `table`, one of them with `_wide`, or WEIGHTS_SIZE. WEIGHTS is dense, one_layer or multi_layer; SIZE is a size
of `configs/common.py`, or `cpu`.

`best` is the best recipe for one random layer that was measured on one core. (The `best` of the README's table is another, in
configs/multi30k_best.py: signs, from raw text, on a GPU.) Its embeddings begin with those of `table`, a small
dense model, and are trained on; give that run as `train.init_from` if it is not in runs/table. All else that is trained is masks.

    python main.py --config=configs/multi30k.py:table --config.data.directory=DIR --workdir=runs/table
    python main.py --config=configs/multi30k.py:best --config.data.directory=DIR --workdir=runs/best
    python main.py --mode=export --workdir=runs/best --precision=int8

`best_wide` and `table_wide` are the same pair at width 384, with more dropout and longer training: two hours on one core, and a file of
2.7 MB in 4 bits. `best_wide` begins with runs/table_wide.

The sweeps `best` and `best_wide` train such a pair, and `table1` has the rows of paper A's Table 1, with the models small, wide and deep:
pre-trained embeddings are those of the dense model in the same sweep.

    python main.py sweep --config=configs/multi30k.py --sweep=best --workdir=runs/m30k --config.data.directory=DIR

`dense_tiny` is the recipe that LividWo/Revisit-MMT published with this text: joined dictionary, all embeddings shared, dropout 0.3,
lr 5e-3, warm-up 2,000, 2 x 4,096 tokens per update, at most 8,000 updates, patience 10. The average of the last 10 checkpoints
(`--mode=evaluate --checkpoint=average:10 --split=test2016.bpe10k`) with beam 5 has 41.02 tokenised BLEU on test2016 there, and 41.14 here.

Masked models have separate vocabularies and embeddings for source and target, as in paper A (arXiv 2109.03939, section 4), no dropout
(`best` and `best_wide` have one table for both, and dropout), and a learning rate that ends at 0. Their random weights are drawn as the
paper's code draws attention, by Xavier's rule, because the scale decides how fast masks learn (docs/results.md). Tables are not: Xavier's
rule divides by the size of the vocabulary. After 400 updates the nll was 5.95 with it (lr 5e-4), and 3.33 with `signed_constant` (1e-3).

`cpu`, `best` and `table` multiply in bfloat16. That takes half the time on a processor that has instructions for it, and no loss of scores
could be seen (docs/speed.md). On others --config.model.dtype=float32 is faster. The scores in docs/results.md are of float32.

`cpu` trains on one core in an hour and a half. Dense, it is the tiny size with smaller updates, less dropout and a cosine schedule;
masked, it is d 256, ffn 512, 3+3 layers and 18 epochs. results/multi30k.jsonl.zst holds the scores.
"""

from ml_collections import ConfigDict

from configs import common, paper
from configs.sweeps import Sweep, chain, choice, product, vary

SEEDS = (1, 2, 3)
# The rows of Table 1 with pre-trained embeddings take them from a dense model of the same sweep.
_PRETRAINED: Sweep = [
    {"config": f"one_layer_{size}", "model.embedding_source": "run", "model.embedding_path": f"{{sweep}}/dense_{dense}"}
    for size, dense in (("small", "small"), ("wide", "wide"), ("deep", "small"))
]
SWEEPS = {
    "best": [{"config": "table"}, {"config": "best", "train.init_from": "{sweep}/table"}],
    "best_wide": [{"config": "table_wide"}, {"config": "best_wide", "train.init_from": "{sweep}/table_wide"}],
    "table1": chain(
        vary("config", "dense_wide"),
        product([*vary("config", "dense_small", "one_layer_small"), *_PRETRAINED], vary("seed", *SEEDS)),
    ),
}

# What each of them begins with.
RECIPES = {"best": "one_layer_cpu", "table": "dense_cpu", "best_wide": "one_layer_cpu", "table_wide": "dense_cpu"}
_WIDTHS = ((256, 512), (384, 768))  # d_model and ffn of these recipes, and of the wide ones


def get_config(arg: str = "dense_tiny") -> ConfigDict:
    """Returns the config. `arg` is best, table, best_wide, table_wide, or weights and size, for instance one_layer_small."""
    sizes, also = (*common.SIZES, "cpu"), f"{', '.join(RECIPES)}, or "
    weights, size = paper.weights_and_size("multi30k", RECIPES.get(arg, arg), sizes, also=also)
    config = common.get_config()
    config.model.weights = weights
    common.set_size(config, "tiny" if size == "cpu" else size)
    _corpus(config)
    if size == "cpu":
        config.model.dtype = "bfloat16"
    if weights == "dense":
        _dense(config, cpu=size == "cpu")
    else:
        _masked(config, cpu=size == "cpu")
    if arg in ("table", "table_wide"):
        _table(config, wide=arg == "table_wide")
    if arg in ("best", "best_wide"):
        _best(config, wide=arg == "best_wide")
    return config


def _corpus(config: ConfigDict) -> None:
    data = config.data
    data.source, data.source_language, data.target_language = "text", "en", "de"
    data.undo = "subword-nmt,moses"
    data.train, data.valid, data.tests = "train.bpe10k", "valid.bpe10k", ("test2016.bpe10k", "test2017.bpe10k")
    config.train.keep_last = 10


def _dense(config: ConfigDict, cpu: bool) -> None:
    data, optim = config.data, config.optim
    config.model.shared_embedding = data.joined_vocabulary = True
    if cpu:
        config.model.dropout = 0.2
        data.max_tokens = 2048
        optim.lr, optim.warmup, optim.schedule = 4e-3, 400, "cosine"
        config.train.updates, config.train.evaluate_every = 4769, 502
    else:
        config.model.dropout = 0.3
        data.max_tokens, optim.accumulate = 8192, 2
        optim.lr, optim.warmup = 5e-3 if config.model.d_model == 128 else 1e-3, 2000
        config.train.updates, config.train.patience = 8000, 10


def _masked(config: ConfigDict, cpu: bool) -> None:
    model, data, optim = config.model, config.data, config.optim
    model.dropout = 0.0
    common.set_random_weights(model)
    optim.lr, optim.warmup, optim.schedule = 5e-4, 300, "cosine"
    if cpu:
        model.d_model, model.ffn, model.encoder_layers, model.decoder_layers = 256, 512, 3, 3
        data.max_tokens, optim.lr = 1536, 1e-3
        config.train.updates, config.train.evaluate_every = 6000, 1000
    else:
        data.max_tokens = 4096
        config.train.updates = 8000


def _table(config: ConfigDict, wide: bool) -> None:
    """A wide, shallow model: what it is for are its embeddings."""
    model, optim, train = config.model, config.optim, config.train
    model.d_model, model.ffn = _WIDTHS[wide]
    model.encoder_layers = model.decoder_layers = 2
    optim.lr, train.updates, train.evaluate_every = 1.4e-3 if wide else 2e-3, 1700, 850


def _best(config: ConfigDict, wide: bool) -> None:
    model, train = config.model, config.train
    model.d_model, model.ffn = _WIDTHS[wide]
    model.shared_embedding = config.data.joined_vocabulary = True
    model.embedding, train.init_from = "trained", "runs/table_wide" if wide else "runs/table"
    model.dropout, config.optim.lr = 0.3 if wide else 0.1, 1e-3
    train.updates, train.evaluate_every = 8500 if wide else 6500, 500


sweep = choice(SWEEPS, "multi30k")

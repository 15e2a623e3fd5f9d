"""Multi30k English to German (task 1): 29,000 captions, already split by BPE; the smallest real corpus here.

    python main.py --config=configs/multi30k.py:dense_tiny --config.data.directory=DIR --workdir=runs/dense_tiny
    python main.py --config=configs/multi30k.py:one_layer_small --config.data.directory=DIR --workdir=runs/one_layer_small

DIR holds train.bpe10k.{en,de}, valid..., test2016..., test2017... (plain or .gz), tokenised, lower-cased, with a joint 10k BPE: the files
train, valid, test.2016 and test.2017 of data/multi30k-en-de in the GitHub repository LividWo/Revisit-MMT, and its file code as
bpe10k.codes. If the model shall translate raw lines (`--mode=translate`), say in training how this text was prepared:

    --config.data.prepared=True --config.data.tokenize=True --config.data.lowercase=True --config.data.bpe_codes=DIR/bpe10k.codes

The argument is `best`, `table`, one of them with `_wide`, or WEIGHTS_SIZE. WEIGHTS is dense, one_layer or multi_layer; SIZE is a size
of `configs/common.py`, or `cpu`.

`best` is the best recipe for one random layer that was measured on one core. Its embeddings begin with those of `table`, a small dense
model, and are trained on; give that run as `train.init_from` if it is not in runs/table. All else that is trained is masks.

    python main.py --config=configs/multi30k.py:table --config.data.directory=DIR --workdir=runs/table
    python main.py --config=configs/multi30k.py:best --config.data.directory=DIR --workdir=runs/best
    python main.py --mode=export --workdir=runs/best --precision=int8

`best_wide` and `table_wide` are the same pair at width 384, with more dropout and longer training: two hours on one core, and a file of
2.7 MB in 4 bits. `best_wide` begins with runs/table_wide.

The sweeps `best` and `best_wide` train such a pair. The sweep `ablation` trains that of `best`, `best` with other choices, its controls,
and two dense models of its shape, of which one begins with the same table. Its runs are told apart by the names of their folders, and
--mode=report makes its table.

    python main.py sweep --config=configs/multi30k.py --sweep=best --workdir=runs/m30k --config.data.directory=DIR
    python main.py sweep --config=configs/multi30k.py --sweep=ablation --workdir=runs/ablation --config.data.directory=DIR

`dense_tiny` is the recipe that LividWo/Revisit-MMT published with this text: joined dictionary, all embeddings shared, dropout 0.3,
lr 5e-3, warm-up 2,000, 2 x 4,096 tokens per update, at most 8,000 updates, patience 10. The average of the last 10 checkpoints
(`--mode=evaluate --checkpoint=average:10 --split=test2016.bpe10k`) with beam 5 has 41.02 tokenised BLEU on test2016.

Masked models have separate vocabularies and embeddings for source and target, as in paper A (arXiv 2109.03939, section 4), no dropout
(`best` and `best_wide` have one table for both, and dropout), and a learning rate that ends at 0. The scale of the random weights decides
how fast masks learn. The paper's text draws everything by Kaiming's rule and divides by √keep; its code draws attention by Xavier's rule,
with a gain of 1/√2 for query, key and value. That is far better, and Xavier's smaller weights help in the feed-forward blocks too. Tables
are another matter, because Xavier's rule divides by the size of the vocabulary: with it for everything, the nll was 5.95 at lr 5e-4.
Validation nll after 400 updates of `cpu` (lr 1e-3, but 5e-4 in the first row, where 1e-3 was worse; cosine to 400):

| layers | attention | tables | nll |
|---|---|---|---|
| signed_constant | the same | signed_constant | 4.68 |
| signed_constant | xavier | signed_constant | 3.44 |
| xavier_uniform | xavier | signed_constant | 3.33 |

`cpu`, `best` and `table` multiply in bfloat16. That takes half the time on a processor that has instructions for it, and no loss of scores
could be seen (docs/speed.md). The log says if this one has none; then --config.model.dtype=float32 is faster. The scores in docs/results.md
are of float32.

`cpu` trains on one core in an hour and a half. Dense, it is the tiny size with smaller updates, less dropout and a cosine schedule;
masked, it is d 256, ffn 512, 3+3 layers and 18 epochs. results/multi30k.jsonl.zst holds the scores.

The sweeps are paper A's figures 2 to 5 and its Table 1, with the models small, wide and deep. Those with `_cpu` at the end of
their names have the models of `cpu`, also twice as wide and twice as deep, and a dense model of the shape of the first. Pre-trained
embeddings are those of the dense model in the same sweep. In figure 5, one scheme draws all matrices, also the first line's: its runs
with xavier_uniform are not those of the other figures. `controls` has random masks of the same density, no masks, and
dense models: one of the same shape, and narrower ones whose files have about the bytes of the one-layer model's ticket. For each dense
run, these commands write the file and score it; the report then shows it beside the ticket:

    python main.py --mode=export --workdir=RUN --precision=int4
    python main.py --mode=evaluate --workdir=RUN --ticket=RUN/ticket-int4.safetensors --split=test2016.bpe10k

| sweep | ticket | `int8` | `int4` |
|---|---|---|---|
| `controls_cpu` | 0.97 MB | width 72, about 1.0 MB | width 128, 0.98 MB |
| `controls` | about 4.8 MB | width 164, about 4.9 MB | width 256, about 4.8 MB |

"About" is counted from shapes, with the shares by which the stored files of results/multi30k/dense_1mb are smaller than their codes.
"""

from ml_collections import ConfigDict

from configs import common, paper
from configs.sweeps import Overrides, Sweep, chain, choice, product, vary

SEEDS = (1, 2, 3)
# Figure 5 compares schemes for all matrices, so attention and tables have no scheme of their own there.
_ONE_SCHEME: Overrides = {"model.init_attention": "scheme", "model.init_embedding": ""}
_OTHER_SCHEMES = ("kaiming_uniform", "signed_constant")  # than xavier_uniform


def _sweeps(
    one: Overrides, many: Overrides, dense: Overrides, wide: Overrides, deep: Overrides, table: str
) -> dict[str, Sweep]:
    """The figures of these models. `table` is the folder of the dense model whose embeddings figure 3 takes."""
    pretrained = {"model.embedding_source": "run", "model.embedding_path": table}
    models = {
        "figure2": [one, many, dense],
        "figure3": [one, one | pretrained, one | pretrained | {"model.embedding": "frozen"}, dense],
        "figure4": [one, wide, deep, dense],
        "figure5": [*product([one | _ONE_SCHEME], [{}, *vary("model.init_scheme", *_OTHER_SCHEMES)]), dense],
    }
    return {name: paper.figure(each, SEEDS) for name, each in models.items()}


def _table1(small: str, wide: str) -> Sweep:
    """Table 1. `small` and `wide` are the folders of the dense models whose embeddings the rows take."""
    rows = [("one_layer_small", small), ("one_layer_wide", wide), ("one_layer_deep", small)]
    pretrained = [
        {"config": model, "model.embedding_source": "run", "model.embedding_path": path} for model, path in rows
    ]
    return product([*vary("config", "dense_small", "one_layer_small"), *pretrained], vary("seed", *SEEDS))


_ONE, _MANY, _DENSE = vary("config", "one_layer_cpu", "multi_layer_cpu", "dense_cpu")
_EQUAL: Overrides = (
    _DENSE
    | {  # a dense model of the shape of one_layer_cpu, with the rate of `table`, which is as wide
        "model.d_model": 256,
        "model.ffn": 512,
        "model.encoder_layers": 3,
        "model.decoder_layers": 3,
        "optim.lr": 2e-3,
    }
)
_WIDE: Overrides = {"model.d_model": 512, "model.ffn": 1024}
_DEEP: Overrides = {"model.encoder_layers": 6, "model.decoder_layers": 6}
_SMALL = _sweeps(
    {"config": "one_layer_small"},
    {"config": "multi_layer_small"},
    {"config": "dense_small"},
    {"config": "one_layer_wide"},
    {"config": "one_layer_deep"},
    table="{sweep}/dense_small",
)
_CPU = _sweeps(
    _ONE,
    _MANY,
    _EQUAL,
    _ONE | _WIDE,
    _ONE | _DEEP,
    table="{sweep}/dense_cpu,d_model=256,decoder_layers=3,encoder_layers=3,ffn=512,lr=0.002",
)
# Dense models with about the bytes of the ticket, in 8 bits and in 4. The learning rate is about 0.512 / width, as that of the others.
_OF_TICKET_BYTES = [
    {"config": "dense_small", "model.d_model": 164, "model.ffn": 328, "optim.lr": 3e-3},
    {"config": "dense_small", "model.d_model": 256, "model.ffn": 512, "optim.lr": 2e-3},
]
_TWO_LAYERS: Overrides = {"model.encoder_layers": 2, "model.decoder_layers": 2}
_OF_TICKET_BYTES_CPU = [
    _DENSE | _TWO_LAYERS | {"model.d_model": 72, "model.ffn": 144, "optim.lr": 7e-3},
    _DENSE | _TWO_LAYERS,
]
SWEEPS = {
    **_SMALL,
    "table1": chain(vary("config", "dense_wide"), _table1("{sweep}/dense_small", "{sweep}/dense_wide")),
    "controls": paper.controls({"config": "one_layer_small"}, [{"config": "dense_small"}, *_OF_TICKET_BYTES], SEEDS),
    **{f"{name}_cpu": each for name, each in _CPU.items()},
    "controls_cpu": paper.controls(_ONE, [_EQUAL, *_OF_TICKET_BYTES_CPU], SEEDS),
}

# `best` and the model that its embeddings begin with; then `best` with other choices.
_BEST: Overrides = {"config": "best", "train.init_from": "{sweep}/table"}
_TABLE_FIXED: Overrides = {  # the same table, not trained on
    "config": "best",
    "train.init_from": "",
    "model.embedding_source": "run",
    "model.embedding_path": "{sweep}/table",
}
SWEEPS["best"] = [{"config": "table"}, _BEST]
SWEEPS["best_wide"] = [{"config": "table_wide"}, {"config": "best_wide", "train.init_from": "{sweep}/table_wide"}]
SWEEPS["ablation"] = [
    *SWEEPS["best"],
    _TABLE_FIXED | {"model.embedding": "frozen"},
    _TABLE_FIXED | {"model.embedding": "masked"},
    {"config": "best", "train.init_from": ""},  # embeddings that begin at random and are trained
    # Random embeddings that are not trained: under masks, so that nothing but masks is trained, and as they are.
    *product([{"config": "best", "train.init_from": "", "model.embedding": "masked"}], [{}, _WIDE]),
    *product([{"config": "best", "train.init_from": "", "model.embedding": "frozen"}], [{}, _WIDE]),
    *product([_BEST], vary("model.keep", 0.3, 0.7)),
    _BEST | {"model.weights": "multi_layer"},
    _BEST | {"model.weights": "dense"},
    _EQUAL,
    _BEST | {"model.selection": "score"},
    _BEST
    | {"model.selection": "signed_threshold", "model.threshold": 0.03},  # about half of the scores begin beyond it
    _BEST | {"model.init_scheme": "signed_constant"},
    _BEST | {"model.init_scheme": "signed_constant", "model.init_attention": "scheme"},
    _BEST | {"optim.lr": 5e-4},
    _BEST | {"model.dropout": 0.0},
    # The controls: random masks of the same density, and no masks; the embeddings are trained on beside both.
    _BEST | {"optim.freeze": "masks"},
    _BEST | {"model.keep": 1.0},
]

RECIPES = {  # what each of them begins with
    "best": "one_layer_cpu",
    "table": "dense_cpu",
    "best_wide": "one_layer_cpu",
    "table_wide": "dense_cpu",
}
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

"""Translation of your own text, with the settings that did best on small corpora here.

    python main.py --config=configs/text.py --workdir=runs/mine --config.data.directory=DIR \
        --config.data.source_language=en --config.data.target_language=fr

DIR holds train, valid and test .en and .fr (plain or .gz), raw text with one sentence on each line. If you have no files for valid and
test, give --config.data.held_out=0.02: 2 % of the training lines each become the validation set and the test set. For one file with
both languages, of tab-separated columns, CSV or JSON lines, give its name and its columns:

    --config.data.source=tsv --config.data.train=pairs.tsv --config.data.columns=1,2 --config.data.held_out=0.02

Several corpora may be one text, each with its columns, and with shares (the last one here is a pair of files, talks.en and talks.fr):

    --config.data.source=tsv --config.data.train=one.tsv,two.csv,talks --config.data.columns="1,2;en,fr;" --config.data.mix=2:1:1

How long it may take and how large the file may be, you may say in minutes and bytes: --config.train.minutes=30 chooses the updates, from
the speed of the first ones, and --config.train.bytes=1000000 the width of the model.

Both directions, over the same random layer, are two runs of one sweep, and one page (their pieces are the same too where valid and test
have files of their own, because what is held out is told by the source line):

    python main.py sweep --config=configs/text.py --sweep=both_ways --workdir=runs/text --config.data.directory=DIR \
        --config.data.source_language=en --config.data.target_language=fr
    python main.py --mode=page --ticket=runs/text/en-fr/ticket.safetensors --ticket=runs/text/fr-en/ticket.safetensors --output=page.html

The argument is WEIGHTS_SIZE, by default signs_mini. WEIGHTS is signs, dense, one_layer, multi_layer or best. SIZE is one of these, or a
size of `configs/common.py`, which needs an accelerator:

| SIZE | width, feed-forward, heads, layers | updates at most, tokens in each | time |
|---|---|---|---|
| mini | 128, 256, 4, 2+2 | 4,000 of 1,024 | five to ten minutes on two cores, from the speed of its first 900 updates |
| cpu | 256, 512, 4, 3+3 | 6,000 of 1,536 | about an hour and a half on one core |
| tiny, small, base, ... | as in `configs/common.py` | 8,000 of 4,096 | not measured |

A run ends after so many updates, or after 40 epochs if they are fewer; --config.train.updates, .epochs and .minutes change this. The
learning rate, the warm-up and the interval of evaluations follow from the model and the size of the corpus (`one_layer/training/plan.py`
has the rules); the first lines of the log say which were chosen. All learning rates end at 0.

The text is split into pieces that hold their spaces, by a BPE that both languages share: what a model writes is text, with every space
and sign where the training text has them (data.bpe_kind=metaspace).
Runs that an earlier version began with this config go on with --config.data.tokenize=True --config.data.bpe_kind=subword-nmt.

`signs` is what did best in small files (docs/results.md): all random weights of a matrix have one size, and training chooses their
signs; the random table of both languages has such bits too, and norms, biases and a gain for each column are trained beside them, in 8
bits. It is half as wide again as SIZE. Its learning rate is 1.5e-3; only `mini` was measured.

`one_layer` and `multi_layer` are masks that keep half of the weights, over one random layer and over L, without dropout. They have the
random weights of configs/multi30k.py. `dense` is trained whole.

`best` is one random layer with trained embeddings, which begin with those of the dense model of the same size. Its vocabulary and BPE
codes are those of that model. It scores higher than `one_layer`, in a larger file, because embeddings are stored as numbers. The sweep
best_SIZE trains both in one command. It trains the table in 4 bits, so the ticket that the run writes is small:

    python main.py sweep --config=configs/text.py --sweep=best_mini --workdir=runs/text --config.data.directory=DIR \
        --config.data.source_language=en --config.data.target_language=fr
"""

from ml_collections import ConfigDict
from ml_collections.config_dict import placeholder

from configs import common, paper
from configs.sweeps import choice, vary

# name: ((d_model, ffn, heads, layers of each stack), updates at most, tokens in an update, merges of BPE)
SIZES = {
    "mini": ((128, 256, 4, 2), 4000, 1024, 4000),
    "cpu": ((256, 512, 4, 3), 6000, 1536, 8000),
    **{name: (shape, 8000, 4096, 10_000) for name, shape in common.SIZES.items()},
}
SWEEPS = {"both_ways": vary("direction", "forth", "back")} | {
    f"best_{size}": [
        {"config": f"dense_{size}"},
        {"config": f"best_{size}", "train.init_from": f"{{sweep}}/dense_{size}", "model.trained_precision": "int4"},
    ]
    for size in SIZES
}


def get_config(arg: str = "signs_mini") -> ConfigDict:
    """Returns the config. `arg` is weights and size, for instance signs_cpu."""
    weights, size = paper.weights_and_size("text", arg, SIZES, (*paper.WEIGHTS, "signs", "best"))
    config = common.get_config()
    model, data, train = config.model, config.data, config.train
    shape, train.updates, data.max_tokens, data.bpe_merges = SIZES[size]
    model.d_model, model.ffn, model.heads, model.encoder_layers = shape
    model.decoder_layers = model.encoder_layers
    model.weights = "one_layer" if weights in ("signs", "best") else weights
    model.dropout = {"dense": 0.2, "signs": 0.1, "best": 0.1}.get(weights, 0.0)
    if weights in ("dense", "signs", "best"):
        model.shared_embedding = data.joined_vocabulary = True
    if weights != "dense":
        common.set_random_weights(model)
    if weights == "best":
        model.embedding, train.init_from = "trained", "runs/dense"
        data.bpe_merges = 0  # its codes are those of runs/dense
    data.source, data.bpe_kind = "text", "metaspace"
    data.source_language = data.target_language = ""  # to be given
    train.epochs = 40
    leave_open(config)
    if weights == "signs":
        _signs(config)
    return config


def _signs(config: ConfigDict) -> None:
    model = config.model
    model.d_model, model.ffn = 3 * model.d_model // 2, 3 * model.ffn // 2
    model.embedding = "masked"
    common.set_signs(model)
    common.set_one_size(model)
    config.optim.lr = 1.5e-3  # that of configs/multi30k_small.py:one_layer


def leave_open(config: ConfigDict) -> None:
    """Leaves the learning rate, the warm-up and the interval of evaluations to the size of the corpus."""
    optim, train = config.optim, config.train
    del optim.lr, optim.warmup, train.evaluate_every
    optim.lr, optim.warmup, train.evaluate_every = placeholder(float), placeholder(int), placeholder(int)
    optim.schedule = "cosine"


sweep = choice(SWEEPS, "text")

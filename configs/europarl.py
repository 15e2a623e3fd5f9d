"""The paper's table at the paper's size: Europarl, Italian to English, 150,000 pairs. Table 1 of arXiv 2109.03939 has 160,239 of IWSLT14.

    python main.py sweep --config=configs/europarl.py --config.data.directory=DIR --workdir=runs/europarl

DIR holds train.tok, valid.tok and test.tok in .it and .en, tokenised and cased, plain or .gz. They are lower-cased here, as the paper's
text is, and 10,000 joint merges are learned. The recipe is that of configs/iwslt14.py. In place of the best epoch by BLEU, the scores are
those of the average of the last ten checkpoints, so that training need not translate:

    python main.py --mode=evaluate --workdir=runs/europarl/NAME --checkpoint=average:10 --split=test.tok

The argument is that of configs/iwslt14.py (`dense_small`, `one_layer_wide_pretrained` and so on), or one of these, for each size:

| argument | model |
|---|---|
| `signs_small` | one random layer by the best recipe here: Xavier scales, signs, trained norms, biases and gains, a cosine of the rate |
| `masks_small` | the same recipe, and masks that keep a half |
| `shared_small` | its control: one *trained* layer for all depths of a stack, with the same gains and rate |
| `trained_small` | its other control: dense, with the same rate |

The sweep `table1` begins with the rows that say most: dense, one layer, and the best recipe beside its controls. Then come wide layers,
the tables of the dense run, deep layers, other shares that are kept, and two more seeds of the first rows.
"""

from ml_collections import ConfigDict

from configs import common, iwslt14, paper
from configs.sweeps import chain, choice, product, vary

SIZES = iwslt14.SIZES
BEST = ("signs", "masks", "shared", "trained")
_RATES = {"small": 2e-3, "wide": 1.5e-3, "deep": 1.5e-3}


def _tables_of(size: str, tables: str) -> dict[str, str]:
    """A row of the paper whose tables are those of a dense run of the same sweep."""
    return {
        "config": f"one_layer_{size}_pretrained",
        "model.embedding_source": "run",
        "model.embedding_path": f"{{sweep}}/{tables}",
    }


_FIRST = vary("config", "dense_small", "one_layer_small", "signs_small", "trained_small", "shared_small")
SWEEPS = {
    "table1": chain(
        _FIRST,
        vary("config", "one_layer_wide", "signs_wide"),
        [_tables_of("small", "dense_small")],
        vary("config", "masks_small", "multi_layer_small", "dense_wide"),
        [_tables_of("wide", "dense_wide"), _tables_of("deep", "dense_small")],
        product(vary("config", "one_layer_small"), vary("model.keep", 0.3, 0.7)),
        product(vary("seed", 2, 3), _FIRST),
    )
}


def get_config(arg: str = "one_layer_small") -> ConfigDict:
    """Returns the config. `arg` is an argument of configs/iwslt14.py, or one of BEST with a size."""
    config = common.get_config()
    weights, _, size = arg.partition("_")
    if best := weights in BEST and size in SIZES:
        common.set_size(config, size)
    else:
        paper.set_model(config, "europarl", arg, SIZES, also="signs_, masks_, shared_, trained_, ")
    iwslt14.set_recipe(config)
    if best:
        _set_best(config, weights, size)
    data, train = config.data, config.train
    data.source, data.source_language, data.target_language = "text", "it", "en"
    data.train, data.valid, data.tests = "train.tok", "valid.tok", ("test.tok",)
    data.lowercase, data.bpe_merges = True, 10_000
    config.model.dtype = "bfloat16"
    train.select, train.keep_last = "nll", 10
    config.evaluation.valid_beam = 0
    return config


def _set_best(config: ConfigDict, weights: str, size: str) -> None:
    model, optim = config.model, config.optim
    optim.lr, optim.schedule, optim.weight_decay = _RATES[size], "cosine", 0.0
    if weights in ("shared", "trained"):
        model.weights = "dense"
        if weights == "shared":
            model.sharing, model.gains = "weights", "columns"
        return
    common.set_random_weights(model)
    common.set_signs(model)
    if weights == "masks":
        model.selection, model.keep = "magnitude", 0.5


sweep = choice(SWEEPS, "europarl")

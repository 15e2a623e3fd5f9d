"""IWSLT14 German to English: the rows of paper A's Table 1 (arXiv 2109.03939) and its figures 2 to 5.

    python main.py --config=configs/iwslt14.py:one_layer_small --config.data.directory=DIR --workdir=runs/one_layer_small

The argument is WEIGHTS_SIZE plus any variants, joined by _. WEIGHTS is dense, one_layer or multi_layer; SIZE is small, wide or deep.

| argument | row of Table 1, or other place | published BLEU | Param (no mask) |
|---|---|---|---|
| dense_small | Trans_small, fully weighted | 34.66 ± 0.11 | 39M |
| one_layer_small | section 4, random embeddings, keep 0.5 | 29.45 | |
| one_layer_small_pretrained | One-layer Random Trans_small | 30.95 ± 0.12 | 7M |
| one_layer_wide_pretrained | One-layer Trans_wide | 34.14 ± 0.08 | 18M |
| one_layer_deep_pretrained | One-layer Random Trans_deep | 31.51 ± 0.10 | 7M |
| multi_layer_small | Fig. 2: about the same as one_layer_small at every keep | not given as a number | |
| one_layer_small_xavier | Fig. 5: below Kaiming uniform, by more at a larger keep | not given as a number | |

The scores are means over three seeds of tokenised lower-cased BLEU (`bleu_tokenized`), at the best epoch by validation BLEU, with
beam 5 and length penalty 1. The paper gives no training time; it used one V100.

`pretrained` takes the embeddings of a trained dense model, as the paper does (footnote 4). For small and deep they come from
fairseq's checkpoint `pretrained/model.pt` with its dictionaries `pretrained/dict.de.txt` and `dict.en.txt`; reading it needs torch
(requirements-torch.txt). For wide they come from this project's dense run in `runs/dense_wide`. --config.model.embedding_path names
another checkpoint, with its dictionaries in the same folder, or another run. To take small's from a dense run of this project, give

    --config.model.embedding_source=run --config.model.embedding_path=runs/dense_small

These keys are for single runs. The sweeps figure3 and table1 also have dense models, which take no embeddings, so there these keys are
refused, and the checkpoint must lie in pretrained/. The sweeps of configs/multi30k.py show how runs take the embeddings of a dense
run of the same sweep.

To read text files, give --config.model.embedding_source=text in the same way. The tables are fixed, and masked like every other matrix, as
in the paper's code and in the counts of Table 1. `frozen` removes the masks from the embeddings: with `pretrained`, the tables of the dense
model stay unchanged, which is the other reading of "fixed pre-trained".

DIR holds train, valid and test .de and .en, as written by `python main.py prepare_iwslt14 --download --out=DIR` or by fairseq's
prepare-iwslt14.sh: tokenised, lower-cased, with a joint 10k BPE, and 8,848 and 6,632 types including the special ones. If the model
shall translate raw lines, say in training how this text was prepared:

    --config.data.prepared=True --config.data.tokenize=True --config.data.lowercase=True --config.data.bpe_codes=DIR/code

The punctuation of new lines is then normalised (data.normalize). That of the corpus was not, but it has almost no typographic marks.

docs/paper-and-code.md says where the original code differs; --config.model.init_preset=reference follows it there. It also uses float16,
in which thousands of scores are equal, and it has no Xavier uniform that would give Fig. 5.
"""

from ml_collections import ConfigDict

from configs import common, paper
from configs.sweeps import chain, choice, product, vary

SIZES = ("small", "wide", "deep")
SEEDS = (1, 2, 3)  # the paper's number of seeds on IWSLT14
# Figure 4 uses random embeddings, because section 4 uses them wherever it does not say otherwise.
FIGURES = {
    "figure2": ("one_layer_small", "multi_layer_small", "dense_small"),
    "figure3": ("one_layer_small", "one_layer_small_pretrained", "one_layer_small_pretrained_frozen", "dense_small"),
    "figure4": ("one_layer_small", "one_layer_wide", "one_layer_deep", "dense_small"),
    "figure5": ("one_layer_small", "one_layer_small_xavier", "dense_small"),
}
# The wide row of Table 1 takes its embeddings from the dense model of that width in the same sweep.
WIDE = {"config": "one_layer_wide_pretrained", "model.embedding_path": "{sweep}/dense_wide"}
TABLE1 = chain(
    vary("config", "dense_wide"),
    product(
        chain(
            vary("config", "dense_small", "one_layer_small", "one_layer_small_pretrained"),
            [WIDE],
            vary("config", "one_layer_deep_pretrained"),
        ),
        vary("seed", *SEEDS),
    ),
)
SWEEPS = {name: paper.figure(vary("config", *models), SEEDS) for name, models in FIGURES.items()} | {"table1": TABLE1}


def get_config(arg: str = "one_layer_small") -> ConfigDict:
    """Returns the config. `arg` is weights, size and variants, for instance one_layer_wide_pretrained."""
    config = common.get_config()
    paper.set_model(config, "iwslt14", arg, SIZES)
    set_recipe(config)
    data, train = config.data, config.train
    data.source, data.source_language, data.target_language = "text", "de", "en"
    data.undo = "subword-nmt,moses"
    data.max_length = 1024  # fairseq's number of positions
    train.select, train.keep_last = "bleu", 5
    config.evaluation.valid_beam = 5
    return config


def set_recipe(config: ConfigDict) -> None:
    """Sets how the paper's code trains on a corpus of this size: dropout, batches, optimiser and epochs."""
    optim = config.optim
    config.model.dropout = 0.3
    config.data.max_tokens = 4096
    optim.lr, optim.schedule, optim.warmup = 5e-4, "inverse_sqrt", 4000
    optim.weight_decay, optim.clip, optim.label_smoothing = 1e-4, 0.5, 0.1
    config.train.epochs = 55


sweep = choice(SWEEPS, "iwslt14")

"""WMT14 English to German: the rows of paper A's Table 1 (arXiv 2109.03939) and its figures 2 and 3.

    python main.py --config=configs/wmt14.py:one_layer_base --config.data.directory=DIR --workdir=runs/one_layer_base
    python main.py --mode=evaluate --workdir=runs/one_layer_base --checkpoint=average:10

The argument is WEIGHTS_SIZE plus any variants, joined by _. WEIGHTS is dense, one_layer or multi_layer; SIZE is base, wider or deeper.

| argument | row of Table 1, or other place | published BLEU | Param (no mask) |
|---|---|---|---|
| dense_base | Trans-base, fully weighted | 27.51 | 86M |
| one_layer_base | section 4, random embeddings, keep 0.5 | 17.29 | |
| one_layer_base_pretrained | One-layer Random Trans_base | 20.35 | 25M |
| one_layer_wider_pretrained | One-layer Random Trans_wider | 25.24 | 57M |
| one_layer_deeper_pretrained | One-layer Random Trans_deeper | 21.76 | 25M |
| multi_layer_base | Fig. 2: about the same as one_layer_base at every keep | not given as a number | |

The scores are tokenised BLEU of one seed, with the average of the last 10 epochs, beam 5 and length penalty 1. The result.json of a run
has the scores of the best checkpoint instead; docs/sweeps.md has the command for the average, and a report then shows both. The paper does
not mention compound splitting, and its commands do not split compounds. The paper gives no training time; it used eight V100 with
8 x 4,096 tokens per update, which are 8 micro-batches here.

`pretrained` takes the embeddings of fairseq's public models, as the paper does (footnote 4). For base and deeper they come from the
checkpoint `pretrained/model.pt`, of width 512, with its dictionaries `pretrained/dict.en.txt` and `dict.de.txt`. For wider they come
from `pretrained/wider/model.pt`, of width 1024, with dictionaries of the same names in that folder. configs/iwslt14.py says how to take
them from elsewhere, and what `frozen` means. The text must use the BPE of the checkpoint, because rows are matched by token; the share of
tokens found is printed.

DIR holds train, valid and test .en and .de, tokenised and with a joint BPE, as written by
`python main.py prepare_wmt14 --download --out=DIR` or by fairseq's prepare-wmt14en2de.sh. The two languages share the dictionary,
but not the table: about 41,000 types and one table per side give every number of Table 1; one shared table would give 65M instead of
86M. If the model shall translate raw lines, say in training how this text was prepared:

    --config.data.prepared=True --config.data.tokenize=True --config.data.split_hyphens=True --config.data.bpe_codes=DIR/code

docs/paper-and-code.md says where the original code differs; --config.model.init_preset=reference follows it there. Its architecture called
`..._big` has width 1536, while the paper's wider has 1024.
"""

from ml_collections import ConfigDict

from configs import common, paper
from configs.sweeps import choice, product, vary

SIZES = ("base", "wider", "deeper")
SEEDS = (1,)
FIGURES = {
    "figure2": ("one_layer_base", "multi_layer_base", "dense_base"),
    "figure3": ("one_layer_base", "one_layer_base_pretrained", "one_layer_base_pretrained_frozen", "dense_base"),
}
ROWS = ("dense_base", "one_layer_base", *(f"one_layer_{size}_pretrained" for size in SIZES))
SWEEPS = {name: paper.figure(vary("config", *models), SEEDS) for name, models in FIGURES.items()}
SWEEPS["table1"] = product(vary("config", *ROWS), vary("seed", *SEEDS))


def get_config(arg: str = "one_layer_base") -> ConfigDict:
    """Returns the config. `arg` is weights, size and variants, for instance one_layer_wider_pretrained."""
    config = common.get_config()
    paper.set_model(config, "wmt14", arg, SIZES)
    model, data, optim, train = config.model, config.data, config.optim, config.train
    model.dropout, model.attention_dropout = 0.2, 0.1 if model.d_model == 1024 else 0.0
    data.source, data.source_language, data.target_language = "text", "en", "de"
    data.undo = "subword-nmt,moses"
    data.joined_vocabulary = True
    data.max_tokens, optim.accumulate = 8 * 4096, 8
    data.max_length = 1024  # fairseq's number of positions
    optim.lr, optim.schedule, optim.warmup, optim.warmup_init_lr = 1e-3, "inverse_sqrt", 4000, 1e-7
    optim.weight_decay, optim.clip, optim.label_smoothing = 0.0, 0.0, 0.1
    train.epochs, train.select, train.keep_last = 100, "nll", 10
    config.evaluation.valid_beam = 0
    return config


sweep = choice(SWEEPS, "wmt14")

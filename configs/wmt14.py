"""WMT14 English to German: the rows of paper A's Table 1 (arXiv 2109.03939) and its figures 2 and 3.

    python main.py --config=configs/wmt14.py:one_layer_base --config.data.directory=DIR --workdir=runs/one_layer_base
    python main.py --mode=evaluate --workdir=runs/one_layer_base --checkpoint=average:10

The argument is WEIGHTS_SIZE and any variants, joined by _: weights dense, one_layer or multi_layer; size base, wider or deeper.

| argument | row of Table 1, or where else | published BLEU | Param (no mask) |
|---|---|---|---|
| dense_base | Trans-base, fully weighted | 27.51 | 86M |
| one_layer_base | section 4, random embeddings, keep 0.5 | 17.29 | |
| one_layer_base_pretrained | One-layer Random Trans_base | 20.35 | 25M |
| one_layer_wider_pretrained | One-layer Random Trans_wider | 25.24 | 57M |
| one_layer_deeper_pretrained | One-layer Random Trans_deeper | 21.76 | 25M |
| multi_layer_base | Fig. 2: about as one_layer_base at every keep | none as a number | |

Scores are of one seed, of tokenised BLEU, the average of the last 10 epochs, beam 5, length penalty 1; the paper does not speak of
splitting compounds, and its commands do not. The paper gives no training time; it used eight V100, whose 8 x 4,096 tokens an update
are 8 micro-batches here.

`pretrained` takes the embeddings of fairseq's public models, as the paper does (footnote 4): those of the checkpoint
`pretrained/model.pt` with its dictionaries `pretrained/dict.en.txt` and `dict.de.txt` (torch reads it: requirements-torch.txt), of
width 512 for base and deeper and 1024 for wider. --config.model.embedding_path names another, with its dictionaries beside it; from a
dense run of this project

    --config.model.embedding_source=run --config.model.embedding_path=runs/dense_base

The tables are fixed, and masked like every other matrix: so the code has it, and so Table 1 counts. `frozen` takes the masks off
the embeddings. The text needs the BPE of the model, for rows are matched by token: the share that was found is printed.

DIR holds train, valid and test .en and .de, tokenised, in a joint BPE, as `python launch/prepare_wmt14.py --download --out=DIR` or
fairseq's prepare-wmt14en2de.sh leaves them. The dictionary is joined and the tables are not: about 41,000
types and a table of them for each side give every number of Table 1, one table for both would make 65M of the 86M. For a model that
translates raw lines, train with what was done to this text:

    --config.data.prepared=True --config.data.tokenize=True --config.data.split_hyphens=True --config.data.bpe_codes=DIR/code

What the original code does and this does not: q, k, v and the attention's output Xavier uniform whatever its --init says, no
widening by √(1/keep) of what is Kaiming uniform, a zero row at pad (all three with --config.model.init_preset=reference); loaded
embeddings widened by √(1/(1 - keep)); float16, in which thousands of scores tie; an architecture called `..._big` of width 1536,
where the paper's wider has 1024.
"""

from typing import Any

from ml_collections import ConfigDict

from configs import common, paper

SIZES = ("base", "wider", "deeper")
SEEDS = (1,)
FIGURES = {
    2: ("one_layer_base", "multi_layer_base", "dense_base"),
    3: ("one_layer_base", "one_layer_base_pretrained", "one_layer_base_pretrained_frozen", "dense_base"),
}


def get_config(arg: str = "one_layer_base") -> ConfigDict:
    """`arg`: weights, size and variants, for instance one_layer_wider_pretrained."""
    config = common.get_config()
    paper.set_model(config, "wmt14", arg, SIZES)
    model, data, optim, train = config.model, config.data, config.optim, config.train
    model.dropout, model.attention_dropout = 0.2, 0.1 if model.d_model == 1024 else 0.0
    data.source, data.source_language, data.target_language = "text", "en", "de"
    data.joined_vocabulary = True
    data.max_tokens, optim.accumulate = 8 * 4096, 8
    data.max_length = 1024  # fairseq's number of positions
    optim.lr, optim.schedule, optim.warmup, optim.warmup_init_lr = 1e-3, "inverse_sqrt", 4000, 1e-7
    optim.weight_decay, optim.clip, optim.label_smoothing = 0.0, 0.0, 0.1
    train.epochs, train.select, train.keep_last = 100, "nll", 10
    config.evaluation.valid_beam = 0
    return config


def sweep(figure: int = 2) -> list[dict[str, Any]]:
    """The runs of figure 2 (one layer or L) or 3 (embeddings), each against keep."""
    return paper.sweep("wmt14", get_config, FIGURES, figure, SEEDS)

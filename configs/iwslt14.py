"""IWSLT14 German to English: the rows of paper A's Table 1 (arXiv 2109.03939) and its figures 2 to 5.

    python main.py --config=configs/iwslt14.py:one_layer_small --config.data.directory=DIR --workdir=runs/one_layer_small

The argument is WEIGHTS_SIZE and any variants, joined by _: weights dense, one_layer or multi_layer; size small, wide or deep.

| argument | row of Table 1, or where else | published BLEU | Param (no mask) |
|---|---|---|---|
| dense_small | Trans_small, fully weighted | 34.66 ± 0.11 | 39M |
| one_layer_small | section 4, random embeddings, keep 0.5 | 29.45 | |
| one_layer_small_pretrained | One-layer Random Trans_small | 30.95 ± 0.12 | 7M |
| one_layer_wide_pretrained | One-layer Trans_wide | 34.14 ± 0.08 | 18M |
| one_layer_deep_pretrained | One-layer Random Trans_deep | 31.51 ± 0.10 | 7M |
| multi_layer_small | Fig. 2: about as one_layer_small at every keep | none as a number | |
| one_layer_small_xavier | Fig. 5: below Kaiming uniform, the more so the greater keep | none as a number | |

Scores are means of three seeds, of tokenised lower-cased BLEU (`bleu_tokenized`), best epoch by validation BLEU, beam 5, length
penalty 1. The paper gives no training time; it used one V100.

`pretrained` takes the embeddings of a trained dense model, as the paper does (footnote 4): small and deep those of fairseq's
checkpoint `pretrained/model.pt` with its dictionaries `pretrained/dict.de.txt` and `dict.en.txt` (torch reads it:
requirements-torch.txt), wide those of this project's dense run in `runs/dense_wide`. --config.model.embedding_path names another
checkpoint, with its dictionaries beside it, or another run; for small from a dense run of this project

    --config.model.embedding_source=run --config.model.embedding_path=runs/dense_small

and for text files (`python launch/dump_embeddings.py` writes some) --config.model.embedding_source=text likewise. The tables are
fixed, and masked like every other matrix: so the code has it, and so Table 1 counts. `frozen` takes the masks off the embeddings:
with `pretrained` those of the model stay as they are, the other reading of "fixed pre-trained".

DIR holds train, valid and test .de and .en, as `python launch/prepare_iwslt14.py --download --out=DIR` or fairseq's
prepare-iwslt14.sh leaves them: tokenised, lower-cased, joint 10k BPE, 8,848 and 6,632 types with the special ones. For a model
that translates raw lines, train with what was done to this text:

    --config.data.prepared=True --config.data.tokenize=True --config.data.lowercase=True --config.data.bpe_codes=DIR/code

Punctuation of new lines is normalised too (data.normalize), although this text's was not: it has next to no typographic marks.

What the original code does and this does not: q, k, v and the attention's output Xavier uniform whatever its --init says, no
widening by √(1/keep) of what is Kaiming uniform, a zero row at pad (all three with --config.model.init_preset=reference); loaded
embeddings widened by √(1/(1 - keep)); float16, in which thousands of scores tie. It has no Xavier uniform for what Fig. 5 shows.
"""

from typing import Any

from ml_collections import ConfigDict

from configs import common, paper

SIZES = ("small", "wide", "deep")
SEEDS = (1, 2, 3)  # the paper's number of seeds on IWSLT14
FIGURES = {
    2: ("one_layer_small", "multi_layer_small", "dense_small"),
    3: ("one_layer_small", "one_layer_small_pretrained", "one_layer_small_pretrained_frozen", "dense_small"),
    4: ("one_layer_small", "one_layer_wide", "one_layer_deep", "dense_small"),
    5: ("one_layer_small", "one_layer_small_xavier", "dense_small"),
}


def get_config(arg: str = "one_layer_small") -> ConfigDict:
    """`arg`: weights, size and variants, for instance one_layer_wide_pretrained."""
    config = common.get_config()
    paper.set_model(config, "iwslt14", arg, SIZES)
    model, data, optim, train = config.model, config.data, config.optim, config.train
    model.dropout = 0.3
    data.source, data.source_language, data.target_language = "text", "de", "en"
    data.max_tokens = 4096
    data.max_length = 1024  # fairseq's number of positions
    optim.lr, optim.schedule, optim.warmup = 5e-4, "inverse_sqrt", 4000
    optim.weight_decay, optim.clip, optim.label_smoothing = 1e-4, 0.5, 0.1
    train.epochs, train.select, train.keep_last = 55, "bleu", 5
    config.evaluation.valid_beam = 5
    return config


def sweep(figure: int = 2) -> list[dict[str, Any]]:
    """The runs of figure 2 (one layer or L), 3 (embeddings), 4 (width and depth) or 5 (initialisation), each against keep.

    Figure 4 is of random embeddings, like all that section 4 does not say otherwise of.
    """
    return paper.sweep("iwslt14", get_config, FIGURES, figure, SEEDS)

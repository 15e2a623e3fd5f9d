"""Quora Question Pairs: do two questions ask the same? Paper A's Figure 6 (arXiv 2109.03939).

    python main.py --config=configs/qqp.py:one_layer_base --workdir=runs/qqp_one_layer_base

The argument is WEIGHTS_SIZE. WEIGHTS is dense, one_layer or multi_layer; SIZE is base or large (RoBERTa's sizes), or cpu. The figure
has no numbers. The paper's text says that the best one-layer model has keep 0.7 and 79 % of the dense base's accuracy, and 84 % with
the large width.

base and large need RoBERTa's model.safetensors, vocab.json and merges.txt in pretrained/roberta-base or -large, or in the places that
--config.model.embedding_path, --config.data.vocabulary and --config.data.bpe_codes name. RoBERTa's word and position embeddings stay
fixed: this is the paper's "pre-trained embedding layer of RoBERTa_base/large". The words have masks, as in the paper's code. A dense
model is an encoder that is trained from scratch on the same fixed embeddings, not a fine-tuned RoBERTa. Dense models use the learning
rate and the epochs of RoBERTa's fine-tuning. The paper gives none for masked models; their rate of 5e-4 is untested.

The text comes from TFDS (`tfds build glue/qqp --file_format=array_record`), or from files with labels and texts:

    --config.data.source=labelled --config.data.tfds_name= --config.data.directory=DIR
    --config.data.train=train.tsv --config.data.valid=dev.tsv --config.data.tests='("dev.tsv",)'

cpu uses random tables and learns its own subwords; two cores train it in minutes.

dense_roberta_base and dense_roberta_large fine-tune a whole RoBERTa, and multi_layer_roberta_base and _large train masks over its weights;
docs/importing.md says how. Nobody has trained these four to their end here.
"""

from ml_collections import ConfigDict

from configs import classification
from configs.sweeps import choice

EPOCHS = 10
SWEEPS = {"figure6": classification.FIGURE}


def get_config(arg: str = "one_layer_base") -> ConfigDict:
    """Returns the config. `arg` is weights and size, for instance dense_large."""
    return classification.get_config("qqp", arg, EPOCHS)


sweep = choice(SWEEPS, "qqp")

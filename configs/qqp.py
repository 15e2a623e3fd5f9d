"""Quora Question Pairs, whether two questions ask the same: paper A's Figure 6 (arXiv 2109.03939).

    python main.py --config=configs/qqp.py:one_layer_base --workdir=runs/qqp_one_layer_base

The argument is WEIGHTS_SIZE: weights dense, one_layer or multi_layer; size base or large (RoBERTa's), or cpu. The figure has no numbers;
the text gives the best one-layer model at keep 0.7, with 79 % of the dense base's accuracy, and 84 % with the large width.

base and large need RoBERTa's model.safetensors, vocab.json and merges.txt in pretrained/roberta-base or -large (or where
--config.model.embedding_path, --config.data.vocabulary and --config.data.bpe_codes say): its word and position embeddings are fixed, the
paper's "pre-trained embedding layer of RoBERTa_base/large". Dense is an encoder trained from nothing over the same fixed embeddings, not
a fine-tuned RoBERTa. Rates and epochs of dense models are RoBERTa's fine-tuning; the paper gives none for masks, and 5e-4 is untried.

The text comes from TFDS (`tfds build glue/qqp --file_format=array_record`), or from files with labels and texts:

    --config.data.source=labelled --config.data.tfds_name= --config.data.directory=DIR
    --config.data.train=train.tsv --config.data.valid=dev.tsv --config.data.tests='("dev.tsv",)'

cpu has random tables and subwords of its own: what two cores train in minutes.
"""

from typing import Any

from ml_collections import ConfigDict

from configs import classification

EPOCHS = 10


def get_config(arg: str = "one_layer_base") -> ConfigDict:
    """`arg`: weights and size, for instance dense_large."""
    return classification.get_config("qqp", arg, EPOCHS)


def sweep() -> list[dict[str, Any]]:
    """The runs of Figure 6."""
    return classification.sweep("qqp", EPOCHS)

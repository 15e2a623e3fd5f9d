"""The Stanford Sentiment Treebank, whether a phrase of a film review is positive: the smallest task here that a CPU learns.

    python main.py --config=configs/sst2.py:one_layer_cpu --workdir=runs/sst2

All is as in configs/qqp.py, with TFDS's glue/sst2. The paper has no such figure.
"""

from ml_collections import ConfigDict

from configs import classification

EPOCHS = 4


def get_config(arg: str = "one_layer_cpu") -> ConfigDict:
    """`arg`: weights and size, for instance dense_cpu."""
    return classification.get_config("sst2", arg, EPOCHS)

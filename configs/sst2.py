"""The Stanford Sentiment Treebank: is a phrase of a film review positive? The smallest classification task here that a CPU can train.

    python main.py --config=configs/sst2.py:one_layer_cpu --workdir=runs/sst2

Everything is as in configs/qqp.py, but with TFDS's glue/sst2, and for 4 epochs in the place of 10. The paper has no figure for it.
"""

from ml_collections import ConfigDict

from configs import classification

EPOCHS = 4


def get_config(arg: str = "one_layer_cpu") -> ConfigDict:
    """Returns the config. `arg` is weights and size, for instance dense_cpu."""
    return classification.get_config("sst2", arg, EPOCHS)

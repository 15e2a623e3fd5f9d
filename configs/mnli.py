"""MultiNLI: does a premise entail or contradict a hypothesis, or neither? Paper A's Figure 7 (arXiv 2109.03939).

    python main.py --config=configs/mnli.py:one_layer_base --workdir=runs/mnli_one_layer_base

Everything is as in configs/qqp.py, but with TFDS's glue/mnli. Its matched part is the validation set (MNLI-m, as in the paper). The
paper's text says that the best one-layer model has keep 0.7 and 91 % of the dense base's accuracy, and 92 % with the large width.
"""

from ml_collections import ConfigDict

from configs import classification
from configs.sweeps import choice

EPOCHS = 10
SWEEPS = {"figure7": classification.FIGURE}


def get_config(arg: str = "one_layer_base") -> ConfigDict:
    """Returns the config. `arg` is weights and size, for instance dense_large."""
    config = classification.get_config("mnli", arg, EPOCHS)
    config.data.valid, config.data.tests = "validation_matched", ("validation_matched",)
    return config


sweep = choice(SWEEPS, "mnli")

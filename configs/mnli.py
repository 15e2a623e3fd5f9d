"""MultiNLI, whether a premise entails, contradicts or leaves open a hypothesis: paper A's Figure 7 (arXiv 2109.03939).

    python main.py --config=configs/mnli.py:one_layer_base --workdir=runs/mnli_one_layer_base

All is as in configs/qqp.py, with TFDS's glue/mnli, whose matched part is the validation set (MNLI-m, as in the paper). The text
gives the best one-layer model at keep 0.7, with 91 % of the dense base's accuracy, and 92 % with the large width.
"""

from typing import Any

from ml_collections import ConfigDict

from configs import classification

EPOCHS = 10


def get_config(arg: str = "one_layer_base") -> ConfigDict:
    """`arg`: weights and size, for instance dense_large."""
    config = classification.get_config("mnli", arg, EPOCHS)
    config.data.valid, config.data.tests = "validation_matched", ("validation_matched",)
    return config


def sweep() -> list[dict[str, Any]]:
    """The runs of Figure 7."""
    return classification.sweep("mnli", EPOCHS)

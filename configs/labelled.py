"""Classification of your own texts, with labels of your own.

    python main.py --config=configs/labelled.py:one_layer_cpu --workdir=runs/mine --config.data.directory=DIR \
        --config.data.train=train.csv --config.data.valid=dev.csv --config.data.tests='("test.csv",)' \
        --config.data.columns=text,label

The files are tab-separated, CSV or JSON lines. `data.columns` gives one text or two, and then the label: names of the header or of the
keys, or numbers if a file has no header. If all lines are in one file, leave out valid and tests and give --config.data.held_out=0.05.

The labels are those of the training text. --config.data.labels=entails,neutral lists them instead, so that any other label is an
error, and --config.data.labels=0:neutral,1:entails gives names to numbers.

A run ends after 2,000 updates, or after 40 epochs if they are fewer. The argument is WEIGHTS_SIZE, with the sizes of configs/qqp.py:
cpu, base or large. As many tokens of a text are read as 95 of 100 training
texts have, but at most 512 (data.max_length). The text may be in any language: its pieces hold their spaces (data.bpe_kind=metaspace; those
of RoBERTa with base and large).
"""

from ml_collections import ConfigDict

from configs import classification, text

# Whichever comes first: a small set needs many epochs to learn more than its most frequent label.
EPOCHS, UPDATES = 40, 2000


def get_config(arg: str = "one_layer_cpu") -> ConfigDict:
    """Returns the config. `arg` is weights and size, for instance dense_cpu."""
    config = classification.get_config("labelled", arg, EPOCHS)
    data, lr, schedule = config.data, config.optim.lr, config.optim.schedule
    data.source, data.tfds_name, data.labels = "labelled", "", "from_train"
    data.train, data.valid, data.tests = "train", "valid", ("test",)
    if data.tokenize:
        data.tokenize, data.bpe_kind = False, "metaspace"
    config.train.updates = UPDATES
    data.max_length = 0  # by the text
    text.leave_open(config)
    config.optim.lr, config.optim.schedule = lr, schedule  # measured for classifiers, or those of RoBERTa's fine-tuning
    return config

"""The toy language: trains from scratch to a BLEU score in under three minutes on two CPU cores.

python main.py --config=configs/toy.py --workdir=runs/toy
python main.py --config=configs/toy.py:dense --workdir=runs/toy-dense
"""

from ml_collections import ConfigDict

from configs import common

ARGUMENTS = ("one_layer", "multi_layer", "dense")


def get_config(arg: str = "one_layer") -> ConfigDict:
    """Returns the config. `arg` is the kind of weights: one_layer (default), multi_layer or dense."""
    if arg not in ARGUMENTS:
        raise ValueError(f"configs/toy.py:{arg} is unknown; give one of {', '.join(ARGUMENTS)}")
    config = common.get_config()
    model = config.model
    model.weights = arg
    model.d_model, model.ffn, model.heads = 128, 256, 4
    model.encoder_layers = model.decoder_layers = 2
    model.dropout = 0.1 if arg == "dense" else 0.0
    # The best scheme measured under masks: 93.1 to 93.7 BLEU here, while kaiming_uniform has 90.3 (at its best rate, 4e-3).
    model.init_scheme = "signed_constant"
    config.data.max_tokens = 2048 if arg == "dense" else 1024
    config.data.buckets = 3
    config.optim.lr = 2e-3
    config.optim.warmup = 200
    config.optim.schedule = "cosine"
    config.train.epochs = 6
    config.evaluation.buckets = 2
    config.evaluation.valid_beam = 0
    config.train.select = "nll"
    return config

"""Shared parts of `qqp`, `mnli`, `sst2` and `labelled`: encoder sizes, embeddings and arguments (paper A, arXiv 2109.03939, section 4)."""

from ml_collections import ConfigDict

from configs import common, paper
from configs.sweeps import vary

# name: (d_model, ffn, heads, layers). `base` and `large` are RoBERTa's (Liu et al. 2019, arXiv 1907.11692, section 3.1 and appendix A);
# `cpu` is small enough to train on a CPU.
ENCODERS = {"base": (768, 3072, 12, 12), "large": (1024, 4096, 16, 24), "cpu": (128, 256, 4, 3)}
# The same shapes, but the whole encoder comes from an imported RoBERTa (main.py import_roberta).
WHOLE = {f"roberta_{size}": ENCODERS[size] for size in ("base", "large")}
# A task's figure: the one-layer models of both sizes at every keep, and the dense encoder.
FIGURE = paper.figure(vary("config", "one_layer_base", "one_layer_large", "dense_base"), seeds=(1,))


def get_config(task: str, arg: str, epochs: int) -> ConfigDict:
    """Returns the config of `task`. `arg` is WEIGHTS_SIZE, for instance one_layer_base.

    Raises: ValueError that lists the known arguments, for any other `arg`.
    """
    # Each layer of RoBERTa has weights of its own.
    known = ENCODERS if arg.startswith("one_layer") else ENCODERS | WHOLE
    weights, size = paper.weights_and_size(task, arg, known)
    config = common.get_config()
    config.task = "classification"
    model, data, optim, train = config.model, config.data, config.optim, config.train
    model.weights = weights
    model.d_model, model.ffn, model.heads, model.encoder_layers = known[size]
    model.decoder_layers = 0
    data.source, data.tfds_name, data.labels, data.source_language = "tfds", f"glue/{task}", task, "en"
    data.train, data.valid, data.tests = "train", "validation", ("validation",)
    train.epochs, train.select = epochs, "accuracy"
    optim.label_smoothing = 0.0
    if size == "cpu":
        _from_nothing(config)
    elif size in WHOLE:
        _whole_roberta(config, f"roberta-{size.removeprefix('roberta_')}")
    else:
        _roberta(config, f"pretrained/roberta-{size}")
    return config


def _from_nothing(config: ConfigDict) -> None:
    """Sets random tables, and subwords that are learned on the training text."""
    model, data, optim = config.model, config.data, config.optim
    model.dropout = 0.1
    data.tokenize = data.lowercase = True
    data.bpe_merges, data.max_length, data.max_tokens = 8000, 64, 2048
    optim.lr, optim.warmup, optim.schedule = 1e-3, 200, "cosine"
    if model.weights != "dense":
        common.set_random_weights(model)


def _roberta(config: ConfigDict, folder: str) -> None:
    """Sets RoBERTa's fixed word and position embeddings, its byte-level BPE and its fine-tuning (Liu et al. 2019, table 10).

    The word embeddings are masked like every other matrix, as in the paper's code. A dense model has these fixed tables too. The warm-up
    is a twentieth of the updates, close to the table's 6 %; a batch has 4,096 tokens, where the table has 16 or 32 texts.
    """
    model, data, optim = config.model, config.data, config.optim
    model.embedding = "frozen" if model.weights == "dense" else "masked"
    model.embedding_source, model.embedding_path = "roberta", folder
    model.positions, model.embedding_norm, model.activation = "frozen", True, "gelu"
    model.dropout = model.attention_dropout = 0.1
    data.bpe_kind, data.bpe_codes, data.vocabulary = "byte-level", f"{folder}/merges.txt", f"{folder}/vocab.json"
    data.max_length, data.max_tokens = 512, 4096
    optim.schedule, optim.warmup, optim.eps, optim.weight_decay = "linear", None, 1e-6, 0.1
    optim.lr = 1e-5 if model.weights == "dense" else 5e-4


def _whole_roberta(config: ConfigDict, name: str) -> None:
    """Sets the fine-tuning of an imported RoBERTa, with dropout in the head too. multi_layer trains masks over its weights."""
    _roberta(config, f"pretrained/{name}")
    model = config.model
    model.embedding, model.embedding_source, model.embedding_path = None, "text", ""
    model.positions, model.head_dropout, model.norm, model.bias = "learned", 0.1, "affine", True
    config.data.vocabulary, config.train.init_from = "", f"runs/{name}"

"""RoBERTa's `config.json`, as Hugging Face writes it: the shape of the model, its dropout, its head and its labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from one_layer.data.special_tokens import BOS, EOS, PAD
from one_layer.importers.config_json import ACTIVATIONS, ConfigJson
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError

_TASKS = {
    "RobertaForMaskedLM": "masked_lm",
    "RobertaModel": "masked_lm",
    "RobertaForSequenceClassification": "classification",
}
_ARCHITECTURES = {"masked_lm": "RobertaForMaskedLM", "classifier": "RobertaForSequenceClassification"}
_SIZES = {
    "d_model": "hidden_size",
    "ffn": "intermediate_size",
    "heads": "num_attention_heads",
    "encoder_layers": "num_hidden_layers",
}
# Values that the encoder here always has, and files without them mean.
_ALWAYS: dict[str, Any] = {
    "bos_token_id": BOS,
    "pad_token_id": PAD,
    "eos_token_id": EOS,
    "is_decoder": False,
    "add_cross_attention": False,
    "position_embedding_type": "absolute",
    "tie_word_embeddings": True,
}


class Options(NamedTuple):
    """The task of the head, the size of the vocabulary, a classifier's labels (empty if they have no names), and keys of `model`.

    `model` says what the network is, and `dropout` has the rates, which training may change.
    """

    task: str
    model: dict[str, Any]
    dropout: dict[str, float]
    vocabulary: int
    labels: tuple[str, ...]


def read_options(path: Path) -> Options:
    """Reads a config.json. Raises: UserError of one sentence for a file that is missing, damaged or of another architecture."""
    options = ConfigJson(path)
    kinds = options.get("architectures") or ["RobertaModel"]
    kind = str(kinds[0]) if isinstance(kinds, list) else str(kinds)
    if options.get("model_type") != "roberta" or kind not in _TASKS:
        raise UserError(
            f"{path} describes a model of the type {options.get('model_type')!r:.60}, with the architecture {kind:.100}; known is the "
            f"type 'roberta', with {', '.join(_TASKS)}"
        )
    options.refuse_others("RoBERTa", _ALWAYS)
    task = _TASKS[kind]
    model: dict[str, Any] = {key: options.whole(name) for key, name in _SIZES.items()}
    model |= {"max_positions": options.whole("max_position_embeddings") - PAD - 1, "decoder_layers": 0}
    model |= {"activation": options.activation("hidden_act", "gelu")}
    model |= {"norm_epsilon": options.positive("layer_norm_eps", 1e-12)}
    model |= {"positions": "learned", "embedding_norm": True, "norm": "affine", "bias": True}
    hidden = options.get("hidden_dropout_prob", 0.1)
    dropout = {"dropout": hidden, "attention_dropout": options.get("attention_probs_dropout_prob", 0.1)}
    if task == "classification":
        given = options.get("classifier_dropout")
        dropout["head_dropout"] = hidden if given is None else given
    return Options(task, model, dropout, options.whole("vocab_size"), _labels(options, task))


def write_options(config: ModelConfig, labels: tuple[str, ...] = ()) -> dict[str, Any]:
    """The content of config.json for a model that `one_layer.importers.roberta_weights.export` writes. `labels`: those of a classifier."""
    options: dict[str, Any] = {
        "architectures": [_ARCHITECTURES[str(config.family)]],
        "model_type": "roberta",
        **{name: getattr(config, key) for key, name in _SIZES.items()},
        "num_hidden_layers": config.depth("encoder"),
        "max_position_embeddings": config.position_rows,
        "vocab_size": config.source_vocab,
        "type_vocab_size": 1,
        "hidden_act": ACTIVATIONS[config.activation],
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "layer_norm_eps": config.norm_epsilon,
        "bos_token_id": BOS,
        "pad_token_id": PAD,
        "eos_token_id": EOS,
        "tie_word_embeddings": True,
    }
    if config.family == "classifier":
        options["classifier_dropout"] = config.head_dropout
        options["id2label"] = {str(number): label for number, label in enumerate(labels)}
        options["label2id"] = {label: number for number, label in enumerate(labels)}
    return options


def _labels(options: ConfigJson, task: str) -> tuple[str, ...]:
    if task != "classification":
        return ()
    if (problem := options.get("problem_type")) not in (None, "single_label_classification"):
        raise UserError(
            f"{options.path}: problem_type is {problem!r:.60}, but a classifier here gives each text exactly one label"
        )
    named = options.get("id2label") or {}
    if not isinstance(named, dict) or set(named) != {str(number) for number in range(len(named))}:
        raise UserError(
            f"{options.path}: id2label must have a name for each of the numbers from 0, such as {{'0': 'no', '1': 'yes'}}"
        )
    return tuple(str(named[str(number)]) for number in range(len(named)))

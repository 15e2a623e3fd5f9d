"""RoBERTa in Hugging Face's format: its `config.json`, and its parameters as those of the encoder here, and back.

Hugging Face stores a matrix as [fan_out, fan_in]; both store a table as [rows, d]. Every token has a position and a type, whose vectors
are added. The texts here have one type, so reading adds the vector of type 0 to all positions, and writing gives it zeros.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from one_layer.data.special_tokens import BOS, EOS, PAD
from one_layer.importers import parameters
from one_layer.importers.config_json import ACTIVATIONS, SIZES, ConfigJson
from one_layer.importers.parameters import Entry, Named, Path, StateDict, Variables
from one_layer.layers.trees import flatten_dict, variables_of
from one_layer.models import ModelConfig, initialize, shapes
from one_layer.models.families import label_count
from one_layer.system.errors import UserError

_TASKS = {
    "RobertaForMaskedLM": "masked_lm",
    "RobertaModel": "masked_lm",
    "RobertaForSequenceClassification": "classification",
}
_ARCHITECTURES = {"masked_lm": "RobertaForMaskedLM", "classifier": "RobertaForSequenceClassification"}
_SIZES = {**SIZES, "encoder_layers": "num_hidden_layers"}
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

_PREFIX = "roberta."  # of models with a head
_EMBEDDINGS: dict[str, Path] = {
    "word_embeddings": ("source_embedding",),
    "position_embeddings": ("position_embedding",),
    "LayerNorm": ("embedding_norm", "layer_norm"),
}
_LAYER: dict[str, Path] = {
    "attention.self.query": ("self_attention", "query"),
    "attention.self.key": ("self_attention", "key"),
    "attention.self.value": ("self_attention", "value"),
    "attention.output.dense": ("self_attention", "output"),
    "attention.output.LayerNorm": ("self_attention_norm", "layer_norm"),
    "intermediate.dense": ("ffn_in",),
    "output.dense": ("ffn_out",),
    "output.LayerNorm": ("ffn_norm", "layer_norm"),
}
_HEADS: dict[str, dict[str, Path]] = {
    "classifier": {"classifier.dense": ("head_dense",), "classifier.out_proj": ("head_output",)},
    "masked_lm": {"lm_head.dense": ("head_dense",), "lm_head.layer_norm": ("head_dense_norm", "layer_norm")},
}
_TYPES = "embeddings.token_type_embeddings.weight"
# Copies of other tensors, by the name of the tensor that they copy.
_TIED = {"lm_head.decoder.weight": "embeddings.word_embeddings.weight", "lm_head.decoder.bias": "lm_head.bias"}
# What no model here has: numbers that are no parameters, and a layer that neither head uses.
_UNUSED = ("embeddings.position_ids", "embeddings.token_type_ids", "pooler.dense.weight", "pooler.dense.bias")


class Options(NamedTuple):
    """The task of the head, the size of the vocabulary, a classifier's labels (empty if they have no names), and keys of `model`.

    `model` says what the network is, and `dropout` has the rates, which training may change.
    """

    task: str
    model: dict[str, Any]
    dropout: dict[str, float]
    vocabulary: int
    labels: tuple[str, ...]


def read_options(options: ConfigJson) -> Options:
    """The options of a config.json. Raises: UserError of one sentence for a model of another architecture."""
    kinds = options.get("architectures") or ["RobertaModel"]
    kind = str(kinds[0]) if isinstance(kinds, list) else str(kinds)
    if options.get("model_type") != "roberta" or kind not in _TASKS:
        raise UserError(
            f"{options.path} describes a model of the type {options.get('model_type')!r:.60}, with the architecture {kind:.100}; known is "
            f"the type 'roberta', with {', '.join(_TASKS)}"
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
    """The content of config.json for a model that `export` writes. `labels`: those of a classifier."""
    options: dict[str, Any] = {
        "architectures": [_ARCHITECTURES[str(config.family)]],
        "model_type": "roberta",
        **{name: getattr(config, key) for key, name in SIZES.items()},
        "num_hidden_layers": config.depth("encoder"),
        "max_position_embeddings": config.position_rows,
        "vocab_size": config.source_vocab,
        "type_vocab_size": 1,
        "hidden_act": ACTIVATIONS[config.activation],
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "layer_norm_eps": config.norm_epsilon,
        **_ALWAYS,
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
    names = [named.get(str(number)) for number in range(len(named))] if isinstance(named, dict) else [None]
    if not all(isinstance(name, str | int) for name in names):
        raise options.wrong("id2label", named, "a name for each number from 0 on, such as {'0': 'no', '1': 'yes'}")
    return tuple(map(str, names))


def convert(state: StateDict, config: ModelConfig, seed: int) -> tuple[Variables, list[str]]:
    """The variables of `config`, float32 NumPy arrays, and lines for people about what was left out or is new.

    Scores are new, and so is a head that the file lacks; `seed` gives them. Half precision is converted exactly.

    Raises: UserError for a model that RoBERTa's parameters cannot become, and one that names every parameter that is unknown, missing or
    of the wrong shape.
    """
    _check(config)
    if config.weights == "one_layer" or config.share_norm_scale:
        raise UserError(
            f"model.weights is {config.weights!r} and model.share_norm_scale is {config.share_norm_scale}, but each layer of RoBERTa has "
            "parameters of its own; give model.weights=dense, or multi_layer for masks over RoBERTa's weights, and leave out the other"
        )
    if config.shares_trained:  # masks are drawn, and may be shared
        parameters.refuse_shared(config)
    state, report = _plain(state)
    wanted = list(entries(config))
    head = [each for each in wanted if each.path[0].startswith("head_")]
    if not any(each.name in state for each in head):
        wanted = [each for each in wanted if each not in head]
        report.append("the head is new: the file has none")
    parameters.check_folder(state, {each.name: each.shape for each in wanted})
    found, known = parameters.read(state, wanted), shapes(config)
    drawn = {} if all(path[1:] in found for path in known) else flatten_dict(initialize(config, seed))
    arrays = {path: found[path[1:]] if path[1:] in found else np.asarray(drawn[path]) for path in known}
    assert {path: array.shape for path, array in arrays.items()} == known
    return variables_of(arrays), report


def export(variables: Variables, config: ModelConfig) -> Named:
    """The float32 state dict of Hugging Face's model with the same function: the inverse of `convert` for a dense model.

    Masked matrices are written as W ⊙ M, once for each layer. Where a layer has no bias or no scale of a norm, zeros or ones are written.
    Raises: UserError for a model that RoBERTa's encoder cannot compute.
    """
    _check(config)
    state = parameters.written(parameters.by_path(parameters.exact(config, variables)), entries(config))
    state[_TYPES] = np.zeros((1, config.d_model), np.float32)
    headed = ("classifier.", "lm_head.")
    return {name if name.startswith(headed) else _PREFIX + name: array for name, array in state.items()}


def entries(config: ModelConfig) -> Iterator[Entry]:
    """All parameters of RoBERTa's encoder and of the head, without those that copy others."""
    d, ffn = config.d_model, config.ffn
    sizes = {"word_embeddings": config.source_vocab, "position_embeddings": config.position_rows}
    for name, module in _EMBEDDINGS.items():
        yield from parameters.of_module(f"embeddings.{name}", module, (sizes.get(name, d), d))
    for number, group, place in parameters.places(config, "encoder"):
        for name, inner in _LAYER.items():
            fan_in, fan_out = (ffn if inner == ("ffn_out",) else d), (ffn if inner == ("ffn_in",) else d)
            yield from parameters.of_module(
                f"encoder.layer.{number}.{name}", (*group, *inner), (fan_out, fan_in), place
            )
    for name, module in _HEADS[str(config.family)].items():
        yield from parameters.of_module(name, module, (label_count(config) if name.endswith("out_proj") else d, d))
    if config.family == "masked_lm":
        yield Entry("lm_head.bias", (config.source_vocab,), ("head_output", "bias"))


def _plain(given: StateDict) -> tuple[dict[str, np.ndarray], list[str]]:
    """The parameters without prefix, copies, types and unused parts; and lines about what was left out. Raises: UserError as `convert`."""
    state = {name.removeprefix(_PREFIX): array for name, array in given.items()}
    unused = [name for name in _UNUSED if state.pop(name, None) is not None and name.startswith("pooler")]
    for copy, first in _TIED.items():
        if copy in state and not np.array_equal(state.setdefault(first, state[copy]), state.pop(copy)):
            raise UserError(
                f"{copy} is not the same as {first}, but the output projection of this program's masked language models is their embedding"
            )
    types, positions = state.get(_TYPES), "embeddings.position_embeddings.weight"
    report = [f"left out: {', '.join(unused)}, which no head uses"] if unused else []
    rows = state.get(positions)
    if types is not None and rows is not None and len(types.shape) == 2 and types.shape[1:] == rows.shape[1:]:
        del state[_TYPES]
        state[positions] = np.asarray(rows, np.float32) + np.asarray(types[:1], np.float32).sum(axis=0)
        if len(types) > 1:
            report.append(f"left out: {len(types) - 1} of {len(types)} types of tokens; all tokens have type 0")
    return state, report


def _check(config: ModelConfig) -> None:
    """Raises: UserError for a model that differs from RoBERTa's encoder in more than its weights."""
    needed: dict[str, tuple[Any, ...]] = {
        "family": tuple(_HEADS),
        "positions": ("learned", "frozen"),
        "embedding_norm": (True,),
        "norm": ("affine", "plain", "frozen"),
        "norm_position": ("post",),
        "block": ("paper",),
    }
    if "R" in config.stack("encoder").pattern:
        needed["reservoir"] = ("transformer",)
    parameters.check_fields(config, needed, "a model in RoBERTa's format")

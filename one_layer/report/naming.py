"""Names of models for people: what a figure compares, and the words for it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from one_layer.layers.freezing import STACKS, Freezing, words
from one_layer.layers.pattern import expand
from one_layer.runs.sources import WORDS

Config = dict[str, Any]
# The measures of test sets, for people; of those that a test set has, the first one is shown.
MEASURES = {
    "bleu_tokenized": "tokenised BLEU",
    "bleu_sacre": "sacreBLEU",
    "accuracy": "accuracy",
    "matthews": "Matthews' correlation",
    "nll": "nll",
}
IMPORTED = "imported"  # a mark beside the keys of a config: another program trained the model


def letters(config: Config) -> set[str]:
    """The kinds of layers that a model has (`one_layer.layers.pattern`): L, S and R."""
    return set("".join(_strings(config, "L" if config.get("model.weights") == "dense" else "S")))


def _strings(config: Config, main: str) -> list[str]:
    """The letters of the layers of encoder and decoder. A number of layers stands for the letter `main`."""
    return [expand(f"{stack}_layers", config.get(f"model.{stack}_layers") or 0, main) for stack in STACKS]


def has_reservoirs(config: Config) -> bool:
    """Whether some layers of a model are reservoirs."""
    return "R" in letters(config)


def fully_weighted(config: Config) -> bool:
    """Whether all weights of a model are trained: it has neither masks nor reservoirs."""
    return config.get("model.weights") == "dense" and not has_reservoirs(config)


def weights(config: Config) -> str:
    """Which weights a model has."""
    if fully_weighted(config):
        return "fully weighted" + ", one layer shared" * (config.get("model.sharing") == "weights")
    known, kinds = str(config.get("model.weights", "")), letters(config)
    main = {"dense": "trained layers", "one_layer": "one layer", "multi_layer": "L layers"}.get(known, known)
    name = f"hybrid of {main} and trained layers" if known != "dense" and "L" in kinds else main
    name += " with reservoirs" * ("R" in kinds)
    return ", ".join(part for part in (name, _untrained_masks(config)) if part)


def _untrained_masks(config: Config) -> str:
    """Which masks of a model are not trained: such a model is a control. A run that begins with another one may have masks of that one."""
    if config.get("model.weights") == "dense":
        return ""
    only, names = (str(config.get(f"optim.{key}") or "") for key in ("train_only", "freeze"))
    # With the rate 0 nothing is trained. Runs of version 0.2 say it for masks alone.
    untrained = config.get("optim.lr") == 0 or config.get("optim.freeze_scores")
    freezing = Freezing(only, f"{names},masks" if untrained else names)
    trained = [freezing.trains(mask) for mask in _masks(config)]
    kind = "frozen masks" if config.get("train.init_from") else "random masks"
    return "" if all(trained) else f"some {kind}" if any(trained) else kind


def _masks(config: Config) -> list[frozenset[str]]:
    """The words of each mask (`one_layer.layers.freezing`)."""
    found = [words(("embedding", "scores"))] * (config.get("model.embedding") in (None, "masked"))
    for stack, string in zip(STACKS, _strings(config, "S"), strict=True):
        numbers = [number for number, letter in enumerate(string, 1) if letter == "S"]
        found += [words((stack, part, "scores"), number) for number in numbers for part in ("attention", "ffn")]
    return found


def embeddings(config: Config) -> str:
    """Which embeddings a model has."""
    kind = config.get("model.embedding") or ("trained" if config.get("model.weights") == "dense" else "masked")
    source = "pre-trained" if config.get("model.embedding_path") else "random"
    if kind == "frozen" and (config.get("train.init_from") or config.get(IMPORTED)):
        source = source.replace("random", "taken over")  # they are the other model's, whatever those are
    return "trained" if kind == "trained" else f"{source}, {kind}"


def depths(config: Config) -> tuple[int, int]:
    """How many layers the encoder and the decoder have, whether config says it by numbers or by layer strings; 2 and LL are the same."""
    encoder, decoder = map(len, _strings(config, "L"))
    return encoder, decoder


def shape(config: Config) -> str:
    """Width and depth, and the kind of the reservoirs if there are some."""
    sizes = [config.get(f"model.{name}") for name in ("d_model", "ffn", "encoder_layers", "decoder_layers")]
    layers = f"{sizes[2]}+{sizes[3]}" if sizes[3] else f"{sizes[2]}"
    kind = f" ({config.get('model.reservoir')} reservoirs)" if "R" in layers else ""
    return f"d {sizes[0]}, ffn {sizes[1]}, {layers} layers{kind}"


def training(config: Config) -> str:
    """What paper B does in training, backskipping and LayerDrop, and the runs that it begins with or learns from; empty without them."""
    skip, drop = config.get("train.backskip", "off"), config.get("model.layerdrop", 0.0)
    begun = [f"{WORDS[key]} {config[key]}" for key in ("train.init_from", "data.teacher") if config.get(key)]
    begun += [f"{WORDS['data.teacher']} {config['data.translations']}"] if config.get("data.translations") else []
    return ", ".join([f"backskip {skip}"] * (skip != "off") + [f"LayerDrop {drop:g}"] * bool(drop) + begun)


def described(sources: Sequence[Mapping[str, Any]]) -> str:
    """The other runs that a run needs, with what they cost: `begins with runs/a (0.62 h, 2.45e+14 operations)`."""
    return ", ".join(f"{WORDS[each['key']]} {each['path']} ({_cost(each)})" for each in sources)


def _cost(source: Mapping[str, Any]) -> str:
    seconds, flops = source["train_seconds"], source["train_flops"]
    hours = "" if seconds is None else f"{seconds / 3600:.2f} h"
    operations = "" if flops is None else f"{flops:.3g} operations"
    return ", ".join(filter(None, [hours, operations])) or "its cost is not known here"


def initialisation(config: Config) -> str:
    """The scheme of the random weights, and what differs from its preset."""
    preset = config.get("model.init_preset") or "paper"
    reference = preset == "reference"
    usual = {"attention": "xavier" if reference else "scheme", "embedding": ""}
    found = [str(config.get("model.init_scheme", "")), preset * reference]
    for part, value in usual.items():
        own = config.get(f"model.init_{part}") or value
        found.append(f"{part} {own}" * (own != value))
    if config.get("model.scale_by_keep") == reference:  # a record without the key follows its preset
        found.append("scaled by keep" if reference else "not scaled by keep")
    return ", ".join(part.replace("_", " ") for part in found if part)


# What a figure compares: the keys that make it up.
WEIGHTS = ("model.weights", "model.sharing")
EMBEDDINGS = ("model.embedding", *(f"model.embedding_{part}" for part in ("source", "path", "vocabulary")))
SHAPE = tuple(f"model.{n}" for n in ("d_model", "ffn", "heads", "encoder_layers", "decoder_layers", "reservoir"))
_OF_INITIALISATION = ("scheme", "attention", "embedding", "preset")
INITIALISATION = (*(f"model.init_{part}" for part in _OF_INITIALISATION), "model.scale_by_keep")


def parts(config: Config) -> tuple[str, ...]:
    """A model in words: weights, shape, how it is trained, embeddings and initialisation. A model without masks lacks the last two."""
    masked = config.get("model.weights") != "dense"
    random = (f"{embeddings(config)} embeddings", initialisation(config)) * masked
    selection = str(config.get("model.selection") or "") * masked
    bits = "signs" if selection == "sign" else f"selection {selection}" * (":" in selection)  # a class of one's own
    return tuple(part for part in (weights(config), bits, shape(config), training(config), *random) if part)


def common(configs: Sequence[Config]) -> str:
    """What the names of all these models have in common."""
    first, *others = (parts(config) for config in configs)
    return "; ".join(part for part in first if all(part in other for other in others))


def said(key: str, value: str | None) -> str:
    """A value (as JSON) of a key, for people: `lr 0.001`, `no init_from`. A mark that is no key is left out where it is missing."""
    section, _, word = key.rpartition(".")
    if value is None:
        return f"no {word}" if section else ""
    text = json.loads(value) if value.startswith('"') else value
    return f"{word} {text}"

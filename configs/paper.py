"""What `iwslt14` and `wmt14` share: the arguments that name a row of paper A (arXiv 2109.03939), and its figures as overrides."""

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

from ml_collections import ConfigDict

from configs import common

WEIGHTS = ("dense", "one_layer", "multi_layer")
# What the paper varies besides; each for masked models.
VARIANTS = {
    "pretrained": {  # tables from elsewhere, masked like the rest: those of fairseq's model, see PRETRAINED
        "embedding": "masked",
        "embedding_source": "fairseq",
        "embedding_path": "pretrained/model.pt",
    },
    "frozen": {"embedding": "frozen"},  # no masks over the embeddings; with pretrained: those of the files as they are
    "xavier": {"init_scheme": "xavier_uniform"},  # instead of Kaiming uniform
}
# Sizes of which fairseq has no model: "we pre-train fully-weighted model and then dump the embedding layer" (paper A, footnote 4).
PRETRAINED = {"wide": {"embedding_source": "run", "embedding_path": "runs/dense_wide"}}
KEEPS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # the figures' points were never published as numbers

Overrides = dict[str, Any]


def set_model(config: ConfigDict, file: str, arg: str, sizes: tuple[str, ...]) -> None:
    """Makes the model the one that `arg`, WEIGHTS_SIZE or WEIGHTS_SIZE_VARIANT..., names.

    Raises: ValueError, which names what there is, for any other argument.
    """
    weights = next((each for each in WEIGHTS if arg.startswith(f"{each}_")), "")
    size, *variants = arg.removeprefix(f"{weights}_").split("_")
    known = set() if weights == "dense" else set(VARIANTS)
    if not weights or size not in sizes or not set(variants) <= known or len(set(variants)) < len(variants):
        raise ValueError(
            f"configs/{file}.py:{arg} is unknown; give dense_, one_layer_ or multi_layer_, then one of {', '.join(sizes)}, then, "
            f"if not dense, any of {', '.join('_' + name for name in VARIANTS)}"
        )
    config.model.weights = weights
    common.set_size(config, size)
    for name in VARIANTS:  # in this order: frozen has the last word on the embedding
        if name in variants:
            config.model.update(VARIANTS[name])
    if "pretrained" in variants:
        config.model.update(PRETRAINED.get(size, {}))


def sweep(
    file: str,
    get_config: Callable[..., ConfigDict],
    figures: dict[int, tuple[str, ...]],
    number: int,
    seeds: Iterable[int],
) -> list[Overrides]:
    """Every run of a figure: what to override in `get_config()`, by names joined by dots.

    `figures` gives the arguments that a figure compares; each is run at every one of KEEPS and of `seeds`, a dense one once a
    seed. Raises: ValueError for a figure that this corpus has not.
    """
    if number not in figures:
        raise ValueError(f"configs/{file}.py has no sweep for figure {number}; it has {', '.join(map(str, figures))}")
    base = _flat(get_config().to_dict())
    found = []
    for argument in figures[number]:
        config = _flat(get_config(argument).to_dict())
        changes = {name: value for name, value in config.items() if value != base.get(name)}
        keeps = [{}] if argument.startswith("dense_") else [{"model.keep": keep} for keep in KEEPS]
        found += [changes | keep | {"seed": seed} for keep, seed in product(keeps, seeds)]
    return found


def _flat(section: dict[str, Any], prefix: str = "") -> Overrides:
    flat: Overrides = {}
    for name, value in section.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat

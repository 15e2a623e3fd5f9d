"""Arguments that name a row of paper A (arXiv 2109.03939); and its figures as sweeps. Most configs share parts of it."""

from collections.abc import Collection, Iterable

from ml_collections import ConfigDict

from configs import common
from configs.sweeps import Overrides, Sweep, chain, product, vary

WEIGHTS = ("dense", "one_layer", "multi_layer")
# What else the paper varies; only for masked models.
VARIANTS = {
    "pretrained": {  # tables of fairseq's model, masked like the other matrices; see PRETRAINED for other sizes
        "embedding": "masked",
        "embedding_source": "fairseq",
        "embedding_path": "pretrained/model.pt",
    },
    "frozen": {"embedding": "frozen"},  # no masks over the embeddings; with pretrained: the files' tables unchanged
    "xavier": {"init_scheme": "xavier_uniform"},  # instead of Kaiming uniform
}
# Sizes of another width need other tables. fairseq has no model of the size wide: "we pre-train fully-weighted model and then dump the
# embedding layer" (paper A, footnote 4).
PRETRAINED = {
    "wide": {"embedding_source": "run", "embedding_path": "runs/dense_wide"},
    "wider": {"embedding_path": "pretrained/wider/model.pt"},
}
KEEPS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)  # the figures' points were never published as numbers


def weights_and_size(
    file: str, arg: str, sizes: Collection[str], weights: tuple[str, ...] = WEIGHTS, also: str = ""
) -> tuple[str, str]:
    """The two parts of an argument WEIGHTS_SIZE of the config `file`; `also` says which other arguments it has.

    Raises: ValueError that lists the known arguments, for any other `arg`.
    """
    found = next((each for each in weights if arg.startswith(f"{each}_")), "")
    size = arg.removeprefix(f"{found}_")
    if not found or size not in sizes:
        *most, last = (f"{each}_" for each in weights)
        raise ValueError(
            f"configs/{file}.py:{arg} is unknown; give {also}{', '.join(most)} or {last} and one of {', '.join(sizes)}"
        )
    return found, size


def set_model(config: ConfigDict, file: str, arg: str, sizes: tuple[str, ...], also: str = "") -> None:
    """Sets the model that `arg` names: WEIGHTS_SIZE or WEIGHTS_SIZE_VARIANT...; `also` says which other weights the config has.

    Raises: ValueError that lists the known arguments, for any other `arg`.
    """
    weights = next((each for each in WEIGHTS if arg.startswith(f"{each}_")), "")
    size, *variants = arg.removeprefix(f"{weights}_").split("_")
    known = set() if weights == "dense" else set(VARIANTS)
    if not weights or size not in sizes or not set(variants) <= known or len(set(variants)) < len(variants):
        raise ValueError(
            f"configs/{file}.py:{arg} is unknown; give {also}dense_, one_layer_ or multi_layer_, then one of {', '.join(sizes)}, "
            f"then, if one_layer or multi_layer, any of {', '.join('_' + name for name in VARIANTS)}"
        )
    config.model.weights = weights
    common.set_size(config, size)
    for name in VARIANTS:  # in this order, so that frozen overrides the embedding of pretrained
        if name in variants:
            config.model.update(VARIANTS[name])
    if "pretrained" in variants:
        config.model.update(PRETRAINED.get(size, {}))


def figure(models: Sweep, seeds: Iterable[int]) -> Sweep:
    """The runs of a figure: each of the models for every keep in KEEPS and every seed; a dense model only once for each seed.

    Figure 2 compares one layer with L, figure 3 embeddings, figure 4 widths and depths, and figure 5 initialisations.
    """
    return product(chain(*map(_keeps, models)), vary("seed", *seeds))


def _keeps(model: Overrides) -> Sweep:
    # A dense model has no masks, so nine keeps would be the same training nine times.
    return [model] if model["config"].startswith("dense") else product([model], vary("model.keep", *KEEPS))

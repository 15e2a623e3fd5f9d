"""Short names of models: what tells each from the others of one report.

A name begins with the kind of weights, and the width where not all models have one width. Of models that would have the same name, it also
says what they differ in, one thing after the other, until no two are alike. A usual value, which more than half of the models of that kind
have, is not said. Folders are in no name.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from one_layer.report import naming
from one_layer.report.naming import Config
from one_layer.report.point import KEEP, Point, Setting, without
from one_layer.report.reading import Record

_KINDS = {"fully weighted": "dense", "one layer": "masks", "L layers": "masks on L layers"}
_KINDS |= {"trained layers with reservoirs": "reservoirs"}
_EMBEDDINGS = {
    "random, masked": "random embeddings",
    "pre-trained, masked": "pre-trained embeddings",
    "random, frozen": "frozen random embeddings",
    "pre-trained, frozen": "frozen embeddings",
    "taken over, frozen": "embeddings taken over",
    "trained": "trained embeddings",
}
# Keys that the words of aspects stand for, so that no aspect repeats them.
_IN_WORDS = {
    *("model.weights", "model.d_model", "model.encoder_layers", "model.decoder_layers", "model.reservoir", KEEP),
    *("model.embedding", "model.embedding_path", "train.init_from", "data.teacher", "data.translations"),
    *("train.backskip", "model.layerdrop", "model.init_scheme"),
}
_FIRST = ("model.ffn", "optim.lr", "model.dropout", "train.updates")  # of all other keys
_LONGEST = 32  # characters of a key and its value in a name
_ALWAYS = ("width", "reservoirs")  # said where not all models have the same


class Label(NamedTuple):
    """The short name of a model, and its keep, which is empty if it is the usual one."""

    model: str
    keep: str

    def __str__(self) -> str:
        return " ".join(filter(None, self))


def labels(records: Sequence[Record], settings: Mapping[Path, Setting]) -> dict[Setting, Label]:
    """The short names of the models of a report, by the settings of their runs, which `settings` has by folder. No two are alike."""
    configs = {settings[record.folder]: record.described for record in records}
    models = {without(setting, [KEEP]): config for setting, config in configs.items()}
    names = dict(zip(models, _names(list(models), list(models.values())), strict=True))
    masked = [setting for setting, config in configs.items() if config.get("model.weights") != "dense"]
    keeps = {setting: f"keep {dict(setting).get(KEEP, '1')}" for setting in masked}
    usual = _usual(list(keeps.values()))
    said = {setting: keep for setting, keep in keeps.items() if keep != usual}
    return {setting: Label(names[without(setting, [KEEP])], said.get(setting, "")) for setting in configs}


def run_names(records: Sequence[Record], settings: Mapping[Path, Setting]) -> dict[Path, str]:
    """The names of runs by their folders: those of their models, with the seed where not all have the same."""
    named = labels(records, settings)
    several = len({record.seed for record in records}) > 1
    return {
        record.folder: f"{named[settings[record.folder]]}{f', seed {record.seed}' if several else ''}"
        for record in records
    }


def labelled(points: Sequence[Point], names: Mapping[Setting, Label]) -> list[Point]:
    """The points with their short names: the model, its keep, its checkpoint or file, and the search, as far as they differ."""
    searches: dict[object, list[str]] = {}
    for point in points:
        searches.setdefault(point.bench, []).append(point.scored.search)
    named = []
    for point in points:
        known = [each.split(", ") for each in searches[point.bench]]
        usual = (_usual(searches[point.bench]) or "").split(", ")
        own = point.scored.search.split(", ")
        search = [part for part in own if part not in usual and not all(part in each for each in known)]
        label = names[point.setting]
        parts = [*label, _variant(point.scored.checkpoint), *search]
        named.append(replace(point, label=" ".join(filter(None, parts)), model=label.model))
    return named


def _variant(checkpoint: str) -> str:
    """A checkpoint that is not the best, in a word or two: `int4`, `average of 10`."""
    if checkpoint.startswith("ticket") and checkpoint.partition(".safetensors")[1]:
        stem, _, more = checkpoint.partition(".safetensors")
        return f"{stem.removeprefix('ticket').strip('-') or 'file'}{more}"
    return "" if checkpoint == "best" else checkpoint.replace(":", " of ")


def _names(settings: Sequence[Setting], configs: Sequence[Config]) -> list[str]:
    kinds = [kind(config) for config in configs]
    aspects = [_aspects(config) | _others(setting) for config, setting in zip(configs, settings, strict=True)]
    _number(aspects)
    # Keys that all models have come first: one that is missing was off, or not there yet in an earlier version.
    keys = sorted({name for setting in settings for name, _ in setting}.difference(_IN_WORDS, _FIRST))
    keys.sort(key=lambda name: not all(name in each for each in aspects))
    order = [*_aspects({}), *_FIRST, *keys]
    usual = {
        (kind, name): _usual([each.get(name, "") for each, its in zip(aspects, kinds, strict=True) if its == kind])
        for kind in set(kinds)
        for name in order
        if name not in _ALWAYS
    }
    words = [[each] for each in kinds]
    for name in order:
        groups: dict[tuple[str, ...], list[int]] = {}
        for n, its in enumerate(words):
            groups.setdefault(() if name in _ALWAYS else tuple(its), []).append(n)
        for alike in groups.values():
            if len({aspects[n].get(name, "") for n in alike}) == 1:
                continue
            for n in alike:
                silent = usual.get((kinds[n], name))  # silence would mean this value
                missing = f"no {name.rpartition('.')[2].replace('_', ' ')}" if "." in name or silent else ""
                said = aspects[n].get(name, "")
                words[n] += [said or missing] if said != silent and (said or missing) else []
    return _numbered([" ".join(its) for its in words])


def _numbered(names: Sequence[str]) -> list[str]:
    """The names, of which equal ones get numbers: what tells them apart is in the details alone."""
    times, seen = Counter(names), Counter[str]()
    found = []
    for name in names:
        seen[name] += 1
        found.append(f"{name} (no. {seen[name]})" if times[name] > 1 else name)
    return found


def kind(config: Config) -> str:
    """The weights of a model in a word or two: `masks`, `signs`, `dense`, `random masks`."""
    main, _, control = naming.weights(config).partition(", ")
    hybrid = "hybrid" if main.startswith("hybrid") else main
    word = _KINDS.get(main, hybrid.replace("one layer", "masks").replace("L layers", "masks on L layers"))
    found = (
        word.replace("masks", control, 1) if control and "masks" in word else " ".join(filter(None, [word, control]))
    )
    return found.replace("masks", "signs") if config.get("model.selection") == "sign" else found


def place(kind: str) -> int:
    """The place of a kind of weights among colours and shapes, which is the same in all reports."""
    if "reservoirs" in kind:
        return 5
    known = {"dense": 0, "masks on L layers": 1, "masks": 2, "signs": 4, "signs on L layers": 7}
    return 3 if "hybrid" in kind else known.get(kind, 10)


def _aspects(config: Config) -> dict[str, str]:
    """What the words of names can say, with the most important first."""
    names = ("model.d_model", "model.encoder_layers", "model.decoder_layers")
    width, encoder, decoder = (config.get(name) for name in names)
    layers = f"{encoder}+{decoder}" if encoder and decoder else f"{encoder or decoder or 0} layers"
    skip, drop = config.get("train.backskip", "off"), config.get("model.layerdrop", 0.0)
    begun = "fine-tuned" if config.get("train.init_from") else "from scratch"
    return {
        "width": "" if width is None else str(width),
        "reservoirs": str(config.get("model.reservoir", "")) if "R" in naming.letters(config) else "",
        "backskipping": "" if skip == "off" else f"backskip {skip}",
        "LayerDrop": f"LayerDrop {drop:g}" if drop else "",
        "layers": layers,
        "embeddings": _EMBEDDINGS.get(naming.embeddings(config), naming.embeddings(config)),
        "first run": "imported" if config.get(naming.IMPORTED) else begun,
        "teacher": "taught" if config.get("data.teacher") or config.get("data.translations") else "",
        "scheme": str(config.get("model.init_scheme", "")).replace("_", " "),
    }


def _others(setting: Setting) -> dict[str, str]:
    """Every other key of a setting, as a word and its value. A mark that is no key stays as it is."""
    return {name: naming.said(name, value).replace("_", " ") for name, value in setting if name not in _IN_WORDS}


def _number(aspects: Sequence[dict[str, str]]) -> None:
    """Gives paths, and all that is long, numbers as they come."""
    known = {(name, text) for each in aspects for name, text in each.items()}
    for name in {name for name, text in known if "/" in text or len(text) > _LONGEST}:
        values = list(dict.fromkeys(each[name] for each in aspects if name in each))
        word = name.rpartition(".")[2].replace("_", " ")
        for each in aspects:
            if name in each:
                each[name] = f"{word} no. {values.index(each[name]) + 1}"


def _usual(values: Sequence[str]) -> str | None:
    """The value that more than half of these have."""
    (value, count), *_ = Counter(values).most_common(1) or [("", 0)]
    return value if 2 * count > len(values) else None

"""What somebody may change in a ticket who can compute the digest that fits, with what is said of it.

Both readers refuse each: Python's and the page's.
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import zstandard

from one_layer.tasks.translation.settings import SearchSettings
from one_layer.tickets import file as ticket_file

Metadata, Tensors = dict[str, str], dict[str, np.ndarray]
Change = Callable[[Metadata, Tensors], Any]


def forge(good: bytes, change: Change) -> bytes:
    """A ticket that somebody changed who can compute the digest that fits."""
    file = ticket_file.from_bytes(good)
    metadata, tensors = dict(file.metadata), dict(file.tensors)
    change(metadata, tensors)
    return ticket_file.to_bytes(metadata, tensors)


def value(place: str, to: object) -> Change:
    """Sets a value inside the JSON of metadata: `place` is for instance `text.source.language`, or the name of metadata alone."""
    name, *path = place.split(".")

    def change(metadata: Metadata, tensors: Tensors) -> None:
        branch = whole = {"": json.loads(metadata[name])}
        *above, last = ["", *path]
        for key in above:
            branch = branch[int(key) if isinstance(branch, list) else key]
        branch[last] = to
        metadata[name] = json.dumps(whole[""])

    return change


def settings(**changes: object) -> Change:
    """Several settings at once, each within its own limit."""
    places = {name: "evaluation" if name in vars(SearchSettings()) else "model" for name in changes}
    each = [value(f"{places[name]}.{name}", to) for name, to in changes.items()]
    return lambda metadata, tensors: [change(metadata, tensors) for change in each]


def array(name: str, make: Callable[[np.ndarray], np.ndarray]) -> Change:
    """Puts another array in the place of a tensor."""
    return lambda metadata, tensors: tensors.update({name: make(tensors[name])})


def code(name: str, codec: str, content: bytes = bytes(9), shape: list[int] | None = None) -> Change:
    """Gives a tensor a codec, and these bytes as its code."""

    def change(metadata: Metadata, tensors: Tensors) -> None:
        entry = {"codec": codec, "shape": shape or list(tensors[name].shape)}
        tensors[name] = np.frombuffer(content, np.uint8)
        metadata["codecs"] = json.dumps({**json.loads(metadata["codecs"]), name: entry})

    return change


def text(place: str, content: bytes | np.ndarray, name: str = "text/other") -> Change:
    """Another tensor for the vocabulary or the codes of a side: `place` is for instance `target.vocabulary`."""
    stored = np.frombuffer(content, np.uint8) if isinstance(content, bytes) else content

    def change(metadata: Metadata, tensors: Tensors) -> None:
        value(f"text.{place}", name)(metadata, tensors)
        tensors[name] = stored

    return change


MASK, BIAS = "mask/encoder/ffn/in", "params/encoder/ffn/norm/bias"
BOMB, CHECKPOINT = (
    zstandard.ZstdCompressor().compress(bytes(2**26)),
    "its checkpoint is .*, which is no name of a checkpoint",
)
WORDS = b"".join(b"%d 1\n" % number for number in range(9))
GENERATOR, NO_TEXT = "another generator made this ticket", "which is not a text of at most"
COUNTS = "its seed, its step or the sizes of its vocabularies are not valid whole numbers"
# What is set, to what, and what is said: settings, recipes, codes and text.
VALUES: list[tuple[str, object, str]] = [
    ("seed", 8, GENERATOR),
    ("seed", 2**32, "seed is 4294967296"),
    *((name, wrong, COUNTS) for name in ("seed", "step") for wrong in (-1, 2**40 + 1, 1.0, True, "1", None)),
    *((f"model.{name}_vocab", wrong, COUNTS) for name in ("source", "target") for wrong in (-1, 1.0, True, None)),
    ("model.source_vocab", 10**12, "model.source_vocab is 1,?000"),
    ("model.source_vocab", 2**40 + 1, "model.source_vocab is|sizes of its vocabularies"),
    ("model.encoder_layers", 4, r"is uint8 \[3, .*but its model's is uint8 \[4, "),
    ("model.ffn", 32, "but its model"),
    ("model.keep", 0.2, "keeps .* weights where model.keep 0.2 keeps"),
    ("model.callback", "x", "unknown key model.callback"),
    ("model.pruned", 0.0, "the key model.pruned is gone|unknown key model.pruned"),
    ("model.heads", "2", "model.heads is '2'; it takes a value of type int"),
    ("model.heads", 2.0, "model.heads is 2.*; it takes a value of type int"),
    ("model.heads", 3, "model.heads is 3, which does not divide"),
    ("model.ffn", 10**300, "model.ffn is "),
    ("model.keep", True, "model.keep is True|model.keep is true"),
    *(
        (f"{name}.key", wrong, f"{name}.key")
        for name in ("model", "data", "evaluation")
        for wrong in ({}, [{}], 2**40 + 1)
    ),
    *(
        (name, wrong, "is not a JSON object")
        for name in ("model", "data", "evaluation", "training")
        for wrong in ([], 1, 1.5)
    ),
    *((f"{name}.A", 1, "short keys") for name in ("model", "data", "evaluation")),
    ("data.seed", "a" * 1001, "data.seed is "),
    ("evaluation.beam", 10**6, "evaluation.beam is 1,?000,?000"),
    ("data.toy_train", 10**9, "data.toy_train"),
    ("data.source_language", "../x", "the toy language has the sides"),
    ("data.block", 2**16 + 1, "data.block is 65537"),
    ("task", "flying", "flying"),
    *(
        ("training.checkpoint", name, CHECKPOINT)
        for name in ("newest", "best\n", "average:x", "../best", "9" * 17, "a" * 10**5)
    ),
    *(("training.checkpoint", name, CHECKPOINT) for name in (3, None, ["best"], {})),
    ("training.optim", [], "a section of its metadata .training. is not a JSON object"),
    ("training.optim.freeze", "a" * 65537, r"optim\.freeze is "),
    ("training.optim.clip", 10**19, r"optim\.clip is "),
    ("training.optim.lr", {}, r"optim\.lr is "),
    ("training.optim.lr", "high", r"optim\.lr is 'high'; it takes a value of type"),
    ("training.optim.accumulate", 2.0, r"optim\.accumulate is 2.*; it takes a value of type int"),
    ("training.train.updates", -1, r"train\.updates is -1; it must"),
    (f"codecs.{MASK}.codec", "exec", "the codec 'exec' is unknown"),
    (f"codecs.{MASK}.codec", "float32", "the codec 'float32' is unknown"),
    ("random", {}, "its metadata 'random' are not a list of recipes"),
    ("random", [1], "its metadata 'random' are not a list of recipes"),
    ("random", [], "it lacks the tensor 'random/"),
    ("random.0.x", 1, "its metadata 'random' are not a list of recipes"),
    ("random.0.scheme", "os.system", "the scheme 'os.system'; known are "),
    ("random.0.scheme", "orthogonal", "has the scheme orthogonal, which is one of reservoirs"),
    ("random.1.checksum", "0" * 32, GENERATOR),
    ("random.1.checksum", 1, GENERATOR),
    ("random.1.scale", 1.5, GENERATOR),
    ("random.0.role", "../x", "'../x' twice, or its model has no such matrix"),
    *(
        ("random.0.shape", shape, "its recipe makes .* but its model has")
        for shape in ([8, 9], [10**6, 10**6], [8], [0, 4], [])
    ),
    *(("random.0.layers", layers, "its recipe makes .* but its model has") for layers in (0, 1)),
    *(("random.0.layers", layers, "random.* of (another )?type") for layers in ([1, 0], [])),
    *(
        (f"random.0.{name}", number, "an impossible fan_in or zero_row")
        for name, number in (("zero_row", -1), ("zero_row", 999))
    ),
    *(("random.0.fan_in", number, "an impossible fan_in or zero_row") for number in (0, -3)),
    *(
        (f"random.0.{name}", "x", "random.* of (another )?type")
        for name in ("shape", "scale", "fan_in", "layers", "zero_row")
    ),
    *(
        (f"random.0.{name}", 1.0, "random.* of (another )?type")
        for name in ("role", "shape", "fan_in", "layers", "zero_row")
    ),
    *((f"random.0.{name}", None, "random.* of (another )?type") for name in ("role", "shape", "scheme", "scale")),
    *(
        ("text", sides, "does not describe source and target")
        for sides in ([], {"source": {}}, {"source": {}, "target": {}, "x": {}})
    ),
    *(("text.source", side, "names no vocabulary of the source") for side in ([], {})),
    *((f"text.{side}.language", "../x", f"its language of the {side} is '../x'") for side in ("source", "target")),
    ("text.target.inverse", "rm -r", "data.undo"),
    ("text.target.bpe_kind", "metaspace", "keeps text as it is, but data.tokenize changes it"),
    ("text.target.vocabulary", 1, f"names 1, {NO_TEXT}"),
    *(
        (f"text.target.{part}", name, f"'{name}', {NO_TEXT}")
        for part in ("vocabulary", "codes")
        for name in ("text/none", MASK)
    ),
]
FORGED: dict[str, tuple[Change, str]] = {
    f"{place} {to!s:.30}": (value(place, to), said) for place, to, said in VALUES
} | {
    "half a billion weights": (settings(d_model=2048, ffn=16384), "its model has [0-9,]+ weights"),
    "a trillion weights": (settings(d_model=10**6, ffn=10**6), "would take [0-9,]+ bytes for a line"),
    "a trillion layers": (settings(encoder_layers=10**12), "model.encoder_layers is 10{12}; it must lie in"),
    "a thousand layers": (settings(encoder_layers=1000), "model.encoder_layers is 1,?000; a ticket's is at most 256"),
    "a thousand layers in a string": (
        settings(encoder_layers="4000S+9R"),
        "model.encoder_layers is 4,?009; a ticket's is",
    ),
    "layers without masks": (settings(keep=1.0, decoder_layers=3 * 10**7), "model.decoder_layers is 30000000"),
    "a million tiny random layers": (
        settings(weights="multi_layer", sharing="none", encoder_layers=1_300_000),
        "model.encoder_layers is 1300000",
    ),
    "a cache of gigabytes": (
        settings(decoder_layers=256, beam=1000, max_length_b=10_000),
        "would take [0-9,]+ bytes for a line; a ticket may take at most",
    ),
    "logits of gigabytes": (settings(target_vocab=2**20, beam=1000), "would take [0-9,]+ bytes for a line"),
    "hours for a line": (
        settings(d_model=1024, ffn=16384, decoder_layers=12, max_length_b=10_000, beam=1, max_tokens=1),
        "would take [0-9,]+ operations for a line",
    ),
    "a batch of terabytes": (settings(max_tokens=2**24, beam=1000), "would take [0-9,]+ bytes for a batch"),
    "a decompression bomb": (
        code(MASK, "zstd", BOMB, [3, 24]),
        f"{MASK}: a code declares 67,?108,?864 bytes of content",
    ),
    "bytes called float32": (code(BIAS, "float32"), "is uint8 .* but its model's is float32"),
    "a code that is none": (array(MASK, lambda code: code[:-1]), f"{MASK}: a code is not one whole zstd frame"),
    "a matrix twice": (
        lambda m, t: m.update({"random": json.dumps([*json.loads(m["random"]), json.loads(m["random"])[0]])}),
        "twice, or its model has no such matrix",
    ),
    "fewer words": (array("text/source_vocabulary", lambda text: text[:-1]), "types, special ones included"),
    "a line without an end": (text("target.vocabulary", WORDS[:-1]), "types, special ones included"),
    "few words": (text("target.vocabulary", b"x\n"), "text/other has 5 types, special ones included, .* has 13 rows"),
    "many words": (text("target.vocabulary", b"x\n" * 20), "text/other has 24 types, special ones included"),
    "words of other bytes": (text("target.vocabulary", b"\xff\n"), "text/other is not UTF-8"),
    "a table of words": (text("target.vocabulary", np.zeros((1, 8), np.uint8)), f"'text/other', {NO_TEXT}"),
    "a number of words": (text("target.codes", np.zeros((), np.uint8)), f"'text/other', {NO_TEXT}"),
    "a million merges": (text("target.codes", b"a b\n" * (2**20 + 1)), "text/other has more than 1,?048,?576 lines"),
    "a tensor too many": (
        lambda m, t: t.update({"params/x": np.zeros(1, np.uint8)}),
        "no place for the tensor params/x",
    ),
    "a tensor too few": (lambda m, t: t.pop("mask/decoder/ffn/in"), "(names|lacks the tensor) 'mask/decoder/ffn/in'"),
    "a missing array": (lambda m, t: t.pop(BIAS), f"it lacks the tensor '{BIAS}'"),
    "an array of bytes": (array(BIAS, lambda array: array.view(np.uint8)), "is uint8 .* but its model's is float32"),
    "unknown metadata": (lambda m, t: m.update({"loader": "x"}), "unknown name 'loader'"),
    **{
        f"no {name}": (lambda m, t, name=name: m.pop(name), f"lacks the metadata '{name}'")
        for name in ("task", "seed", "step", "model", "data", "evaluation", "training", "text", "random")
    },
    "no number": (lambda m, t: m.update({"seed": "NaN"}), "'seed' is not valid JSON"),
}

"""Tickets from strangers: whatever is wrong with a file is said in one sentence, before anything is drawn or allocated."""

from __future__ import annotations

import json
import random
import tracemalloc

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from one_layer import tickets
from one_layer.system.errors import UserError
from one_layer.tasks.translation.settings import SearchSettings
from one_layer.tickets import content as ticket_content
from one_layer.tickets import file as ticket_file
from tests import fuzz_tickets
from tests.tiny_tickets import TINY, ticket_of


@pytest.fixture(scope="module")
def good():
    return fuzz_tickets.good_ticket()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile") / "t.safetensors"


def refused(content: bytes, place, message: str | None = None) -> None:
    place.write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        tickets.load(place)
    assert str(caught.value).startswith(f"the ticket {place} cannot be used: ") and str(caught.value).isprintable()


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_file_cut_off_anywhere_is_refused(good, place, data):
    refused(good[: data.draw(st.integers(0, len(good) - 1))], place)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_a_flipped_bit_anywhere_is_found(good, place, data):
    content = bytearray(good)
    content[data.draw(st.integers(0, len(good) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    refused(bytes(content), place)


@pytest.mark.slow
def test_mutants_are_refused_or_the_same(tmp_path):
    counts = fuzz_tickets.fuzz(120, random.randrange(10**6), tmp_path)
    assert counts["damaged, refused"] > 36 and counts["forged, refused"] > 36


def value(name: str, *path: str | int, to: object):
    """Sets a value inside the JSON of the metadata `name`."""

    def change(metadata, tensors):
        branch = whole = json.loads(metadata[name])
        for key in path[:-1]:
            branch = branch[key]
        branch[path[-1]] = to
        metadata[name] = json.dumps(whole)

    return change


def named_test_set(name: str):
    """Names a test set. The toy language has none but its own, so the data are called a text."""
    changes = [value("data", key, to=to) for key, to in {"tests": [name], "source": "text", "directory": "x"}.items()]
    return lambda metadata, tensors: [change(metadata, tensors) for change in changes]


def content_of(name: str, make):
    """Puts another array in the place of a tensor."""
    return lambda metadata, tensors: tensors.update({name: make(tensors[name])})


def codec_of(name: str, codec: str):
    """Gives an array of float32 a codec, with a code of a few bytes and the array's shape."""

    def change(metadata, tensors):
        entry = {"codec": codec, "shape": list(tensors[name].shape)}
        tensors[name] = np.zeros(9, np.uint8)
        metadata["codecs"] = json.dumps({**json.loads(metadata["codecs"]), name: entry})

    return change


def bomb(length: int):
    """A code of a few bytes that decodes to `length` bytes, in place of a mask's."""

    def change(metadata, tensors):
        code = zstandard.ZstdCompressor().compress(bytes(length))
        tensors["mask/encoder/ffn/in"] = np.frombuffer(code, np.uint8)
        codecs = json.loads(metadata["codecs"])
        metadata["codecs"] = json.dumps({**codecs, "mask/encoder/ffn/in": {"codec": "zstd", "shape": [3, 24]}})

    return change


def settings_of(**changes):
    """Several settings at once, each within its own limit."""

    def change(metadata, tensors):
        for name, to in changes.items():
            value("evaluation" if name in vars(SearchSettings()) else "model", name, to=to)(metadata, tensors)

    return change


FORGED = {
    "half a billion weights": (settings_of(d_model=2048, ffn=16384), "its model has [0-9,]+ weights"),
    "a trillion weights": (settings_of(d_model=10**6, ffn=10**6), "its model, .* would take [0-9,]+ bytes for a line"),
    "a trillion layers": (
        settings_of(encoder_layers=10**12),
        "model.encoder_layers is 1000000000000; it must lie in",
    ),
    "a thousand layers": (settings_of(encoder_layers=1000), "model.encoder_layers is 1,000; a ticket's is at most 256"),
    "a thousand layers in a string": (
        settings_of(encoder_layers="4000S+9R"),
        "model.encoder_layers is 4,009; a ticket's is at",
    ),
    "layers without masks": (settings_of(keep=1.0, decoder_layers=3 * 10**7), "model.decoder_layers is 30000000"),
    "a million tiny random layers": (
        settings_of(weights="multi_layer", sharing="none", encoder_layers=1_300_000),
        "model.encoder_layers is 1300000",
    ),
    "a vocabulary of a trillion": (
        value("model", "source_vocab", to=10**12),
        "model.source_vocab is 1,000,000,000,000",
    ),
    "a cache of gigabytes": (
        settings_of(decoder_layers=256, beam=1000, max_length_b=10_000),
        "with evaluation.beam 1000, .* would take [0-9,]+ bytes for a line; a ticket may take at most",
    ),
    "logits of gigabytes": (settings_of(target_vocab=2**20, beam=1000), "would take [0-9,]+ bytes for a line"),
    "hours for a line": (
        settings_of(d_model=1024, ffn=16384, decoder_layers=12, max_length_b=10_000, beam=1, max_tokens=1),
        "would take [0-9,]+ operations for a line; a ticket may take at most",
    ),
    "a batch of terabytes": (settings_of(max_tokens=2**24, beam=1000), "would take [0-9,]+ bytes for a batch"),
    "a decompression bomb": (
        bomb(2**26),
        "mask/encoder/ffn/in: a code declares 67,108,864 bytes of content where 72 are expected",
    ),
    "an unknown codec": (value("codecs", "mask/encoder/ffn/in", "codec", to="exec"), "the codec 'exec' is unknown"),
    "bytes called float32": (
        codec_of("params/encoder/ffn/norm/bias", "float32"),
        "is uint8 .* but its model's is float32",
    ),
    "a mask called float32": (
        value("codecs", "mask/encoder/ffn/in", "codec", to="float32"),
        "the codec 'float32' is unknown",
    ),
    "a code that is none": (content_of("mask/encoder/ffn/in", lambda code: code[:-1]), "not one whole zstd frame"),
    "an unknown scheme": (value("random", 0, "scheme", to="os.system"), "the scheme 'os.system'; known are kaiming"),
    "another seed": (value("seed", to=8), "another generator made this ticket"),
    "another checksum": (value("random", 1, "checksum", to="0" * 32), "another generator made this ticket"),
    "another scale": (value("random", 1, "scale", to=1.5), "another generator made this ticket"),
    "a recipe's shape": (value("random", 0, "shape", to=[8, 9]), "its recipe makes .* but its model has"),
    "a recipe of a trillion": (value("random", 0, "shape", to=[10**6, 10**6]), "its recipe makes .* but its model has"),
    "a recipe's layers": (value("random", 0, "layers", to=[1, 0]), "have an invalid recipe"),
    "a recipe's role": (
        value("random", 0, "role", to="../x"),
        "'../x' twice, or its model has no such matrix",
    ),
    "more layers than masks": (
        value("model", "encoder_layers", to=4),
        r"is uint8 \[3, .*but its model's is uint8 \[4, ",
    ),
    "wider than its masks": (value("model", "ffn", to=32), "but its model"),
    "another keep": (value("model", "keep", to=0.2), "keeps .* weights where model.keep 0.2 keeps"),
    "an unknown field": (
        value("model", "callback", to="x"),
        "unknown key model.callback, for instance of a kind of mask",
    ),
    "a field's type": (value("model", "heads", to="2"), "model.heads is '2'; it takes a value of type int"),
    "a field's value": (value("model", "heads", to=3), "model.heads is 3, which does not divide"),
    "a huge number": (value("model", "ffn", to=10**300), "model.ffn is the number 10{39}; a ticket's settings are"),
    "a beam of a million": (value("evaluation", "beam", to=10**6), "evaluation.beam is 1000000"),
    "hours of toy sentences": (value("data", "toy_train", to=10**9), "data.toy_train=1000000000 is too large"),
    "a test set elsewhere": (named_test_set("x/../../y"), "its data have the name 'x/../../y'"),
    "a test set anywhere": (named_test_set("/x"), "its data have the name '/x'"),
    "a language elsewhere": (value("data", "source_language", to="../x"), "the toy language has the sides"),
    "a path for a language": (value("text", "source", "language", to="../x"), "its language of the source is '../x'"),
    "text elsewhere": (value("text", "source", "codes", to="mask/encoder/ffn/in"), "which is not a text of at most"),
    "fewer words": (content_of("text/source_vocabulary", lambda text: text[:-1]), "types, special ones included"),
    "a tensor too many": (
        lambda m, t: t.update({"params/x": np.zeros(1, np.uint8)}),
        "no place for the tensor params/x",
    ),
    "a tensor too few": (lambda m, t: t.pop("mask/decoder/ffn/in"), "(names|lacks the tensor) 'mask/decoder/ffn/in'"),
    "a missing array": (
        lambda m, t: t.pop("params/encoder/ffn/norm/bias"),
        "it lacks the tensor 'params/encoder/ffn/norm",
    ),
    "an array of bytes": (
        content_of("params/encoder/ffn/norm/bias", lambda array: array.view(np.uint8)),
        "is uint8 .* but its model's is float32",
    ),
    "unknown metadata": (lambda m, t: m.update({"loader": "x"}), "unknown name 'loader'"),
    "missing metadata": (lambda m, t: m.pop("evaluation"), "lacks the metadata 'evaluation'"),
    "no number": (lambda m, t: m.update({"seed": "NaN"}), "'seed' is not valid JSON"),
    "a seed beyond all": (value("seed", to=2**32), "seed is 4294967296"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_digest_that_fits_makes_nothing_good(name, good, place):
    change, message = FORGED[name]
    file = ticket_file.from_bytes(good)
    metadata, tensors = dict(file.metadata), dict(file.tensors)
    if name in ("another seed", "a seed beyond all"):
        metadata["seed"] = "8" if name == "another seed" else str(2**32)
    else:
        change(metadata, tensors)
    content = ticket_file.to_bytes(metadata, tensors)
    tracemalloc.start()
    refused(content, place, message)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**22, "memory for what the file only claims to have"


@pytest.mark.parametrize(
    ("name", "place_of", "message"),
    [
        ("mask/decoder/embedding", 4, "mask/decoder/embedding has bits beyond its last weight"),
        (
            "mask/decoder/self_attention/query",
            (2, 4),
            "mask/decoder/self_attention/query has bits beyond its last weight",
        ),
        ("sign/encoder/embedding", ..., "sign/encoder/embedding has bits where the mask is 0"),
    ],
)
def test_bits_that_mean_nothing_are_refused(name, place_of, message, place):
    config = TINY.replace(selection="signed_threshold", threshold=0.1)
    file = ticket_file.from_bytes(ticket_content.to_bytes(ticket_of(config))[0])
    bits = np.array(file.tensors[name])
    bits[place_of] = 0xFF
    refused(ticket_file.to_bytes(file.metadata, {**file.tensors, name: bits}), place, message)


def test_what_is_no_file_is_refused(tmp_path):
    for path, message in ((tmp_path, "it is a folder"), (tmp_path / "none", "there is no such file")):
        with pytest.raises(UserError, match=message):
            tickets.load(path)

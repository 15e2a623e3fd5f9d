"""The text of a ticket is read as it was written, stored once, and nothing else is taken for it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from one_layer.data.text.assets import TextAssets
from one_layer.data.text.preprocess import Preprocessing
from one_layer.data.text.vocabulary import BYTES, Vocabulary
from one_layer.models.config import ModelConfig
from one_layer.system.errors import UserError
from one_layer.tickets.file import TicketFile
from one_layer.tickets.settings import read_text, write_text

CODES = "#version: 0.2\na b</w>\nc d\n"
CONFIG = ModelConfig(12, 6, d_model=6, ffn=12, heads=2, encoder_layers=2, decoder_layers=3)


def text_of(sides: tuple[str, str], codes: tuple[str | None, str | None]) -> TextAssets:
    vocabularies = (Vocabulary.build([" ".join(f"{side}{number}" for number in range(8))]) for side in sides)
    return TextAssets(
        *vocabularies, *(Preprocessing(side, True, codes=each) for side, each in zip("ab", codes, strict=True))
    )


def file_of(metadata: str, tensors: dict[str, np.ndarray]) -> TicketFile:
    return TicketFile(0, 0, {"text": metadata}, tensors, {})


TYPES = CONFIG.replace(target_vocab=12)


@pytest.mark.parametrize(
    ("sides", "codes", "names"),
    [
        (("a", "b"), (None, None), {"source_vocabulary", "target_vocabulary"}),
        (("a", "a"), (CODES, CODES), {"source_vocabulary", "source_codes"}),
        (
            ("b", "a"),
            (CODES, CODES + "e f\n"),
            {"source_vocabulary", "target_vocabulary", "source_codes", "target_codes"},
        ),
        (("a", "b"), (None, CODES), {"source_vocabulary", "target_vocabulary", "target_codes"}),
    ],
)
def test_text_is_read_as_it_was_written_and_stored_once(sides, codes, names):
    assets = text_of(sides, codes)
    metadata, tensors = write_text(assets)
    assert tensors.keys() == {f"text/{name}" for name in names}
    found, used = read_text(file_of(metadata, tensors), TYPES)
    assert found == assets and used == tensors.keys()
    assert (found.source_vocabulary is found.target_vocabulary) == (sides == ("a", "a"))


def test_pieces_that_hold_their_spaces_are_read_and_need_every_byte():
    steps = Preprocessing(
        "en", codes="#version: 0.2\n▁ a\n▁a \ufeff\n", bpe_kind="metaspace", inverse="sentencepiece,moses"
    )
    whole = Vocabulary.build(["▁a \ufeff \t"], always=BYTES)
    assets = TextAssets(whole, whole, steps, Preprocessing("de", inverse="none"))
    found, _ = read_text(file_of(*write_text(assets)), CONFIG.replace(source_vocab=263, target_vocab=263))
    assert found == assets
    metadata, tensors = write_text(assets)
    for name, text, message in (
        ("vocabulary", whole.text.replace("<0x41>", "A"), "lacks a token of the bytes <0x00> to <0xFF>"),
        ("codes", "a b\n" * (2**20 + 1), "text/source_codes has more than 1,048,576 lines"),
        ("codes", "ab c\n", "'ab' is neither a character nor the result of any merge"),
    ):
        wrong = {**tensors, f"text/source_{name}": np.frombuffer(text.encode(), np.uint8)}
        with pytest.raises(UserError, match=message):
            read_text(file_of(metadata, wrong), CONFIG.replace(source_vocab=263, target_vocab=263))


METADATA, TENSORS = write_text(text_of(("a", "b"), (CODES, None)))


def side(name: str, **values: object) -> str:
    whole = json.loads(METADATA)
    return json.dumps({**whole, name: {**whole[name], **values}})


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ("[]", "does not describe source and target"),
        ('{"source":{}}', "does not describe source and target"),
        ('{"source":{},"target":{},"x":{}}', "does not describe source and target"),
        ('{"source":[],"target":{}}', "names no vocabulary of the source"),
        ('{"source":{},"target":{}}', "names no vocabulary of the source"),
        (side("source", language="../x"), "its language of the source is '../x'"),
        (side("target", language="../x"), "its language of the target is '../x'"),
        (side("target", inverse="rm -r"), "data.undo='rm -r' is unknown"),
        (side("target", bpe_kind="metaspace"), "keeps text as it is, but data.tokenize changes it"),
        (side("target", vocabulary=1), "names 1, which is not a text of at most 16,777,216 bytes"),
        (side("target", vocabulary="text/none"), "'text/none', which is not a text"),
        (side("target", vocabulary="mask/a"), "'mask/a', which is not a text"),
        (side("target", vocabulary="text/table"), "'text/table', which is not a text"),
        (side("target", vocabulary="text/number"), "'text/number', which is not a text"),
        (side("target", codes="text/table"), "'text/table', which is not a text"),
        (side("target", vocabulary="text/broken"), "text/broken is not UTF-8"),
        (side("target", vocabulary="text/few"), "text/few has 5 types, special ones included, .* has 12 rows"),
        (side("target", vocabulary="text/many"), "text/many has 24 types, special ones included, .* has 12 rows"),
        (side("target", vocabulary="text/one_more"), "text/one_more has 12 types, special ones included"),
    ],
)
def test_text_that_does_not_fit_is_refused(metadata, message):
    """What has too few or too many lines is not read further, whatever it contains."""
    words = "".join(f"{number} 1\n" for number in range(8))
    texts = {"broken": b"\xff\n", "few": b"x\n", "many": b"x\n" * 20, "one_more": f"{words}x 1".encode()}
    tensors = {f"text/{name}": np.frombuffer(text, np.uint8) for name, text in texts.items()}
    tensors |= {"text/table": np.zeros((1, 8), np.uint8), "text/number": np.zeros((), np.uint8)}
    tensors |= {"mask/a": TENSORS["text/source_vocabulary"], **TENSORS}
    with pytest.raises(UserError, match=message):
        read_text(file_of(metadata, tensors), TYPES)


@pytest.mark.parametrize(("size", "message"), [(2**24, "not one whole zstd frame"), (2**24 + 1, "which is not a text")])
def test_a_text_has_at_most_16_mib(size, message):
    name = "text/source_vocabulary"
    file = TicketFile(0, 0, {"text": METADATA}, {**TENSORS, name: np.zeros(1, np.uint8)}, {name: ("zstd", (size,))})
    with pytest.raises(UserError, match=message):
        read_text(file, TYPES)

"""The text of enwik8, as language models are compared on it."""

from __future__ import annotations

import dataclasses
import zipfile

import pytest

from one_layer.data import stream_corpus
from one_layer.data.config import DataConfig
from one_layer.data.sources import plain_parts
from one_layer.system.errors import UserError


def test_enwik8_is_split_as_published(tmp_path, monkeypatch):
    parts = {"train": (0, 90), "valid": (90, 95), "test": (95, 100)}
    assert {name: (first / 1e6, end / 1e6) for name, (first, end) in plain_parts.ENWIK8.items()} == parts
    monkeypatch.setattr(plain_parts, "ENWIK8", parts)
    monkeypatch.setattr(plain_parts, "ENWIK8_BYTES", 100)
    chosen = DataConfig(source="enwik8", directory=str(tmp_path), block=4)
    with zipfile.ZipFile(tmp_path / "enwik8.zip", "w") as archive:
        archive.writestr("enwik8", bytes(range(100)))
    corpus = stream_corpus.load(chosen)
    assert corpus.train.source.tokens.tolist() == list(range(4, 94))
    assert corpus.tests["test"].source.tokens.tolist() == list(range(99, 104))
    assert not stream_corpus.load(dataclasses.replace(chosen, tests=())).tests
    with pytest.raises(
        UserError, match=r"data\.valid='test' has no effect with data\.source='enwik8', which has parts of its own"
    ):
        stream_corpus.load(dataclasses.replace(chosen, valid="test"))
    with zipfile.ZipFile(tmp_path / "enwik8.zip", "w") as archive:
        archive.writestr("enwik8", bytes(range(100)))
    monkeypatch.setattr(plain_parts, "ENWIK8_BYTES", 101)
    with pytest.raises(UserError, match=r"has 100 bytes, but enwik8 has 101"):
        stream_corpus.load(chosen)

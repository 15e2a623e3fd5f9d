"""Texts of language models from TensorFlow Datasets and from enwik8."""

from __future__ import annotations

import dataclasses
import zipfile

import numpy as np
import pytest
import tensorflow_datasets as tfds

from one_layer.data import stream_corpus
from one_layer.data.config import DataConfig
from one_layer.data.sources import plain_parts, plain_text
from one_layer.system.errors import UserError
from tests import tfds_sets
from tests.data.test_stream_corpus import config

REVIEWS = [f"Review {number} è lunga.\nTwo lines." for number in range(40)]


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tfds")
    features = tfds.features.FeaturesDict({"text": tfds.features.Text(), "stars": np.int64})
    records = [{"text": text, "stars": 5} for text in REVIEWS]
    tfds_sets.write(folder, "reviews", features, {"train": records, "test": records[:7]})
    return folder


def of_reviews(folder, **changes):
    parts = {"tfds_name": "reviews", "train": "train", "tests": ("test",), "held_out": 0.1, "columns": "text"}
    return config(folder, source="tfds_text", **(parts | changes))


def read_back(ids):
    """The records of a text of bytes; TFDS stores them in an order of its own."""
    end = "Two lines."
    text = bytes((np.asarray(ids) - 4).astype(np.uint8)).decode()
    return {f"{record}{end}" for record in text.split(f"{end}\n")[:-1]}


@pytest.mark.parametrize("piece", [16, 1 << 20])
def test_a_data_set_of_tfds_is_the_text_of_its_records(reviews, monkeypatch, piece):
    monkeypatch.setattr(plain_text, "_PIECE", piece)
    corpus = stream_corpus.load(of_reviews(reviews))
    parts = [corpus.train, corpus.valid, corpus.tests["test"]]
    whole = np.concatenate([ids for part in parts for ids in part.source.chunks()])
    assert read_back(whole) == set(REVIEWS)


def test_splits_of_a_data_set_are_parts_and_a_store_knows_its_files(reviews, tmp_path):
    chosen = of_reviews(reviews, held_out=0.0, valid="train[:5]", columns="", store=str(tmp_path / "store"))
    corpus = stream_corpus.load(chosen)
    assert read_back(corpus.tests["test"].source.tokens) == set(REVIEWS[:7])
    assert len(read_back(corpus.valid.source.tokens) & set(REVIEWS)) == 5
    assert stream_corpus.load(chosen).fingerprints() == corpus.fingerprints()
    assert len(list((tmp_path / "store").glob("*/manifest.json"))) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"columns": "stars"}, "record 1: the field 'stars' is no text"),
        ({"columns": "title"}, "has no field 'title'; it has"),
        ({"columns": "text,stars"}, "must be one field"),
        ({"held_out": 0.0}, "has no split 'valid'; it has"),
        ({"tfds_name": ""}, "data.tfds_name is empty"),
        ({"tfds_name": "nowhere"}, "nowhere is not prepared"),
    ],
)
def test_a_data_set_without_such_a_text_is_refused(reviews, changes, message):
    with pytest.raises(UserError, match=message):
        stream_corpus.load(of_reviews(reviews, **changes))


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

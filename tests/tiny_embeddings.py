"""Vocabularies, configs and tables small enough for the tests of pre-trained embeddings."""

import numpy as np

from one_layer.data.text.assets import TextAssets
from one_layer.data.text.preprocess import Preprocessing
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.importers.embeddings import embedding_rows, table_sides
from one_layer.models import ModelConfig

GERMAN, ENGLISH = Vocabulary.build(["ein haus ein baum"]), Vocabulary.build(["a house or a tree"])
WORDS = {"de": GERMAN, "en": ENGLISH}


def assets(source="de", target="en", vocabularies=WORDS) -> TextAssets:
    sides = [Preprocessing(language) for language in (source, target)]
    return TextAssets(vocabularies[source], vocabularies[target], *sides)


def config(source, path, vocabulary="", text=None, **changes) -> ModelConfig:
    sizes = map(len, (text or assets()).vocabularies)
    where = {"embedding_source": source, "embedding_path": str(path), "embedding_vocabulary": str(vocabulary)}
    small = {"d_model": 6, "ffn": 4, "heads": 1, "encoder_layers": 1, "decoder_layers": 1}
    return ModelConfig(*sizes, **{**small, **where, **changes})


def rows_from(source, path, vocabulary="", text=None, **changes) -> dict[str, np.ndarray]:
    model = config(source, path, vocabulary, text, **changes)
    return embedding_rows(model, table_sides(model, text or assets()))


def normal(count, features=6, seed=0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, features)).astype(np.float32)


def write(path, tokens, rows) -> np.ndarray:
    """Writes a file of embeddings as text, and returns its rows."""
    lines = [f"{token} {' '.join(map(repr, row.tolist()))}\n" for token, row in zip(tokens, rows, strict=True)]
    path.write_text("".join([f"{len(rows)} {rows.shape[1]}\n", *lines]), "utf-8")
    return rows


def same_bits(ours, theirs) -> None:
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.dtype == theirs.dtype == np.float32 and ours.shape == theirs.shape
    np.testing.assert_array_equal(ours.view(np.uint32), theirs.view(np.uint32))

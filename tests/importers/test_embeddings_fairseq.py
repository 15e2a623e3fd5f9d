"""Pre-trained tables from fairseq's checkpoints: right rows for each side, and clear errors."""

from __future__ import annotations

import numpy as np
import pytest

from one_layer.data.text.vocabulary import Vocabulary
from one_layer.importers import embeddings as embedding_sources
from one_layer.system.errors import UserError
from tests.tiny_embeddings import ENGLISH, GERMAN, WORDS, assets, normal, rows_from, same_bits

# These tests replace the reading of the file, which tests/commands/test_import_fairseq.py tests.


def fairseq_files(folder, monkeypatch, state, options=None, dictionaries=WORDS) -> str:
    for language, vocabulary in dictionaries.items():
        vocabulary.save(folder / f"dict.{language}.txt")
    monkeypatch.setattr(embedding_sources, "read_checkpoint", lambda path: (state, options or {}))
    return str(folder / "model.pt")


def state_of(source=GERMAN, target=ENGLISH) -> dict[str, np.ndarray]:
    return {
        "encoder.embed_tokens.weight": normal(len(source), seed=1),
        "decoder.embed_tokens.weight": normal(len(target), seed=2),
        "decoder.output_projection.weight": normal(len(target), seed=3),
    }


@pytest.mark.parametrize("options", [{}, {"source_lang": "de", "target_lang": "en"}])
def test_the_encoder_s_table_is_used_for_its_source_language(tmp_path, monkeypatch, options):
    state = state_of()
    found = rows_from("fairseq", fairseq_files(tmp_path, monkeypatch, state, options))
    same_bits(found["source_embedding"], state["encoder.embed_tokens.weight"])
    same_bits(found["target_embedding"], state["decoder.embed_tokens.weight"])


def test_a_checkpoint_of_the_other_direction_gives_its_tables_by_language(tmp_path, monkeypatch):
    state = state_of(ENGLISH, GERMAN)
    path = fairseq_files(tmp_path, monkeypatch, state, {"source_lang": "en", "target_lang": "de"})
    found = rows_from("fairseq", path, tmp_path / "dict.{language}.txt")
    same_bits(found["source_embedding"], state["decoder.embed_tokens.weight"])
    same_bits(found["target_embedding"], state["encoder.embed_tokens.weight"])


@pytest.mark.parametrize("shared", [True, False])
def test_a_joined_table_is_used_for_both_sides_and_any_language(tmp_path, monkeypatch, shared):
    joined = Vocabulary.build(["ein haus a house"])
    table = normal(len(joined))
    state = {f"{stack}.embed_tokens.weight": table.copy() for stack in ("encoder", "decoder")}
    options = {"source_lang": "fr", "target_lang": "en"}
    path = fairseq_files(tmp_path, monkeypatch, state, options, dict.fromkeys(WORDS, joined))
    found = rows_from("fairseq", path, text=assets(vocabularies=dict.fromkeys(WORDS, joined)), shared_embedding=shared)
    assert set(found) == ({"shared_embedding"} if shared else {"source_embedding", "target_embedding"})
    for rows in found.values():
        same_bits(rows, table)


def test_filler_words_of_dictionaries_count_as_rows(tmp_path, monkeypatch):
    path = fairseq_files(tmp_path, monkeypatch, {**state_of(), "encoder.embed_tokens.weight": normal(8)})
    (tmp_path / "dict.de.txt").write_text("ein 2\nhaus 1\nbaum 1\nmadeupword0000 0\n", "utf-8")
    same_bits(rows_from("fairseq", path)["source_embedding"][4], normal(8)[4])
    (tmp_path / "dict.de.txt").write_text("ein 2\nhaus 1\nbaum 1\n", "utf-8")
    with pytest.raises(
        UserError, match=r"dict\.de\.txt has 7 types .* encoder\.embed_tokens\.weight has 8 rows; give the"
    ):
        rows_from("fairseq", path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decoder.embed_tokens.weight": None}, r"has no decoder\.embed_tokens\.weight \(looked for: encoder\.embed"),
        ({"encoder.embed_tokens.weight": normal(7, 5)}, "vectors of 5 features, but model.d_model is 6"),
        (
            {"encoder.embed_tokens.weight": np.full((7, 6), np.inf, np.float32)},
            "has inf in row 0 .*every value must be finite",
        ),
        ({"encoder.embed_tokens.scores": normal(7)}, "has scores, .* import_fairseq and use the run"),
        ({"encoder.embed_tokens.weight": np.zeros((7, 6), int)}, "is int64 .*give a floating-point table"),
    ],
)
def test_problems_of_a_checkpoint_are_named(tmp_path, monkeypatch, change, message):
    state = {name: array for name, array in {**state_of(), **change}.items() if array is not None}
    with pytest.raises(UserError, match=rf"model\.pt.*{message}") as caught:
        rows_from("fairseq", fairseq_files(tmp_path, monkeypatch, state))
    assert "\n" not in str(caught.value)


def test_a_dictionary_without_a_common_token_is_refused(tmp_path, monkeypatch):
    path = fairseq_files(tmp_path, monkeypatch, state_of(), dictionaries={"de": Vocabulary.build(["un deux trois"])})
    with pytest.raises(UserError, match=r"none of the 3 types of the model's vocabulary for source_embedding; give"):
        rows_from("fairseq", path)
    tmp_path.joinpath("dict.de.txt").unlink()
    with pytest.raises(UserError, match=r"dict\.de\.txt does not exist"):
        rows_from("fairseq", path)

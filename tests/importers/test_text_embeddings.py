"""Pre-trained tables from text or fairseq: rows are matched by token, missing rows are drawn, and errors name file and line."""

import numpy as np
import pytest

from one_layer.data.text.vocabulary import Vocabulary
from one_layer.importers import embeddings as embedding_sources
from one_layer.importers.text_embeddings import read_embeddings
from one_layer.models import ModelConfig, initialize, pretrained_tables
from tests import user_error
from tests.tiny_embeddings import ENGLISH, GERMAN, WORDS, assets, normal, rows_from, same_bits, write

TOKENS = Vocabulary.build(["ein haus ein baum zwei häuser"])


def written(folder, tokens, features=4, seed=0) -> np.ndarray:
    """Writes a file of normal vectors, one per token."""
    return write(folder / "emb.txt", tokens, normal(len(tokens), features, seed))


def test_rows_are_matched_by_token(tmp_path):
    rows = written(tmp_path, ["häuser", "nirgends", "ein", "<pad>"])
    table = read_embeddings(tmp_path / "emb.txt", TOKENS, 4)
    assert table.shape == (len(TOKENS), 4)
    for token, row in {"häuser": 0, "ein": 2, "<pad>": 3}.items():
        np.testing.assert_array_equal(table[TOKENS.tokens.index(token)], rows[row])
    assert np.isnan(table).all(axis=1).sum() == len(TOKENS) - 3


def test_every_float32_reads_back_bit_for_bit(tmp_path):
    """Any finite bits: random values, the ends of the range, denormals, both zeros, and neighbours of powers of two and ten."""
    bits = np.random.default_rng(0).integers(0, 2**32, 40_000, dtype=np.uint32)
    bits = bits[np.isfinite(bits.view(np.float32))]
    powers = np.concatenate([2.0 ** np.arange(-149, 128), 10.0 ** np.arange(-45, 39)]).astype(np.float32)
    beside = [(powers.view(np.uint32) + np.uint32(step)).view(np.float32) for step in (0, 1, 2)]
    before = [(powers.view(np.uint32) - np.uint32(step)).view(np.float32) for step in (1, 2)]
    ends = np.array([0.0, -0.0, np.finfo(np.float32).max, np.finfo(np.float32).tiny], np.float32)
    values = np.concatenate([bits.view(np.float32), *beside, *before, ends])
    values = values[np.isfinite(values)]
    rows = values[: len(values) // 4 * 4].reshape(-1, 4)
    vocabulary = Vocabulary.build([" ".join(f"w{place}" for place in range(len(rows) - 5)) + " \u2028\u00a0"])
    write(tmp_path / "emb.txt", vocabulary.tokens, rows)
    read = read_embeddings(tmp_path / "emb.txt", vocabulary, 4)
    np.testing.assert_array_equal(read.view(np.uint32), rows.view(np.uint32))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ein 1 2 3 4\n", "line 1: 'ein 1 2 3 4' must be `N d`"),
        ("9" * 5000 + " 4\n", "line 1: .* must be `N d`"),
        ("1 3\nein 1 2 3\n", "vectors of 3 features, but model.d_model is 4"),
        ("2 4\nein 1 2 3 4\n", "line 1 gives 2 vectors, but the file has 1"),
        ("2 4\nbaum 1 2 3 4\nein 1 2 3\n", "line 3 has 3 numbers after the token; it must have 4"),
        ("1 4\nein 1 x 3 4\n", "line 2: .*'x'"),
        ("1 4\nein 1 nan 3 4\n", "line 2: 'nan' is not a finite float32 number"),
        ("2 4\nein 1 2 3 4\nunbekannt 1 2 3\n", "line 3 has 3 numbers after the token; it must have 4"),
        ("2 4\nunbekannt 1 nan 3 4\nein 1 2 3 4\n", "line 2: 'nan' is not a finite float32 number"),
        ("1 4\nein 1 1e50 3 4\n", "line 2: '1e50' is not a finite float32 number"),
    ],
)
def test_errors_name_the_file_and_the_line(tmp_path, text, message):
    tmp_path.joinpath("emb.txt").write_text(text, "utf-8")
    with user_error(f"emb.txt.*{message}"):
        read_embeddings(tmp_path / "emb.txt", TOKENS, 4)


@pytest.mark.parametrize(
    ("changes", "factor"),
    [
        ({"keep": 0.25, "embedding": "frozen"}, 1.0),
        ({"keep": 0.25}, 2.0),
        ({"keep": 0.25, "scale_by_keep": False}, 1.0),
        ({"keep": 0.75, "init_preset": "reference"}, 2.0),
        ({"keep": 0.75, "init_preset": "reference", "embedding": "frozen"}, 1.0),
        ({"keep": 1.0, "init_preset": "reference"}, 1.0),
    ],
    ids=str,
)
def test_found_rows_are_scaled_for_masks_and_missing_rows_are_drawn(changes, factor):
    """By √(1/keep), and by √(1/(1 - keep)) as in the paper's code, which scales the missing rows, too."""
    config = ModelConfig(9, 9, d_model=4, ffn=4, heads=1, encoder_layers=1, decoder_layers=1, **changes)
    rows = np.full((9, 4), np.nan, np.float32)
    rows[[2, 5]] = np.arange(8).reshape(2, 4)
    table = pretrained_tables(config, 3, {"target_embedding": rows})["target_embedding"]["kernel"]
    np.testing.assert_array_equal(table[[2, 5]], rows[[2, 5]] * np.float32(factor))
    drawn = np.asarray(initialize(config, 3)["random"]["target_embedding"]["kernel"])
    others = [0, 1, 3, 4, 6, 7, 8]
    np.testing.assert_array_equal(table[others], drawn[others] * np.float32(factor if config.reference else 1))


def test_a_file_for_each_language_cannot_serve_a_shared_table(tmp_path):
    """It would get the rows of the source's file alone."""
    for language in ("de", "en"):
        written(tmp_path, TOKENS.tokens[4:], 6)
        tmp_path.joinpath("emb.txt").rename(tmp_path / f"emb.{language}")
    text = assets(vocabularies={"de": TOKENS, "en": TOKENS})
    each = tmp_path / "emb.{language}"
    assert rows_from("text", each, text=text).keys() == {"source_embedding", "target_embedding"}
    with user_error(r"names a file for each language, but model\.shared_embedding is one table for"):
        rows_from("text", each, text=text, shared_embedding=True)
    assert rows_from("text", tmp_path / "emb.de", text=text, shared_embedding=True).keys() == {"shared_embedding"}


# --- fairseq: these tests replace the reading of the file, which tests/commands/test_import_fairseq.py tests.


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
    with user_error(r"dict\.de\.txt has 7 types .* encoder\.embed_tokens\.weight has 8 rows; give the"):
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
    with user_error(rf"model\.pt.*{message}") as caught:
        rows_from("fairseq", fairseq_files(tmp_path, monkeypatch, state))
    assert "\n" not in str(caught.value)


def test_a_dictionary_without_a_common_token_is_refused(tmp_path, monkeypatch):
    path = fairseq_files(tmp_path, monkeypatch, state_of(), dictionaries={"de": Vocabulary.build(["un deux trois"])})
    with user_error(r"none of the 3 types of the model's vocabulary for source_embedding; give"):
        rows_from("fairseq", path)
    tmp_path.joinpath("dict.de.txt").unlink()
    with user_error(r"dict\.de\.txt does not exist"):
        rows_from("fairseq", path)

"""Pre-trained tables from a run or a RoBERTa: right rows, fixed in training, dumped and read back, and clear errors."""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import save_file

from one_layer import tickets
from one_layer.data.text.assets import load_text_assets
from one_layer.data.text.languages import code
from one_layer.data.text.vocabulary import SPECIALS, Vocabulary
from one_layer.importers import embeddings
from one_layer.importers.embeddings import Side, embedding_rows, run_tables, table_sides
from one_layer.layers.materializing import materialize
from one_layer.models import pretrained_tables
from one_layer.runs.restore import restore_run
from one_layer.runs.settings import resolve
from one_layer.training.train import train
from tests import tiny, user_error
from tests.tiny_embeddings import ENGLISH, GERMAN, WORDS, assets, normal, rows_from, same_bits, write

pytestmark = pytest.mark.slow

SHORT = {"train.updates": 4, "data.tests": ()}


# --- a run


@pytest.fixture(scope="module")
def dense(tmp_path_factory):
    """A dense run from German to English whose embeddings were trained."""
    folder = tmp_path_factory.mktemp("dense") / "run"
    train(tiny.run({**SHORT, "model.weights": "dense"}), folder, [])
    return folder


def test_a_run_s_tables_are_those_that_its_model_uses(dense, tmp_path_factory):
    params = restore_run(dense, "best").variables["params"]
    for name, rows in zip(("source", "target"), run_tables(restore_run(dense, "best")), strict=True):
        same_bits(rows, params[f"{name}_embedding"]["kernel"])
    masked = restore_run(tiny.trained(tmp_path_factory), "best")
    product = materialize(masked.variables, masked.config.supermask)["materialized"]
    for name, rows in zip(("source", "target"), run_tables(masked), strict=True):
        same_bits(rows, product[f"{name}_embedding"]["kernel"])
        assert (rows == 0).mean() == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("pair", [("de", "en"), ("en", "de"), ("eng", "de-AT")])
def test_a_run_s_tables_are_chosen_by_language_not_by_direction(dense, pair):
    restored = restore_run(dense, "best")
    both = zip(restored.assets.vocabularies, run_tables(restored), strict=True)
    theirs = dict(zip(restored.assets.languages, both, strict=True))
    new = {
        language: Vocabulary.build([" ".join((*theirs[code(language)][0].tokens[9:3:-1], "zzz"))]) for language in pair
    }
    text = assets(*pair, new)
    found = rows_from("run", dense, text=text, d_model=16)
    for name, language in zip(("source_embedding", "target_embedding"), pair, strict=True):
        vocabulary, table = theirs[code(language)]
        for row, token in zip(found[name], new[language].tokens, strict=True):
            if token == "zzz":
                assert np.isnan(row).all()
            else:
                same_bits(row, table[vocabulary.tokens.index(token)])


def test_runs_that_cannot_be_used_are_refused(dense, tmp_path):
    def refused(message, path=dense, text=None, **changes):
        with user_error(message) as caught:
            rows_from("run", path, text=text, **{"d_model": 16, **changes})
        assert "\n" not in str(caught.value)

    refused(
        r"where there is no run with config\.json and a checkpoint; give the folder of a trained run", path=tmp_path
    )
    shutil.copy(dense / "config.json", tmp_path)
    refused("the run of model.embedding_path cannot be used: .*lacks its file vocabulary.source.txt", path=tmp_path)
    refused("vectors of 16 features, but model.d_model is 8", d_model=8)
    refused("none of the 1 types of the model's vocabulary", text=assets(vocabularies={**WORDS, "de": lone("xx")}))
    refused(
        "tables for de and en, but none for fr; give a model of that language",
        text=assets("fr", vocabularies={**WORDS, "fr": GERMAN}),
    )
    joined = assets(vocabularies=dict.fromkeys(WORDS, GERMAN))
    refused("a table for each of its languages, but model.shared_embedding is one", text=joined, shared_embedding=True)


@pytest.mark.parametrize(
    ("theirs", "language", "place"),
    [
        (("zh_CN", "zh_TW"), "zh_TW", 1),
        (("de", "en_US"), "en", 1),
        (("zh_CN", "zh_TW"), "zh", None),
        (("en", "en"), "en", None),
    ],
)
def test_a_side_takes_the_table_of_its_own_name_and_then_of_its_language(theirs, language, place):
    side = Side(GERMAN, (language,))
    if place is None:
        with user_error(f"has two tables for {language}, and nothing says which one serves"):
            embeddings._serving(False, theirs, side, "it")
    else:
        assert embeddings._serving(False, theirs, side, "it") == place


def lone(word) -> Vocabulary:
    return Vocabulary.build([word])


def test_special_rows_are_included_and_the_count_is_logged(dense, caplog):
    with caplog.at_level("INFO"):
        vocabularies = load_text_assets(dense).vocabularies
        word = vocabularies[0].tokens[5]
        text = assets(vocabularies={"de": lone(f"{word} zzz"), "en": vocabularies[1]})
        found = rows_from("run", dense, text=text, d_model=16)
    table = run_tables(restore_run(dense, "best"))[0]
    same_bits(found["source_embedding"][: len(SPECIALS)], table[: len(SPECIALS)])
    assert "source_embedding: 5 of 6 types found in" in caplog.text
    assert "4 of the 4 special ones among them; the other 1 are drawn" in caplog.text


# --- text (see test_text_embeddings.py)


@pytest.mark.parametrize("tokens", [["nirgends"], [*SPECIALS, "nirgends"]])
def test_a_file_without_a_token_of_the_vocabulary_is_refused(tmp_path, tokens):
    write(tmp_path / "emb.txt", tokens, normal(len(tokens)))
    with user_error(r"emb\.txt has none of the 3 types of the model's vocabulary for source_embed"):
        rows_from("text", tmp_path / "emb.txt")


# --- RoBERTa (test_roberta.py tests its files)


def test_roberta_s_rows_are_matched_by_token_on_both_sides(tmp_path):
    rows = normal(9)
    tokens = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "tree": 8, "baum": 6, "Ġhouse": 5, "a": 4}
    save_file({"roberta.embeddings.word_embeddings.weight": rows}, tmp_path / "model.safetensors")
    (tmp_path / "vocab.json").write_text(json.dumps(tokens), "utf-8")
    found = rows_from("roberta", tmp_path)
    for name, vocabulary in (("source_embedding", GERMAN), ("target_embedding", ENGLISH)):
        for row, token in zip(found[name], vocabulary.tokens, strict=True):
            same_bits(row, rows[tokens[token]]) if token in tokens else np.testing.assert_array_equal(
                np.isnan(row), True
            )
    text = assets(vocabularies={"de": lone("ein"), "en": ENGLISH})
    with user_error("none of the 1 types"):
        rows_from("roberta", tmp_path / "model.safetensors", text=text)


# --- training with pre-trained tables


def test_training_changes_no_bit_and_the_source_is_not_needed_again(tmp_path, dense):
    """Under masks; tests/tasks/classification/test_serve.py covers tables without masks."""
    run = tmp_path / "run"
    vocabularies = load_text_assets(dense).vocabularies
    shutil.copytree(dense, tmp_path / "source")
    where = {"model.embedding_source": "run", "model.embedding_path": str(tmp_path / "source")}
    changes = {**SHORT, **where, "model.embedding": "masked", "train.updates": 4}
    resolved = tiny.run(changes)
    model = resolved.model_config(*map(len, vocabularies))
    expected = pretrained_tables(
        model, resolved.seed, embedding_rows(model, table_sides(model, load_text_assets(dense)))
    )
    train(resolved, run, [])
    before = (run / "frozen.npz").read_bytes()
    shutil.rmtree(tmp_path / "source")
    train(tiny.run({**changes, "train.updates": 8}), run, [])
    assert (run / "frozen.npz").read_bytes() == before
    restored = restore_run(run, "last")
    assert restored.step == 8
    for name in ("source_embedding", "target_embedding"):
        same_bits(restored.variables["frozen"][name]["kernel"], expected[name]["kernel"])
        assert "scores" in restored.variables["params"][name]
    assert not [name for name in restored.variables["random"] if name.endswith("embedding")]
    again = tickets.restore_ticket(run / "ticket.safetensors")
    assert again.config == restored.config
    best = restore_run(run, "best")
    for ours, theirs in zip(run_tables(best), run_tables(again), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    (run / "frozen.npz").unlink()
    with user_error(r"frozen\.npz is not the file that the checkpoint was made with"):
        restore_run(run, "last")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"embedding_source": "bert", "embedding_path": "x"}, "'bert'; known are text, run, fairseq, roberta"),
        ({"embedding_source": "run"}, "'run', but model.embedding_path is empty"),
        (
            {"embedding_source": "run", "embedding_path": "x", "embedding_vocabulary": "y"},
            "leave it out, or give model.embedding_source=fairseq",
        ),
        ({"embedding_vocabulary": "y"}, "leave it out, or give model.embedding_source=fairseq"),
        ({"embedding_source": "run", "embedding_path": "x", "embedding": "trained"}, "pre-trained tables stay fixed"),
    ],
)
def test_config_keys_that_exclude_each_other_are_refused(changes, message):
    with user_error(message):
        resolve(tiny.config({f"model.{name}": value for name, value in changes.items()}))

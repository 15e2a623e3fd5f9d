"""RoBERTa's word and position embeddings from its files, and one sentence for each problem of these files."""

import json

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from one_layer.importers.config_json import ConfigJson
from one_layer.importers.roberta import read_options
from one_layer.importers.safetensors_files import folder_state, roberta_positions, roberta_table
from tests import user_error
from tests.tiny_roberta import OPTIONS

PLACES = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "Ġthe": 5, "ä": 4}


def normal(count, features=4) -> np.ndarray:
    return np.random.default_rng(count).standard_normal((count, features)).astype(np.float32)


@pytest.fixture
def model(tmp_path):
    """Returns a function that writes the two files; `None` leaves a file unchanged."""

    def write(tensors=None, places: object = None):
        if tensors is not None:
            save_file(tensors, tmp_path / "model.safetensors")
        if places is not None:
            text = places if isinstance(places, bytes) else json.dumps(places).encode()
            (tmp_path / "vocab.json").write_bytes(text)
        return tmp_path

    prefix = "roberta.embeddings"
    tables = {f"{prefix}.word_embeddings.weight": normal(7), f"{prefix}.position_embeddings.weight": normal(10)}
    write({**tables, "lm_head.bias": np.zeros(7, np.float32)}, PLACES)
    return write


def refused(message, call, *arguments) -> None:
    with user_error(message) as caught:
        call(*arguments)
    assert "\n" not in str(caught.value)


def test_path_is_a_folder_or_a_file_and_the_vocabulary_can_be_elsewhere(model, tmp_path):
    folder = model()
    (folder / "vocab.json").rename(folder / "other.json")
    for path in (folder, folder / "model.safetensors", str(folder)):
        table = roberta_table(path, folder / "other.json", 4)
        assert table.places == PLACES and "word_embeddings" in table.name
        np.testing.assert_array_equal(table.rows, normal(7))
    refused(r"vocab\.json does not exist; give the vocab\.json of the model", roberta_table, folder, "", 4)


@pytest.mark.parametrize("prefix", ["", "roberta."])
@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16, np.float32])
def test_every_float_type_is_converted_exactly(model, prefix, kind):
    names = ("word", "position")
    folder = model({f"{prefix}embeddings.{name}_embeddings.weight": normal(9).astype(kind) for name in names})
    for rows in (roberta_table(folder, None, 4).rows, roberta_positions(folder, 4)):
        assert rows.dtype == np.float32
        np.testing.assert_array_equal(rows, normal(9).astype(kind).astype(np.float32))


def test_positions_equal_the_file_s_rows(model):
    np.testing.assert_array_equal(roberta_positions(model(), 4), normal(10))
    refused(r"position_embeddings\.weight is F32 \[10, 4\], but model\.d_model is 6", roberta_positions, model(), 6)


def test_the_vector_of_the_one_type_of_tokens_is_a_part_of_every_position(model):
    tables = {"position": normal(10), "token_type": normal(2)}
    folder = model({f"embeddings.{name}_embeddings.weight": table for name, table in tables.items()})
    np.testing.assert_array_equal(roberta_positions(folder, 4), normal(10) + normal(2)[0])


def test_only_the_requested_tensor_is_read(model):
    """Other tensors in the file may have a type that NumPy lacks, or hold NaN."""
    broken = np.full((10, 4), np.nan, np.float32)
    folder = model({"embeddings.word_embeddings.weight": normal(7), "embeddings.position_embeddings.weight": broken})
    assert roberta_table(folder, None, 4).rows.shape == (7, 4)
    refused(r"position_embeddings\.weight has nan in row 0", roberta_positions, folder, 4)


def test_a_vocabulary_of_another_model_is_refused(model):
    """tests/data/text/test_vocabulary.py has files that are damaged."""
    message = r"vocab\.json contains the id 7, but .*word_embeddings\.weight has 7 rows"
    refused(message, roberta_table, model(places={"a": 7}), None, 4)


def test_invalid_files_are_refused(model, tmp_path):
    folder = model()
    refused("does not exist; give RoBERTa's", roberta_table, tmp_path / "nowhere", None, 4)
    refused(r"word_embeddings\.weight is F32 \[7, 4\], but model\.d_model is 6", roberta_table, folder, None, 6)
    whole = (folder / "model.safetensors").read_bytes()
    for content in (b"", whole[:5], whole[:-3], b"\xff" * 20, whole.replace(b"F32", b"F99")):
        (folder / "model.safetensors").write_bytes(content)
        refused(r"model\.safetensors is not a whole safetensors file", roberta_table, folder, None, 4)
        refused(r"model\.safetensors is not a whole safetensors file", folder_state, folder)
    model({"bert.embeddings.word_embeddings.weight": normal(7)})
    wanted = r"has neither roberta\.embeddings\.word_embeddings\.weight nor embeddings\.word_embeddings\.weight; give"
    refused(wanted, roberta_table, folder, None, 4)
    model({"embeddings.word_embeddings.weight": np.zeros((7, 4), int)})
    refused(r"word_embeddings\.weight is I64 \[7, 4\]", roberta_table, folder, None, 4)
    infinite = normal(7)
    infinite[3, 1] = np.inf
    model({"embeddings.word_embeddings.weight": infinite})
    refused("has inf in row 3 .*every value must be finite", roberta_table, folder, None, 4)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "config.json does not exist; give the folder of a model"),
        ("{", r"config\.json cannot be read \(Expecting"),
        ("[]", r"config\.json cannot be read \(it is not a JSON object\)"),
        ('{"architectures": ["BertModel"]}', "BertModel"),
    ],
)
def test_a_config_that_is_not_roberta_s_is_refused(tmp_path, content, message):
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    refused(message, lambda: read_options(ConfigJson(tmp_path / "config.json")))


def test_both_names_of_the_gelu_by_tanh_are_read(tmp_path):
    for name in ("gelu_new", "gelu_pytorch_tanh"):
        (tmp_path / "config.json").write_text(json.dumps({**OPTIONS, "hidden_act": name}))
        assert read_options(ConfigJson(tmp_path / "config.json")).model["activation"] == "gelu_tanh"

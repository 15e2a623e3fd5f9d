"""The configs of language models resolve, and signs take the bytes that the log says."""

import pytest

from configs import lm, mlm
from one_layer.models import shapes
from one_layer.models.accounting import describe_ticket
from one_layer.runs.settings import resolve

BYTES = 260  # types of a vocabulary of bytes


def resolved(arg: str):
    config = lm.get_config(arg)
    config.data.directory = "somewhere"
    return resolve(config.to_dict())


@pytest.mark.parametrize("size", lm.SIZES)
@pytest.mark.parametrize("weights", ["dense", "one_layer", "multi_layer", "signs"])
def test_every_size_resolves(weights, size):
    run = resolved(f"{weights}_{size}")
    layers, d_model, ffn, heads = lm.SIZES[size][0]
    model = run.model_config(BYTES, BYTES)
    assert (model.depth("decoder"), model.d_model, model.ffn, model.heads) == (layers, d_model, ffn, heads)
    assert model.weights == ("one_layer" if weights == "signs" else weights)
    assert run.evaluation.stride < run.data.block == lm.SIZES[size][1]
    assert run.data.source == ("enwik8" if size == "enwik8" else "plain")


def test_the_ticket_of_signs_takes_what_is_counted_by_hand():
    """Four layers of signs and gains, biases and norms, one byte each, and a table in 4 bits."""
    model = resolved("signs_mini").model_config(BYTES, BYTES)
    signs = 4 * 128 * 128 + 2 * 128 * 512
    vectors = 2 * (4 * 128 + 512 + 128) + 2 * 2 * 128  # gains and biases of six matrices, two norms
    steps = 4 * (6 + 6 + 2 * 2)  # in float32, one for each vector
    table = BYTES * (128 // 2 + 4)
    (line,) = describe_ticket(model)
    assert f"at most {4 * (signs // 8 + vectors + steps) + table:,} bytes" in line


def test_signs_train_a_small_table_and_vectors_but_no_matrix():
    model = resolved("signs_mini").model_config(BYTES, BYTES)
    trained = {path: shape for path, shape in shapes(model).items() if path[0] == "params"}
    assert {path[-1] for path in trained} == {"scores", "bias", "scale", "column_gain", "kernel"}
    assert [shape for path, shape in trained.items() if path[-1] == "kernel"] == [(BYTES, model.d_model)], "the table"
    plain = resolved("one_layer_mini").model_config(BYTES, BYTES)
    assert (model.d_model, model.ffn) == (plain.d_model, plain.ffn)


@pytest.mark.parametrize("size", mlm.SIZES)
@pytest.mark.parametrize("weights", ["dense", "one_layer", "multi_layer"])
def test_every_size_of_a_masked_language_model_resolves(weights, size):
    config = mlm.get_config(f"{weights}_{size}")
    config.data.directory = "somewhere"
    run = resolve(config.to_dict())
    model = run.model_config(BYTES, BYTES)
    assert (model.depth("encoder"), model.d_model, model.ffn, model.heads) == mlm.SIZES[size][0]
    assert model.weights == weights and (run.data.block, run.data.unit) == (mlm.SIZES[size][1], "bpe")

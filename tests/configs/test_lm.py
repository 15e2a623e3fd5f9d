"""The configs of language models resolve, and the ticket of artifact16mb fits."""

from __future__ import annotations

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


def test_the_ticket_of_artifact16mb_fits():
    """By hand: ten layers of signs and gains, biases and norms, one byte each, a table in 4 bits, and 20 kB for all else."""
    model = resolved("artifact16mb").model_config(BYTES, BYTES)
    signs = 4 * 1024 * 1024 + 2 * 1024 * 4032
    vectors = 2 * (4 * 1024 + 4032 + 1024) + 2 * 2 * 1024  # gains and biases of six matrices, two norms
    steps = 4 * (6 + 6 + 2 * 2)  # in float32, one for each vector
    table = BYTES * (1024 // 2 + 4)
    most = 10 * (signs // 8 + vectors + steps) + table
    assert most + 20_000 < 16_000_000
    (line,) = describe_ticket(model)
    assert f"at most {most:,} bytes" in line


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

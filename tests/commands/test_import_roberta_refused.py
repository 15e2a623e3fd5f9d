"""Folders and options of a RoBERTa that cannot be imported, and models that cannot be written as one: a sentence each, nothing written."""

from __future__ import annotations

import numpy as np
import pytest

from one_layer.importers import roberta
from one_layer.models import ModelConfig
from one_layer.system.errors import UserError
from tests.tiny_roberta import CLASSIFIER, FFN, TOKENS, D, tensors

pytestmark = pytest.mark.slow


def changed(name, array):
    return {**tensors(), name: array}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"options": {"model_type": "bert", "architectures": ["BertForMaskedLM"]}},
            r"type 'bert', .*BertForMaskedLM; known",
        ),
        (
            {"options": {"architectures": ["RobertaForTokenClassification"]}},
            "architecture RobertaForTokenClassification; known",
        ),
        (
            {"options": {"vocab_size": 99}},
            r"vocab_size of config\.json is 99; give the tokenizer and the weights of one model",
        ),
        (
            {"tokens": (*TOKENS, "more")},
            rf"vocab\.json has {len(TOKENS) + 1} tokens, the word embeddings .* have {len(TOKENS)} rows",
        ),
        ({"tokens": (*TOKENS[:-1], "<other>")}, r"vocab\.json has no token <mask>, which masked language models need"),
        (
            {"state": tensors("classifier")},
            r"do not fit this model: unknown: classifier\.dense\.bias \[8\], ",
        ),
        (
            {"state": changed("lm_head.decoder.bias", np.zeros(3, np.float32))},
            r"lm_head\.decoder\.bias is not the same as",
        ),
        (
            {"state": changed("lm_head.bias", np.full(264, np.nan, np.float32))},
            r"lm_head\.bias has a number that is not finite",
        ),
    ],
)
def test_folders_that_cannot_be_imported(roberta, command, tmp_path, given, message):
    with pytest.raises(UserError, match=message) as caught:
        command(roberta(**given))
    assert "\n" not in str(caught.value) and not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"id2label": {"0": "a,b", "1": "c"}},
            r"the labels a,b, c of config\.json have commas or colons; give other names",
        ),
        ({"id2label": {"0": "a", "2": "b"}}, r"id2label must have a name for each of the numbers from 0"),
        (
            {"problem_type": "regression"},
            r"problem_type is 'regression', but a classifier here gives each text exactly one",
        ),
    ],
)
def test_classifiers_that_cannot_be_imported(roberta, command, tmp_path, options, message):
    with pytest.raises(UserError, match=message):
        command(roberta({**CLASSIFIER, **options}, "classifier"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--config.model.d_model=16"], r"--config\.model\.d_model=16, but .* has 8; leave this option out"),
        (
            ["--config.model.weights=one_layer"],
            r"each layer of RoBERTa has parameters of its own; give model\.weights=dense",
        ),
        (["--config.data.directory=nowhere"], r"nowhere"),
    ],
)
def test_options_that_do_not_fit(roberta, command, tmp_path, arguments, message):
    with pytest.raises(UserError, match=message):
        command(roberta(), *arguments)
    assert not (tmp_path / "run").exists()


def test_missing_files_are_named_together(roberta, command):
    folder = roberta()
    (folder / "merges.txt").unlink()
    (folder / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"has no model\.safetensors and no merges\.txt; give the folder of a RoBERTa"):
        command(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"positions": "sinusoidal"},
            r"model\.positions is 'sinusoidal', but a model in RoBERTa's format has learned or frozen",
        ),
        ({"embedding_norm": False}, r"model\.embedding_norm is False"),
        ({"norm_position": "pre"}, r"model\.norm_position is 'pre'"),
        ({"encoder_layers": "LR", "reservoir": "ffn"}, r"model\.reservoir is 'ffn'"),
    ],
)
def test_models_that_are_no_roberta_are_not_written(changes, message):
    small = {"d_model": D, "ffn": FFN, "heads": 2, "encoder_layers": 1, "decoder_layers": 0, "family": "masked_lm"}
    config = ModelConfig(
        10, 10, **{**small, "weights": "dense", "positions": "learned", "embedding_norm": True, **changes}
    )
    with pytest.raises(UserError, match=message):
        roberta.export({"params": {}, "random": {}}, config)

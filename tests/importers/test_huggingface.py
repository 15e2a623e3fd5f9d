"""Models as folders of transformers: the same logits, the same ids for a text, and W ⊙ M in model.safetensors."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from one_layer import tickets
from one_layer.data.config import DataConfig
from one_layer.data.special_tokens import EOS, PAD
from one_layer.data.stream_corpus import unit_of
from one_layer.data.text import byte_level
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.preprocess import Preprocessing
from one_layer.data.text.vocabulary import SPECIALS, Vocabulary
from one_layer.importers import engines, llama, translation_weights
from one_layer.models import ModelConfig, build
from one_layer.tasks.model import prepared
from tests import user_error
from tests.fuzz_tickets import assets
from tests.tiny_tickets import trained

SIZES = {"d_model": 8, "ffn": 12, "heads": 2}
POST = ModelConfig(12, 14, **SIZES, encoder_layers=2, decoder_layers=3)
ONE_TABLE = POST.replace(source_vocab=14, shared_embedding=True)
TRANSLATION = {
    "post-LN": POST,
    "post-LN, one table, biases": ONE_TABLE.replace(norm="affine", bias=True, activation="gelu"),
    "pre-LN, a layer string": ONE_TABLE.replace(norm_position="pre", encoder_layers="LSRS"),
}
SOURCE = np.array([[5, 7, 6, 4, EOS], [8, 4, EOS, PAD, PAD]], np.int32)
TARGET = np.array([[EOS, 5, 9, 4, 13], [EOS, 7, 6, 11, PAD]], np.int32)
MERGES = "#version: 0.2\nĠ t\nĠt h\nĠth e\n"
TEXT = "the then\n  The ä the\n\n世 the."


def causal(**changes):
    keys = {**SIZES, "encoder_layers": 0, "decoder_layers": 3, "block": "modern", "norm_position": "pre"}
    return {"family": "decoder", **keys, **changes}


def restored(config, texts, folder, **settings):
    ticket = tickets.make(config, 7, trained(config), texts, **settings)
    tickets.save(folder / "t.safetensors", ticket)
    return tickets.restore_ticket(folder / "t.safetensors")


def language_model(unit, folder, **changes):
    """The trained model of a ticket, with the vocabulary of the unit."""
    merges = MERGES if unit == "bpe" else None
    vocabulary = Vocabulary((*SPECIALS, *byte_level.pieces(merges or "")))
    kind = {"bpe_kind": "byte-level"} if merges else {}
    codes = {"bpe_codes": "merges.txt"} if merges else {}
    steps = Preprocessing("en", codes=merges, **kind)
    config = ModelConfig(len(vocabulary), len(vocabulary), **causal(**changes))
    data = DataConfig(source="plain", unit=unit, block=256, directory="x", **kind, **codes)
    return restored(config, TextAssets(vocabulary, vocabulary, steps, steps), folder, data=data)


@pytest.mark.parametrize("unit", ["bytes", "bpe"])
def test_a_tokenizer_gives_the_ids_of_the_unit(tmp_path, unit):
    from tokenizers import Tokenizer

    model = language_model(unit, tmp_path)
    engines.export(model, "huggingface", tmp_path / "out")
    tokenizer, ours = Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json")), unit_of(model.data, model.assets)
    for text in (TEXT, "", "\n", "the the", "a <s> the</s> <mask><unk>"):
        found = tokenizer.encode(text)
        assert found.ids == [EOS, *ours.ids(text).tolist()]
        known = [number for number in found.ids[1:] if number >= len(SPECIALS)]
        assert tokenizer.decode(known) == ours.text(known)


def test_the_file_of_a_causal_model_holds_the_products(tmp_path):
    model = language_model("bytes", tmp_path)
    engines.export(model, "huggingface", tmp_path / "out")
    state = load_file(tmp_path / "out" / "model.safetensors")
    for layer in range(3):
        for name, role in (("self_attn.q_proj", "self_attention/query"), ("mlp.down_proj", "ffn/out")):
            product = model.masks[f"decoder/{role}"][layer] * model.random[f"decoder/{role}"]
            np.testing.assert_array_equal(state[f"model.layers.{layer}.{name}.weight"], product.T)
    table = model.masks["decoder/embedding"] * model.random["decoder/embedding"]
    np.testing.assert_array_equal(state["lm_head.weight"], table)
    np.testing.assert_array_equal(state["model.embed_tokens.weight"], table * np.float32(np.sqrt(8)))
    settings = json.loads((tmp_path / "out" / "config.json").read_text())
    assert settings["architectures"] == ["LlamaForCausalLM"] and settings["max_position_embeddings"] == 256


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"block": "paper"},
            "is a decoder of 3 layers with model.block=paper, but LlamaForCausalLM has the layers of causal models",
        ),
        ({"norm": "plain"}, "model.norm is 'plain', but LlamaForCausalLM has RMSNorm"),
        (
            {"decoder_layers": "SRS", "reservoir": "gru"},
            "model.decoder_layers is 'SRS' with model.reservoir=gru, but the format huggingface",
        ),
    ],
)
def test_a_model_that_is_no_llama_is_refused_by_name(changes, message):
    with user_error(message):
        llama.check(ModelConfig(14, 14, **causal(**changes)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"norm_position": "pre"},
            "a pre-LN model with two tables, but the pre-LN translation models of transformers have one",
        ),
        (
            {"norm_position": "pre", "block": "modern"},
            "model.block is modern and model.norm rms_plain, but no translation model",
        ),
        ({"encoder_layers": "SR", "reservoir": "conv"}, "model.reservoir=conv, but the format"),
        ({"norm_epsilon": 1e-6}, "model.norm_epsilon is 1e-06, but a translation model of transformers has 1e-05"),
    ],
)
def test_a_translation_model_without_a_class_is_refused_by_name(changes, message):
    with user_error(message):
        translation_weights.class_of(POST.replace(**{"norm": None, **changes}))


def test_a_classifier_without_position_table_is_refused(tmp_path):
    from tests import ROOT

    model = tickets.restore_ticket(ROOT / "tickets" / "sst2.safetensors")
    with user_error(r"reads text in another way than RoBERTa|model.positions is 'sinusoidal'"):
        engines.export(model, "huggingface", tmp_path / "out")
    assert not list(tmp_path.iterdir())


def read_by_transformers(kind, folder):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed (requirements-torch.txt)")
    reader, report = getattr(transformers, kind).from_pretrained(folder, output_loading_info=True)
    assert not report["unexpected_keys"] and not report["mismatched_keys"] and not report["missing_keys"]
    return reader.eval()


@pytest.mark.parametrize(
    "changes",
    [{}, {"norm": "rms", "rotary_base": 50.0, "norm_epsilon": 0.1}, {"decoder_layers": "LSRS"}, {"weights": "dense"}],
)
def test_a_causal_model_has_the_same_logits(tmp_path, changes):
    torch = pytest.importorskip("torch", reason="torch is not installed (requirements-torch.txt)")
    model = language_model("bpe", tmp_path, **changes)
    engines.export(model, "huggingface", tmp_path / "out")
    reader = read_by_transformers("LlamaForCausalLM", tmp_path / "out")
    ours = build(model.config).apply(prepared(model.config, model.variables), SOURCE)
    inputs = {"input_ids": torch.tensor(SOURCE).long(), "attention_mask": torch.tensor(SOURCE != PAD).long()}
    their = reader(**inputs).logits.detach().numpy()
    real = SOURCE != PAD
    np.testing.assert_allclose(np.asarray(ours)[real], their[real], rtol=1e-5, atol=1e-5)


def test_transformers_continues_a_text_alike(tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed (requirements-torch.txt)")
    model = language_model("bytes", tmp_path)
    engines.export(model, "huggingface", tmp_path / "out")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    reader = read_by_transformers("LlamaForCausalLM", tmp_path / "out")
    ids = tokenizer("the", return_tensors="pt")
    assert ids["input_ids"][0].tolist() == [EOS, *unit_of(model.data, model.assets).ids("the").tolist()]
    found = reader.generate(**ids, max_new_tokens=8, do_sample=False, eos_token_id=-1)[0].tolist()
    logits = np.asarray(build(model.config).apply(prepared(model.config, model.variables), np.array([found], np.int32)))
    assert found[4:] == logits[0, 3:-1].argmax(axis=1).tolist()


@pytest.mark.parametrize("name", TRANSLATION)
def test_a_translation_model_has_the_same_logits(tmp_path, name):
    torch = pytest.importorskip("torch", reason="torch is not installed (requirements-torch.txt)")
    config = TRANSLATION[name]
    model = restored(config, assets(config), tmp_path)
    engines.export(model, "huggingface", tmp_path / "out")
    reader = read_by_transformers(translation_weights.class_of(config), tmp_path / "out")
    ours = build(config).apply(prepared(config, model.variables), SOURCE, TARGET)
    ids, seen, targets = (torch.tensor(each).long() for each in (SOURCE, SOURCE != PAD, TARGET))
    outputs = reader(input_ids=ids, attention_mask=seen, decoder_input_ids=targets, use_cache=False)
    their = outputs.logits.detach()
    real = TARGET != PAD
    np.testing.assert_allclose(np.asarray(ours)[real], their.numpy()[real], rtol=1e-5, atol=1e-5)

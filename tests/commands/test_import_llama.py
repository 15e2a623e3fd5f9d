"""A Llama becomes a run with the same logits, whose weights are fixed and whose masks are trained."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from one_layer.commands import import_llama
from one_layer.data.special_tokens import EOS
from one_layer.models import build
from one_layer.runs.restore import restore_run
from tests import user_error
from tests.commands.hugging_face import DENSE, END, TOKENS, imported, ones, same_logits, write

D, FFN, LAYERS, HEADS, KEY_HEADS = 8, 12, 2, 4, 2
OPTIONS = {
    **{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": len(TOKENS), "hidden_size": D},
    **{"intermediate_size": FFN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "rms_norm_eps": 1e-3},
    **{"num_key_value_heads": KEY_HEADS, "max_position_embeddings": 32, "tie_word_embeddings": True},
    **{"bos_token_id": len(TOKENS) - 1, "eos_token_id": len(TOKENS) - 1, "rope_theta": 500.0},
}


def tensors():
    """All tensors of a tied Llama with two heads for each pair of keys and values."""
    random, narrow = np.random.default_rng(1), D // HEADS * KEY_HEADS
    shapes = {"model.embed_tokens": (len(TOKENS), D), "model.norm": (D,)}
    for layer in range(LAYERS):
        own = {"self_attn.q_proj": (D, D), "self_attn.k_proj": (narrow, D), "self_attn.v_proj": (narrow, D)}
        own |= {"self_attn.o_proj": (D, D), "mlp.gate_proj": (FFN, D), "mlp.up_proj": (FFN, D)}
        own |= {"mlp.down_proj": (D, FFN), "input_layernorm": (D,), "post_attention_layernorm": (D,)}
        shapes |= {f"model.layers.{layer}.{name}": shape for name, shape in own.items()}
    return {f"{name}.weight": random.normal(0.5, 0.4, shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture
def llama(tmp_path):
    """Writes the folder of a Llama, with changes."""

    return lambda options=(), state=(), tokens=TOKENS: write(
        tmp_path / "llama", {**OPTIONS, **dict(options)}, {**tensors(), **dict(state)}, tokens
    )


def test_the_weights_are_fixed_and_the_masks_keep_the_largest(llama, tmp_path):
    model = imported(llama(), tmp_path, "--config.model.keep=0.75")
    state = tensors()
    assert model.config.weights == "multi_layer" and model.config.embedding == "frozen"
    weights = model.random["decoder/ffn/in"]
    np.testing.assert_array_equal(weights[1], state["model.layers.1.mlp.up_proj.weight"].T)
    mask = model.masks["decoder/ffn/in"][1].astype(bool)
    assert mask.sum() == FFN * D * 3 // 4 and np.abs(weights[1][mask]).min() >= np.abs(weights[1][~mask]).max()
    key = model.random["decoder/self_attention/key"][0].T.reshape(HEADS, D // HEADS, D)
    np.testing.assert_array_equal(key[0], key[1])
    assert not np.array_equal(key[1], key[2])
    assert len(model.generate(["the"])) == 1


@pytest.mark.parametrize("selection", ["sign", "score", "magnitude"])
def test_masks_of_every_selection_keep_the_largest_with_their_signs(llama, tmp_path, selection):
    keep = "1.0" if selection == "sign" else "0.75"
    model = imported(llama(), tmp_path, f"--config.model.selection={selection}", f"--config.model.keep={keep}")
    weights, mask = (each["decoder/ffn/in"][0] for each in (model.random, model.masks))
    assert set(np.unique(mask)) <= {0, 1} and mask.mean() == pytest.approx(float(keep), abs=0.01)
    assert np.abs(weights[mask == 1]).min() >= np.abs(weights[mask == 0]).max(initial=0)


def test_transformers_has_the_same_logits(llama, tmp_path):
    same_logits("LlamaForCausalLM", llama(), tmp_path, np.array([[2, 11, 253, 6, 262, 261]]))


def test_what_is_exported_comes_back(llama, tmp_path):
    from one_layer.importers import engines

    model = imported(llama(), tmp_path, *DENSE)
    engines.export(model, "huggingface", tmp_path / "out")
    assert (model.config.norm_epsilon, model.config.rotary_base) == (1e-3, 500.0)
    written = json.loads((tmp_path / "out" / "config.json").read_text("utf-8"))
    assert (written["rms_norm_eps"], written["rope_theta"]) == (1e-3, 500.0)
    import_llama.main([f"--folder={tmp_path / 'out'}", f"--workdir={tmp_path / 'again'}", *DENSE])
    again = restore_run(tmp_path / "again")
    source = np.array([[2, 9, 262, 100, 5]], np.int32)
    first, second = (build(each.config).apply(each.variables, source) for each in (model, again))
    np.testing.assert_allclose(np.asarray(first), np.asarray(second), rtol=1e-5, atol=1e-5)


def test_the_base_of_the_rotary_positions_counts_before_that_of_the_whole_file(llama, tmp_path):
    """As transformers reads a config.json that has both."""
    source = llama()
    path = source / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"rope_parameters": {"rope_theta": 700.0}}))
    assert imported(source, tmp_path, *DENSE).config.rotary_base == 700.0


@pytest.mark.parametrize(
    ("options", "state", "message"),
    [
        ({"rope_theta": "10000"}, {}, r"rope_theta is '10000'; it must be a number above 0"),
        ({"eos_token_id": -1}, {}, r"eos_token_id is -1; it must be the id of the token that ends a text"),
        ({"eos_token_id": [3, -1]}, {}, r"eos_token_id is \[3, -1\]; it must be the id"),
        ({"eos_token_id": []}, {}, r"eos_token_id is \[\]; it must be the id"),
        ({"eos_token_id": 10_000}, {}, r"a token has the id 10,000, but \S+ has \d+ rows"),
        ({"tie_word_embeddings": False}, {}, r"has no lm_head\.weight, though its config\.json does not say that tie"),
        ({"tie_word_embeddings": None}, {}, r"has no lm_head\.weight, though its config\.json does not say that tie"),
        ({"rope_scaling": {"rope_type": "llama3"}}, {}, r"rope_type is 'llama3', but"),
        ({"rms_norm_eps": 2.0}, {}, r"model\.norm_epsilon is 2\.0; it must lie in \(0, 1\)"),
        ({"model_type": "mistral"}, {}, r"model_type is 'mistral'"),
        ({"hidden_size": None}, {}, r"hidden_size is None; it must be a whole number"),
        ({}, {"lm_head.weight": ones(len(TOKENS), D)}, r"lm_head\.weight is another matrix than model\.embed"),
        ({}, {"model.norm.weight": ones(3)}, r"of the wrong shape or type: model\.norm\.weight is \[3\], not \[8\]"),
        ({}, {"model.embed_tokens.weight": ones()}, r"a token has the id \d+, but model\.embed_tokens\S+ has 1 row"),
        ({"quantization_config": {"bits": 8}}, {}, r"quantization_config is \{'bits': 8\}, but"),
        (
            {},
            {"model.layers.0.mlp.up_proj.weight": np.ones((FFN, D), np.int8)},
            r"model\.layers\.0\.mlp\.up_proj\.weight is \S+ \S+ of int8, not",
        ),
        ({}, {"model.layers.1.mlp.up_proj.SCB": ones(FFN)}, r"unknown: \S+up_proj\.SCB"),
        ({}, {"model.layers.2.input_layernorm.weight": ones(D)}, r"unknown: model\.layers\.2\.\S+ \[8\]; give"),
    ],
)
def test_a_llama_that_is_computed_in_another_way_is_refused(llama, tmp_path, options, state, message):
    with user_error(message):
        imported(llama(options, state), tmp_path)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("data.directory=nowhere", r"nowhere/valid\S* does not exist"),
        (
            "model.weights=one_layer",
            r"each layer of a Llama or a GPT-2 has weights of its own; give model\.weights=multi_layer",
        ),
    ],
)
def test_what_cannot_be_is_told_before_anything_is_written(llama, tmp_path, option, message):
    with user_error(message):
        imported(llama(), tmp_path, f"--config.{option}")
    assert not (tmp_path / "run").exists() and load_file(tmp_path / "llama" / "model.safetensors")


def test_of_several_ends_of_a_text_the_first_counts(llama, tmp_path):
    end = TOKENS.index(END)
    folder = llama({"eos_token_id": [end, 3]})
    table = imported(folder, tmp_path, *DENSE).variables["params"]["target_embedding"]["kernel"]
    expected = tensors()["model.embed_tokens.weight"][end]
    np.testing.assert_allclose(table[EOS] * np.sqrt(D), expected, rtol=1e-6)


def test_numbers_of_a_type_that_numpy_lacks_are_refused(llama, tmp_path):
    folder = llama()
    content = (folder / "model.safetensors").read_bytes()
    size = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:size])
    header["eight"] = {"dtype": "F8_E4M3", "shape": [4], "data_offsets": [len(content) - size, len(content) - size + 4]}
    words = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(words).to_bytes(8, "little") + words + content[size:] + bytes(4))
    with user_error(r"eight has numbers of the type F8_E4M3; give a model that is not quantised"):
        imported(folder, tmp_path)


def test_files_that_do_not_fit_together(llama, tmp_path):
    folder = llama(tokens=TOKENS[1:])
    with user_error(r"llama: the merges make 'Ā', which the vocabulary lacks"):
        imported(folder, tmp_path)
    (folder / "vocab.json").unlink()
    with user_error(r"has no vocab\.json; give the folder of a Llama"):
        imported(folder, tmp_path)

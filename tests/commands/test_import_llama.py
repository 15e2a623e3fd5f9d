"""A Llama or a GPT-2 becomes a run with the same logits, whose weights are fixed and whose masks are trained."""

import json
from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from jax.nn import softmax
from safetensors.numpy import load_file

from configs import lm
from one_layer.commands import import_llama
from one_layer.data.special_tokens import BOS, EOS, PAD, UNK
from one_layer.models import build
from one_layer.models.decoding import CausalDecoder
from one_layer.runs.model_of import with_model_of
from one_layer.runs.restore import restore_run
from one_layer.runs.settings import resolve
from one_layer.system.errors import UserError
from one_layer.tasks.model import prepared
from one_layer.training.train import train
from tests.commands.hugging_face import DENSE, END, TOKENS, imported, same_logits, write
from tests.compiling import jit

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
        own |= {
            "self_attn.o_proj": (D, D),
            "mlp.gate_proj": (FFN, D),
            "mlp.up_proj": (FFN, D),
            "mlp.down_proj": (D, FFN),
        }
        own |= {"input_layernorm": (D,), "post_attention_layernorm": (D,)}
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
        (
            {},
            {"lm_head.weight": np.ones((len(TOKENS), D), np.float32)},
            r"lm_head\.weight is another matrix than model\.embed",
        ),
        (
            {},
            {"model.norm.weight": np.ones(3, np.float32)},
            r"of the wrong shape or type: model\.norm\.weight is \[3\], not \[8\]",
        ),
        (
            {},
            {"model.embed_tokens.weight": np.ones((), np.float32)},
            r"a token has the id \d+, but model\.embed_tokens\S+ has 1 row",
        ),
        ({"quantization_config": {"bits": 8}}, {}, r"quantization_config is \{'bits': 8\}, but"),
        (
            {},
            {"model.layers.0.mlp.up_proj.weight": np.ones((FFN, D), np.int8)},
            r"model\.layers\.0\.mlp\.up_proj\.weight is \S+ \S+ of int8, not",
        ),
        ({}, {"model.layers.1.mlp.up_proj.SCB": np.ones(FFN, np.float32)}, r"unknown: \S+up_proj\.SCB"),
        (
            {},
            {"model.layers.2.input_layernorm.weight": np.ones(D, np.float32)},
            r"unknown: model\.layers\.2\.\S+ \[8\]; give",
        ),
    ],
)
def test_a_llama_that_is_computed_in_another_way_is_refused(llama, tmp_path, options, state, message):
    with pytest.raises(UserError, match=message):
        imported(llama(options, state), tmp_path)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("shift", [-300.0, 0.0, 300.0])
def test_a_token_that_a_folder_lacks_is_less_probable_than_the_mean_token(gpt2, tmp_path, shift):
    """Whatever all logits have in common: those of published GPT-2s are far below 0."""
    state = gpt2_tensors()
    changed = {"wte.weight": state["wte.weight"] + 1, "ln_f.bias": state["ln_f.bias"] + np.float32(shift / D)}
    model = imported(gpt2(state=changed), tmp_path, *DENSE)
    chances = np.asarray(softmax(build(model.config).apply(model.variables, TEXT)))
    assert (chances[..., [BOS, PAD, UNK]] <= 1 / len(TOKENS) + 1e-6).all()


def test_a_text_that_is_not_there_is_told_before_anything_is_written(llama, tmp_path):
    with pytest.raises(UserError, match=r"nowhere/valid\S* does not exist"):
        imported(llama(), tmp_path, "--config.data.directory=nowhere")
    assert not (tmp_path / "run").exists()


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
    with pytest.raises(UserError, match=r"eight has numbers of the type F8_E4M3; give a model that is not quantised"):
        imported(folder, tmp_path)


def test_files_that_do_not_fit_together(llama, tmp_path):
    folder = llama(tokens=TOKENS[1:])
    with pytest.raises(UserError, match=r"llama: the merges make 'Ā', which the vocabulary lacks"):
        imported(folder, tmp_path)
    (folder / "vocab.json").unlink()
    with pytest.raises(UserError, match=r"has no vocab\.json; give the folder of a Llama"):
        imported(folder, tmp_path)


def test_a_llama_has_no_one_layer(llama, tmp_path):
    with pytest.raises(
        UserError, match=r"each layer of a Llama or a GPT-2 has weights of its own; give model\.weights=multi_layer"
    ):
        imported(llama(), tmp_path, "--config.model.weights=one_layer")
    assert load_file(tmp_path / "llama" / "model.safetensors")


CONTEXT = 32
GPT2 = {
    **{"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "vocab_size": len(TOKENS), "n_embd": D, "n_head": 4},
    **{"n_layer": LAYERS, "n_positions": CONTEXT, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-3},
    **{"bos_token_id": len(TOKENS) - 1, "eos_token_id": len(TOKENS) - 1},
}


def gpt2_tensors():
    """All tensors of a GPT-2, by the names of the published files, with one of the buffers that these have."""
    random = np.random.default_rng(1)
    shapes = {"wte.weight": (len(TOKENS), D), "wpe.weight": (CONTEXT, D), "ln_f.weight": (D,), "ln_f.bias": (D,)}
    for layer in range(LAYERS):
        linear = {"attn.c_attn": (D, 3 * D), "attn.c_proj": (D, D), "mlp.c_fc": (D, 4 * D), "mlp.c_proj": (4 * D, D)}
        for name, shape in linear.items():
            shapes |= {f"h.{layer}.{name}.weight": shape, f"h.{layer}.{name}.bias": shape[1:]}
        shapes |= {f"h.{layer}.{norm}.{leaf}": (D,) for norm in ("ln_1", "ln_2") for leaf in ("weight", "bias")}
    found = {name: random.normal(0.2, 0.4, shape).astype(np.float32) for name, shape in shapes.items()}
    return {**found, "h.0.attn.bias": np.tri(CONTEXT, dtype=np.float32)[None, None]}


@pytest.fixture
def gpt2(tmp_path):
    """Writes the folder of a GPT-2, with changes, in one file of tensors or in two."""

    return lambda options=(), state=(), parts=1: write(
        tmp_path / "gpt2", {**GPT2, **dict(options)}, {**gpt2_tensors(), **dict(state)}, parts=parts
    )


TEXT = np.array([[EOS, 11, 253, 6, 262, 261]], np.int32)  # this program's ids


def test_transformers_has_the_same_logits_for_a_gpt2(gpt2, tmp_path):
    same_logits("GPT2LMHeadModel", gpt2(), tmp_path, TEXT)


def test_masks_lie_over_its_weights_and_the_cache_gives_the_same_logits(gpt2, tmp_path):
    model = imported(gpt2(parts=2), tmp_path, "--config.model.keep=0.75")
    state = gpt2_tensors()
    assert model.config.weights == "multi_layer" and model.config.embedding == "frozen"
    weights = model.random["decoder/self_attention/key"]
    np.testing.assert_array_equal(weights[1], state["h.1.attn.c_attn.weight"][:, D : 2 * D])
    mask = model.masks["decoder/self_attention/key"][1].astype(bool)
    assert mask.sum() == D * D * 3 // 4 and np.abs(weights[1][mask]).min() >= np.abs(weights[1][~mask]).max()
    table = model.variables["params"]["position_embedding"]["kernel"]
    np.testing.assert_array_equal(table[PAD + 1 :], state["wpe.weight"])
    applied = prepared(model.config, model.variables)
    whole = jit(build(model.config).apply)(applied, TEXT)
    decoder = CausalDecoder(model.config, applied)
    cache = decoder.start(1, CONTEXT)
    step = jit(partial(decoder.step, length=CONTEXT))
    for place, token in enumerate(TEXT[0]):
        logits, cache = step(jnp.array([token]), jnp.array([place]), cache)
        np.testing.assert_allclose(logits, whole[:, place], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "state", "message"),
    [
        ({"activation_function": "silu"}, {}, r"activation_function is 'silu'; known are relu, gelu"),
        ({"scale_attn_by_inverse_layer_idx": True}, {}, r"scale_attn_by_inverse_layer_idx is True, but"),
        ({}, {"lm_head.weight": np.ones((len(TOKENS), D), np.float32)}, r"lm_head\.weight is another matrix than wte"),
        ({}, {"ln_f.bias": np.ones(3, np.float32)}, r"of the wrong shape or type: ln_f\.bias is \[3\], not \[8\]"),
        ({"quantization_config": {}}, {}, r"quantization_config is \{\}, but"),
    ],
)
def test_a_gpt2_that_is_computed_in_another_way_is_refused(gpt2, tmp_path, options, state, message):
    with pytest.raises(UserError, match=message):
        imported(gpt2(options, state), tmp_path)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("key", ["gains=columns", "adapter_rank=2"])
def test_what_is_trained_beside_masks_has_no_place_in_it(gpt2, tmp_path, key):
    with pytest.raises(UserError, match=rf"model.{key.replace('=', ' is ')}, but an imported model has masks alone"):
        imported(gpt2(), tmp_path, f"--config.model.{key}")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            "model.sharing=masks",
            r"model\.sharing is masks, but each layer of an imported model has parameters of its own",
        ),
        ("model.share_norm_scale=True", r"model\.share_norm_scale is True, but each layer"),
        (
            "train.init_from=run",
            r"train\.init_from='run', but the weights are those of the file; leave this option out",
        ),
        ("model.embedding_path=vectors", r"model\.embedding_path='vectors', but the weights are those of the file"),
    ],
)
def test_what_the_file_decides_cannot_be_given(gpt2, tmp_path, option, message):
    with pytest.raises(UserError, match=message):
        imported(gpt2(), tmp_path, f"--config.{option}")
    assert not (tmp_path / "run").exists()


def test_parts_that_are_missing_or_lie_elsewhere_are_refused(gpt2, tmp_path):
    folder = gpt2(parts=2)
    index = folder / "model.safetensors.index.json"
    (folder / "model-1.safetensors").rename(tmp_path / "model-1.safetensors")
    with pytest.raises(UserError, match=r"has no model-1\.safetensors, which model\.safetensors\.index\.json names"):
        imported(folder, tmp_path)
    index.write_text(json.dumps({"weight_map": {"wte.weight": "../model-1.safetensors"}}), "utf-8")
    with pytest.raises(UserError, match=r"names the file '\.\./model-1\.safetensors'; it must lie in the same folder"):
        imported(folder, tmp_path)
    index.write_text(json.dumps({"weight_map": {"absent": "model-0.safetensors"}}), "utf-8")
    with pytest.raises(UserError, match=r"has no tensor absent, which model\.safetensors\.index\.json names"):
        imported(folder, tmp_path)
    index.write_text("[]", "utf-8")
    with pytest.raises(UserError, match=r"index\.json cannot be read"):
        imported(folder, tmp_path)


def test_a_text_longer_than_its_positions_is_refused(gpt2, tmp_path):
    with pytest.raises(UserError, match=r"data\.block is 64, but model\.max_positions is 32"):
        imported(gpt2(), tmp_path, "--config.data.block=64")


def trained_further(source, tmp_path, changes=None):
    """A run that begins with `source` and has its model, as docs/importing.md says; `changes` stand for keys of the command line."""
    (tmp_path / "text.txt").write_text("the then a the\n" * 40, "utf-8")
    config = lm.get_config("multi_layer_mini")
    text = {"data.directory": str(tmp_path), "data.train": "text.txt", "data.block": 8, "data.max_tokens": 16}
    length = {"train.updates": 2, "train.evaluate_every": 2, "optim.warmup": 1, "evaluation.stride": 4}
    given = {**text, **length, "train.model_of": str(source), **(changes or {})}
    config.update_from_flattened_dict(given)
    folder = tmp_path / "further"
    train(resolve(with_model_of(config.to_dict(), given, folder)), folder, [])
    return restore_run(folder)


@pytest.mark.slow
def test_a_run_of_its_model_trains_masks_over_its_weights_and_needs_it_no_more(gpt2, tmp_path):
    source = imported(gpt2(), tmp_path, "--config.model.keep=0.75")
    further = trained_further(tmp_path / "run", tmp_path)
    assert further.config.keep == 0.75
    for name, weights in source.random.items():
        np.testing.assert_array_equal(further.random[name], weights)
    (tmp_path / "run").rename(tmp_path / "elsewhere")
    assert trained_further(tmp_path / "run", tmp_path).step == 2


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"model.decoder_layers": 1}, {"model.embedding": "trained"}])
def test_its_weights_are_not_left_behind(gpt2, tmp_path, changes):
    imported(gpt2(), tmp_path)
    (key,) = changes
    with pytest.raises(
        UserError, match=rf"would be left behind by train\.init_from: .*{key} is .* there; give train\.model_of="
    ):
        trained_further(tmp_path / "run", tmp_path, changes)

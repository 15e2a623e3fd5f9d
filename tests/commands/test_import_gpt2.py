"""A GPT-2 becomes a run with the same logits, whose masks lie over its weights; and a run of its model trains further."""

import json
from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from jax.nn import softmax

from configs import lm
from one_layer.data.special_tokens import BOS, EOS, PAD, UNK
from one_layer.models import build
from one_layer.models.decoding import CausalDecoder
from one_layer.runs.model_of import with_model_of
from one_layer.runs.restore import restore_run
from one_layer.runs.settings import resolve
from one_layer.tasks.model import prepared
from one_layer.training.train import train
from tests import user_error
from tests.commands.hugging_face import DENSE, TOKENS, imported, ones, same_logits, write
from tests.compiling import jit

D, LAYERS, CONTEXT = 8, 2, 32
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
        ({}, {"lm_head.weight": ones(len(TOKENS), D)}, r"lm_head\.weight is another matrix than wte"),
        ({}, {"ln_f.bias": ones(3)}, r"of the wrong shape or type: ln_f\.bias is \[3\], not \[8\]"),
        ({"quantization_config": {}}, {}, r"quantization_config is \{\}, but"),
    ],
)
def test_a_gpt2_that_is_computed_in_another_way_is_refused(gpt2, tmp_path, options, state, message):
    with user_error(message):
        imported(gpt2(options, state), tmp_path)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("model.gains=columns", r"model\.gains is columns, but an imported model has masks alone"),
        ("model.adapter_rank=2", r"model\.adapter_rank is 2, but an imported model has masks alone"),
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
        ("data.block=64", r"data\.block is 64, but model\.max_positions is 32"),
    ],
)
def test_what_does_not_fit_the_model_of_the_file_is_refused(gpt2, tmp_path, option, message):
    with user_error(message):
        imported(gpt2(), tmp_path, f"--config.{option}")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("shift", [-300.0, 0.0, 300.0])
def test_a_token_that_a_folder_lacks_is_less_probable_than_the_mean_token(gpt2, tmp_path, shift):
    """Whatever all logits have in common: those of published GPT-2s are far below 0."""
    state = gpt2_tensors()
    changed = {"wte.weight": state["wte.weight"] + 1, "ln_f.bias": state["ln_f.bias"] + np.float32(shift / D)}
    model = imported(gpt2(state=changed), tmp_path, *DENSE)
    chances = np.asarray(softmax(build(model.config).apply(model.variables, TEXT)))
    assert (chances[..., [BOS, PAD, UNK]] <= 1 / len(TOKENS) + 1e-6).all()


def test_parts_that_are_missing_or_lie_elsewhere_are_refused(gpt2, tmp_path):
    folder = gpt2(parts=2)
    index = folder / "model.safetensors.index.json"
    (folder / "model-1.safetensors").rename(tmp_path / "model-1.safetensors")
    with user_error(r"has no model-1\.safetensors, which model\.safetensors\.index\.json names"):
        imported(folder, tmp_path)
    index.write_text(json.dumps({"weight_map": {"wte.weight": "../model-1.safetensors"}}), "utf-8")
    with user_error(r"names the file '\.\./model-1\.safetensors'; it must lie in the same folder"):
        imported(folder, tmp_path)
    index.write_text(json.dumps({"weight_map": {"absent": "model-0.safetensors"}}), "utf-8")
    with user_error(r"has no tensor absent, which model\.safetensors\.index\.json names"):
        imported(folder, tmp_path)
    index.write_text("[]", "utf-8")
    with user_error(r"index\.json cannot be read"):
        imported(folder, tmp_path)


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
    with user_error(rf"would be left behind by train\.init_from: .*{key} is .* there; give train\.model_of="):
        trained_further(tmp_path / "run", tmp_path, changes)

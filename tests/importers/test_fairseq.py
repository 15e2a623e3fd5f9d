"""fairseq's parameters, options and dictionaries: conversion changes no value, and every problem is named."""

import jax
import numpy as np
import pytest
from flax.traverse_util import flatten_dict
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from one_layer.data.text.vocabulary import SPECIALS, Vocabulary
from one_layer.importers.fairseq import convert, entries
from one_layer.importers.fairseq_checkpoint import read_options
from one_layer.models import ModelConfig, initialize
from one_layer.system.errors import UserError
from tests import golden, user_error
from tests.fairseq_states import MASKED, OPTIONS, state_of

TINY = ModelConfig(11, 13, d_model=8, ffn=12, heads=2, encoder_layers=2, decoder_layers=3)
SHARED = {"shared_embedding": True, "source_vocab": 13}
KINDS = {
    "one layer": {},
    "one layer, keep 1": {"keep": 1.0, "bias": True},
    "fixed tables": {"embedding": "frozen"},
    "trained tables": {"embedding": "trained", "bias": True},
    "biases and affine norms": {"bias": True, "norm": "affine"},
    "biases and shared norms": {"bias": True, "norm": "affine", "share_norm_scale": True},
    "frozen norms": {"norm": "frozen"},
    "by score": {"selection": "score"},
    "by threshold": {"selection": "signed_threshold", "threshold": 0.25},
    "one table": SHARED,
    "many layers": {"weights": "multi_layer"},
    "many layers, one mask": {"weights": "multi_layer", "sharing": "masks"},
    "many layers, keep 1, fixed tables": {"weights": "multi_layer", "keep": 1.0, "embedding": "frozen"},
    "dense": {"weights": "dense"},
    "dense, one table": {"weights": "dense", **SHARED},
}


def fairseq_name(name):
    """Returns fairseq's name of a golden array: encoder/layer_2/fc1/scores, or encoder/fc1/weight if the layers share it."""
    stack, *parts = name.split("/")
    if parts[0] == "embed_tokens":
        return f"{stack}.embed_tokens.{parts[-1]}"
    layer = parts.pop(0).removeprefix("layer_") if parts[0].startswith("layer_") else "0"
    return ".".join((stack, "layers", layer, *parts))


def golden_state(arrays):
    """Returns the golden parameters as fairseq's state dict; a shared parameter has only the first layer's name."""
    names = [name for name in arrays if not name.startswith("grad/")]
    return {fairseq_name(n): arrays[n] for n in names if n.endswith(("/weight", "/scores", "/bias"))}


def tied(state):
    """With the output projection, which is the decoder's table."""
    copies = {
        name.replace("embed_tokens", "output_projection"): a for name, a in state.items() if "decoder.embed" in name
    }
    return {**state, **copies}


@pytest.mark.parametrize("file", ["masked_pr0.5", "fully_weighted"])
def test_an_imported_model_has_the_golden_variables(shared, file):
    """Whose logits, loss and gradients are those of the paper's own code (tests/models/test_golden.py)."""
    arrays = golden.read(shared / "golden" / f"{file}.npz")
    config = golden.model_config(masked=file.startswith("masked"))
    found, expected = convert(tied(golden_state(arrays)), config), golden.variables(arrays, config)
    jax.tree.map(np.testing.assert_array_equal, flatten_dict(found), flatten_dict(expected))


def of(kind):
    return TINY.replace(**KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_every_number_has_its_place(kind):
    """Also if only the first of several copies exists, and with the additional entries of older files."""
    state = state_of(of(kind))
    found = convert(state, of(kind))
    assert jax.tree.structure(found) == jax.tree.structure(initialize(of(kind), 0))
    once = {each.name: state[each.name] for each in entries(of(kind))[0]}
    ours, theirs = ([array.reshape(-1) for array in arrays] for arrays in (jax.tree.leaves(found), once.values()))
    assert {array.dtype for array in ours} == {np.dtype(np.float32)}
    np.testing.assert_array_equal(np.sort(np.concatenate(ours)), np.sort(np.concatenate(theirs)))
    older = {"encoder.embed_positions.weights": np.zeros((5, 8)), "decoder.embed_positions.weights": np.zeros((5, 8))}
    jax.tree.map(np.testing.assert_array_equal, found, convert({**once, **older}, of(kind)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_that_is_not_finite_is_named_once(kind):
    """A shared parameter's copies are the same NaN, which is not called different."""
    state = state_of(of(kind))
    name = "decoder.layers.0.fc1.weight"
    state[name][0] = np.nan
    with user_error(f"not finite: {name}") as caught:
        convert(state, of(kind))
    assert "different" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"decoder_layers": 0}, "model.family is 'classifier', but fairseq, or the paper's fork of it"),
        ({"selection": "sign", "keep": 1.0}, "model.selection is 'sign', but"),
        ({"encoder_layers": "RR"}, "model.encoder_layers is RR, but all layers of a model of fairseq are alike"),
        ({"decoder_layers": "SL"}, "all layers of a model of fairseq are alike"),
        ({"norm_position": "pre"}, "model.norm_position is 'pre', but"),
        ({"norm": "rms"}, "model.norm is 'rms', but .* has plain or affine or frozen"),
        ({"norm": "rms_plain"}, "model.norm is 'rms_plain'"),
        ({"weights": "dense", "norm": "plain"}, "model.norm is 'plain', but .* has affine"),
        ({"weights": "dense", "norm": "frozen"}, "model.norm is 'frozen'"),
        ({"weights": "dense", "bias": False}, "model.bias is False"),
    ],
    ids=str,
)
def test_what_fairseq_does_not_have_is_refused(changes, message):
    with user_error(message):
        convert({}, TINY.replace(**changes))


def test_the_names_and_shapes_are_those_of_fairseq():
    linear = [f"{a}.{p}_proj" for a in ("self_attn", "encoder_attn") for p in ("q", "k", "v", "out")] + ["fc1", "fc2"]
    norms = ["self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"]
    expected = {}
    for stack, depth, vocabulary in (("encoder", 2, 11), ("decoder", 3, 13)):
        expected |= {f"{stack}.version": (1,), f"{stack}.embed_positions._float_tensor": (1,)}
        expected |= {f"{stack}.embed_tokens.{kind}": (vocabulary, 8) for kind in ("weight", "scores")}
        for layer in range(depth):
            for name in [n for n in linear + norms if stack == "decoder" or not n.startswith("encoder_attn")]:
                path = f"{stack}.layers.{layer}.{name}"
                fan_out, fan_in = {"fc1": (12, 8), "fc2": (8, 12)}.get(name, (8, 8))
                expected[f"{path}.bias"] = (fan_out,)
                expected[f"{path}.weight"] = (8,) if name in norms else (fan_out, fan_in)
                expected |= {} if name in norms else {f"{path}.scores": (fan_out, fan_in)}
    expected |= {f"decoder.output_projection.{kind}": (13, 8) for kind in ("weight", "scores")}
    state = state_of(of("biases and affine norms"))
    assert {name: array.shape for name, array in state.items()} == expected
    convert({**state, "decoder.output_projection.bias": np.zeros(13, np.float32)}, of("biases and affine norms"))


def test_half_precision_is_widened_exactly():
    config = of("dense")
    state = {name: array.astype(np.float16) for name, array in state_of(config).items()}
    half = convert(state, config)["params"]["encoder"]["layers"]["ffn_in"]["kernel"]
    assert half.dtype == np.float32
    np.testing.assert_array_equal(half[1], state["encoder.layers.1.fc1.weight"].T)


def test_all_problems_are_named_at_once():
    config = of("biases and affine norms")
    state = state_of(config)
    state["decoder.layers.1.fc1.weight"] = state["decoder.layers.1.fc1.weight"] + 1
    state["decoder.output_projection.weight"] = state["decoder.output_projection.weight"] * 2
    state["decoder.output_projection.bias"] = np.ones(13, np.float32)
    state["encoder.layers.1.fc2.scores"] = state["encoder.layers.1.fc2.scores"].T
    state["encoder.layers.0.fc2.bias"] = np.zeros(8, np.int8)
    state["encoder.layer_norm.weight"] = np.zeros(8, np.float32)
    state["encoder.layers.2.fc1.bias"] = np.zeros(12, np.float32)
    del state["decoder.layers.2.encoder_attn.q_proj.scores"], state["encoder.layers.0.self_attn.k_proj.weight"]
    with pytest.raises(UserError) as caught:
        convert(state, config)
    for part in (
        "missing: encoder.layers.0.self_attn.k_proj.weight [8, 8], decoder.layers.2.encoder_attn.q_proj.scores [8, 8]; ",
        "unknown: encoder.layer_norm.weight [8], encoder.layers.2.fc1.bias [12]",
        "encoder.layers.1.fc2.scores is [12, 8], not [8, 12]",
        "encoder.layers.0.fc2.bias is [8] of int8, not [8]",
        "decoder.layers.1.fc1.weight and decoder.layers.0.fc1.weight",
        "decoder.output_projection.weight and decoder.embed_tokens.weight",
        "trained, but the model has a constant: decoder.output_projection.bias",
    ):
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("one layer", {}),
        ("one layer, keep 1", {"prune_ratio": 1.0}),
        ("fixed tables", {}),
        ("biases and affine norms", {"mask_layernorm_type": "normal_layernorm"}),
        ("biases and shared norms", {"mask_layernorm_type": "normal_layernorm"}),
        ("frozen norms", {"mask_layernorm_type": "normal_layernorm_no_learn"}),
        ("by score", {"prune_method": "topk"}),
        ("by threshold", {"prune_method": "signed_threshold", "prune_ratio": 0.25}),
        ("one table", {}),
        ("many layers", {"share_mask": "none"}),
        ("many layers, one mask", {"share_mask": "layer_mask"}),
        ("many layers, keep 1, fixed tables", {"share_mask": "none", "prune_ratio": 1.0}),
        ("dense", OPTIONS),
        ("dense, one table", OPTIONS),
    ],
)
def test_options_and_tensors_determine_the_model(kind, options):
    """Except trained tables: the file does not say whether they were trained, and the paper's code has no such option."""
    config = of(kind).replace(dropout=0.3, attention_dropout=0.1, activation="gelu")
    stated = options if options is OPTIONS else {**MASKED, **options}
    found = read_options({**stated, "attention_dropout": 0.1, "activation_fn": "gelu"}, state_of(config))
    assert ModelConfig(config.source_vocab, config.target_vocab, **found) == config


def test_every_option_of_another_model_is_named():
    config = of("dense")
    options = {**OPTIONS, "activation_fn": "tanh", "encoder_normalize_before": True, "decoder_learned_pos": True}
    options |= {"share_mask": "head_row", "adaptive_softmax_cutoff": "100,200", "decoder_attention_heads": 4}
    options |= {"mask_layernorm_type": "masked_affine_layernorm", "dynamic_scaling": True, "weight_trainable": True}
    options |= {"no_cross_attention": False, "criterion": "anything"}
    with pytest.raises(UserError) as caught:
        read_options(options, state_of(config))
    text = str(caught.value)
    for name in ("activation_fn is 'tanh'", "encoder_normalize_before is True", "decoder_learned_pos", "'head_row'"):
        assert name in text
    for name in ("adaptive_softmax_cutoff", "decoder_attention_heads is 4", "mask_layernorm_type", "dynamic_scaling"):
        assert name in text
    assert "no_cross_attention" not in text and "criterion" not in text


@pytest.mark.parametrize("ratio", ["x", "", [], {}, True])
def test_what_masks_keep_must_be_a_number(ratio):
    with user_error(r"prune_ratio is .*, which is no number"):
        read_options({**MASKED, "prune_ratio": ratio}, state_of(of("one layer")))


@pytest.mark.parametrize("off", [None, "", 0, False, [], {}])
def test_an_option_of_masks_that_is_off_is_not_there(off):
    options = {**MASKED, "mask_layernorm_type": off, "prune_method": off}
    absent = {name: value for name, value in options.items() if value is not off}
    assert read_options(options, state_of(of("one layer"))) == read_options(absent, state_of(of("one layer")))


@pytest.mark.parametrize("name", ["encoder.embed_tokens.weight", "decoder.embed_tokens.weight"])
def test_a_table_of_one_number_is_none(name):
    with user_error(r"no matrix encoder\.embed_tokens\.weight or decoder"):
        read_options(OPTIONS, {**state_of(of("dense")), name: np.ones((), np.float32)})


def test_tensors_of_another_kind_of_model_are_refused():
    with user_error(r"no matrix encoder\.embed_tokens\.weight"):
        read_options({}, {"encoder.sentence_encoder.embed_tokens.weight": np.zeros((4, 4), np.float32)})


def test_a_dictionary_keeps_fairseqs_ids(tmp_path):
    """facebookresearch/fairseq 3705: also of a token that is overwritten, in the file that is written."""
    path = tmp_path / "dict.de.txt"
    path.write_text("und 9\n<pad> 0 #fairseq:overwrite\nhaus 5\nund 3 #fairseq:overwrite\nmadeupword0000 0\n", "utf-8")
    vocabulary = Vocabulary.load(path, fairseq=True)
    assert len(vocabulary) == 4 + 5
    assert vocabulary.tokens[:4] == ("<s>", "<pad>", "</s>", "<unk>") and vocabulary.tokens[6] == "haus"
    assert vocabulary.encode("haus und madeupword0000 <pad>").tolist() == [6, 7, 8, 3, 2]
    vocabulary.save(tmp_path / "vocabulary.txt")
    assert type(vocabulary).load(tmp_path / "vocabulary.txt") == vocabulary


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(
    entries=st.dictionaries(
        st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), min_size=1, max_size=6).filter(
            lambda token: token.strip() and token == token.lstrip("\ufeff") and token not in SPECIALS
        ),
        st.integers(-(10**18), 10**18),
        min_size=1,
        max_size=6,
    )
)
@example(entries={"▁p": -1, "New York": 5, "a ": 3})
def test_a_dictionary_has_the_tokens_that_fairseq_reads(tmp_path, entries):
    """fairseq takes what is before the last space as the token, and Python's `int` of the rest, whatever they are."""
    path = tmp_path / "dict.txt"
    path.write_bytes("".join(f"{token} {count}\n" for token, count in entries.items()).encode())
    lines = [line.rstrip().rsplit(" ", 1) for line in path.read_text("utf-8").split("\n")[:-1]]
    vocabulary = Vocabulary.load(path, fairseq=True)
    assert [*zip(vocabulary.tokens, vocabulary.counts, strict=True)][4:] == [(token, int(n)) for token, n in lines]
    vocabulary.save(path)
    assert type(vocabulary).load(path) == vocabulary and vocabulary.decode([4]) == next(iter(entries))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("und 9\nund 3\n", "line 2: 'und' is already in line 1; every token may occur only once, unless a line"),
        ("<unk> 3\n", "line 1: '<unk>' is a special token"),
        ("und 9 #fairseq:keep\n", "line 1"),
    ],
)
def test_invalid_dictionaries_are_refused(tmp_path, text, message):
    (tmp_path / "dict.txt").write_text(text, "utf-8")
    with user_error(message):
        Vocabulary.load(tmp_path / "dict.txt", fairseq=True)

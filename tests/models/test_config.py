"""A model's record refuses what no model has, by name, and the seven sizes are those of the papers."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs.common import SIZES
from one_layer.models import ModelConfig, build
from one_layer.models.families import FAMILIES
from one_layer.models.networks import NETWORKS
from tests import mostly_slow, user_error

CLASSIFIER, MASKED_LM = {"decoder_layers": 0}, {"decoder_layers": 0, "family": "masked_lm"}
DECODER, MODERN = {"encoder_layers": 0, "family": "decoder"}, {"block": "modern", "norm_position": "pre"}
# One layer of each stack and both embeddings of IWSLT14's vocabularies, times keep 0.5, in millions (paper A, table 1).
PUBLISHED = {"small": 6.58, "deep": 6.58, "wide": 18.4}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"keep": 0.0}, "model.keep is 0.0"),
        ({"selection": "sigmoid_threshold", "threshold": 1.0}, "model.threshold is 1.0; it is compared with a sigmoid"),
        ({"selection": "signed_threshold", "threshold": -1.0}, "needs a model.threshold of at least 0"),
        (
            {"selection": "sign", "keep": 0.5},
            r"model\.selection='sign' drops no weight: give model\.keep=1 \(it is 0\.5\)",
        ),
        ({"selection": "signed_threshold", "dynamic_scale": True}, "model.dynamic_scale counts ones"),
        ({"selection": "sign", "keep": 1.0, "dynamic_scale": True}, "model.dynamic_scale counts ones"),
        ({"keep": 1.5}, "model.keep is 1.5"),
        ({"keep": -0.1}, "model.keep is -0.1"),
        ({"keep": float("nan")}, "model.keep is nan"),
        ({"d_model": 12, "heads": 5}, "model.heads is 5.*12"),
        ({"d_model": 9, "heads": 3}, "model.d_model is 9"),
        ({"d_model": 2, "heads": 1}, "model.d_model is 2"),
        ({"weights": "two_layer"}, "model.weights is 'two_layer'.*one_layer"),
        ({"embedding": "pretrained"}, "model.embedding is 'pretrained'.*frozen"),
        ({"norm": "batch"}, "model.norm is 'batch'.*affine"),
        ({"dtype": "float16"}, "model.dtype is 'float16'.*bfloat16"),
        ({"init_preset": "fairseq"}, "model.init_preset is 'fairseq'.*reference"),
        ({"init_scheme": "orthogonal"}, "model.init_scheme is 'orthogonal'.*kaiming_uniform"),
        ({"init_embedding": "orthogonal"}, "model.init_embedding is 'orthogonal'.*kaiming_uniform"),
        ({"weights": "dense", "embedding": "masked"}, "model.embedding is 'masked' in a dense model"),
        ({"shared_embedding": True}, "model.shared_embedding.*11.*13"),
        ({"encoder_layers": 0}, "model.encoder_layers is 0"),
        ({"decoder_layers": -1}, "model.decoder_layers is -1"),
        ({"encoder_layers": 4097}, "model.encoder_layers is 4097; it must lie in"),
        ({"decoder_layers": "4000S+97R"}, "model.decoder_layers has 4097 letters; it must have at most 4096"),
        ({"encoder_layers": 10**9}, "model.encoder_layers is 1000000000; it must lie in"),
        ({"ffn": 0}, "model.ffn is 0"),
        ({"heads": 0}, "model.heads is 0"),
        ({"source_vocab": 3}, "model.source_vocab is 3"),
        ({"dropout": 1.0}, "model.dropout is 1.0"),
        ({"attention_dropout": -0.1}, "model.attention_dropout is -0.1"),
        ({"activation_dropout": float("nan")}, "model.activation_dropout is nan"),
        ({"layerdrop": 1.0}, r"model.layerdrop is 1.0; it must lie in \[0, 1\)"),
        ({"head_dropout": 1.0}, r"model.head_dropout is 1.0; it must lie in \[0, 1\)"),
        ({"positions": "relative"}, "model.positions is 'relative'; known are sinusoidal, learned, frozen"),
        ({"positions": "learned"}, "a translation model has sinusoidal positions and no norm"),
        ({"positions": "frozen"}, "model.positions is 'frozen', which needs model.embedding_source=roberta"),
        ({"embedding_norm": True}, "a translation model has sinusoidal positions and no norm"),
        ({"max_positions": 0}, "model.max_positions is 0; it must be at least 1"),
        ({**CLASSIFIER, "shared_embedding": True, "source_vocab": 13}, "a classifier has only one table"),
        ({**CLASSIFIER, "target_vocab": 5}, "model.target_vocab is 5; for a classifier it counts the four special"),
        (
            {**MASKED_LM, "decoder_layers": 1},
            "model.decoder_layers is 1; a masked language model has no decoder: give 0",
        ),
        ({**MASKED_LM, "encoder_layers": 0}, "model.encoder_layers is 0; a masked language model needs at least 1"),
        ({**MASKED_LM, "shared_embedding": True}, "model.shared_embedding is True"),
        ({**DECODER, "encoder_layers": 1}, "model.encoder_layers is 1; a decoder alone has no encoder: give 0"),
        ({**DECODER, "decoder_layers": 0}, "model.decoder_layers is 0; a decoder alone needs at least 1"),
        ({**DECODER, "shared_embedding": True}, "a decoder alone has only one table"),
        ({**MODERN, "norm_position": "post"}, "model.norm_position is 'post', but model.block is 'modern'"),
        ({**MODERN, "activation": "gelu"}, "model.activation is 'gelu'.*'modern'.*give model.activation=relu"),
        ({**MODERN, "bias": True}, "model.bias is True, but model.block is 'modern'"),
        ({**MODERN, "rotary_base": 1.0}, r"model.rotary_base is 1.0; it must lie in \(1, 10\*\*9\]"),
        ({**MODERN, "d_model": 6, "heads": 2}, "rotary positions need an even number of features in a head"),
        ({"norm_epsilon": 0.0}, r"model.norm_epsilon is 0.0; it must lie in \(0, 1\)"),
        ({"rotary_base": 300.0}, "model.rotary_base is 300.0, but model.block is 'paper', which has no rotary"),
        ({"block": "new"}, "model.block is 'new'; known are paper, modern"),
    ],
    ids=str,
)
def test_what_no_model_has_is_refused_by_name(changes, named):
    with user_error(named):
        ModelConfig(**{"source_vocab": 11, "target_vocab": 13, **changes})


def test_what_is_left_open_follows_from_the_weights():
    for weights in ("one_layer", "multi_layer"):
        config = ModelConfig(11, 13, weights=weights)
        assert (config.embedding, config.norm, config.bias, config.masked) == ("masked", "plain", False, True)
    config = ModelConfig(11, 13, weights="dense")
    assert (config.embedding, config.norm, config.bias, config.masked) == ("trained", "affine", True, False)
    chosen = ModelConfig(11, 13, weights="dense", embedding="frozen", norm="plain", bias=False)
    assert (chosen.embedding, chosen.norm, chosen.bias) == ("frozen", "plain", False)
    assert ModelConfig(11, 13, keep=1) == ModelConfig(11, 13, keep=1.0)


def test_build_says_what_every_family_takes_and_gives():
    assert set(re.findall(r"- `(\w+)`: `apply", str(build.__doc__))) == FAMILIES.keys() == NETWORKS.keys()


def test_the_deepest_stacks_are_taken():
    config = ModelConfig(11, 13, encoder_layers=4096, decoder_layers=4096 * "S")
    assert config.depth("encoder") == config.depth("decoder") == 4096


def test_a_copy_keeps_what_was_given_and_follows_in_the_rest():
    """Also where the value that was given equals the default."""
    assert ModelConfig(11, 13, norm="plain").replace(weights="dense").norm == "plain"
    assert ModelConfig(11, 13).replace(weights="dense") == ModelConfig(11, 13, weights="dense")
    with user_error(r"model\.embedding is 'masked' in a dense model"):
        ModelConfig(11, 13, embedding="masked").replace(weights="dense")


@pytest.mark.parametrize("size", mostly_slow(SIZES, ["tiny", "base"]))
def test_every_size_builds_and_has_the_published_count(size):
    d, ffn, heads, layers = SIZES[size]
    vocabularies = 8848, 6632
    config = ModelConfig(
        *vocabularies, d_model=d, ffn=ffn, heads=heads, encoder_layers=layers, decoder_layers=layers, remat=True
    )
    model, tokens = build(config), jnp.ones((2, 5), jnp.int32)
    shapes = jax.eval_shape(model.init, jax.random.key(0), tokens, tokens)
    assert jax.eval_shape(model.apply, shapes, tokens, tokens).shape == (2, 5, 6632)
    encoder, decoder, embeddings = 4 * d * d + 2 * d * ffn, 8 * d * d + 2 * d * ffn, sum(vocabularies) * d
    assert count(shapes["random"]) == encoder + decoder + embeddings
    assert count(shapes["params"]) == layers * (encoder + decoder) + embeddings
    if size in PUBLISHED:
        assert 0.5 * count(shapes["random"]) / 1e6 == pytest.approx(PUBLISHED[size], abs=0.05)


def count(tree) -> int:
    return sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(tree))

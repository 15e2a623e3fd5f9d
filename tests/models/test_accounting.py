"""Counts of parameters and bytes are those of the real arrays, and the paper's own come out of its shapes."""

import jax
import numpy as np
import pytest
from flax.traverse_util import flatten_dict

from configs.common import SIZES
from one_layer.models import ModelConfig, initialize
from one_layer.models.accounting import account
from one_layer.models.by_role import pack
from tests import user_error
from tests.models.test_weights import OPTIONS, TINY
from tests.numpy_transformer import mask_of

# Types a side. IWSLT14: fairseq's separate dictionaries. WMT14: the paper's code reads `wmt14_en_de_joined_dict` with a table for
# each side; how many types that dictionary has is not published, and about 41,000 reproduces every number of Table 1.
IWSLT14, WMT14 = (8848, 6632), (41_000, 41_000)


def model(size, vocabularies, weights="one_layer", **changes):
    *widths, layers = SIZES[size]
    sizes = dict(zip(("d_model", "ffn", "heads"), widths, strict=True), encoder_layers=layers, decoder_layers=layers)
    return ModelConfig(*vocabularies, **sizes, weights=weights, **changes)


def millions(*arguments, **changes):
    return round(account(model(*arguments, **changes))["parameters"]["no_mask"] / 1e6)


def test_table_1_counts_of_parameters():
    """Its column "Param (no mask)": 39M, 7M, 18M, 7M on IWSLT14 and 86M, 25M, 57M, 25M on WMT14."""
    assert [
        millions("small", IWSLT14, "dense"),
        *(millions(size, IWSLT14) for size in ("small", "wide", "deep")),
    ] == [39, 7, 18, 7]
    assert [
        millions("base", WMT14, "dense"),
        *(millions(size, WMT14) for size in ("base", "wider", "deeper")),
    ] == [86, 25, 57, 25]


def masks(scores, config):
    """What is not 0 in every layer's mask, by sorting; of a threshold that 0.5 % pass."""
    layers = np.asarray(scores).reshape(-1, *scores.shape[-2:])
    found = np.stack([mask_of(config, layer) != 0 for layer in layers])
    assert (found.mean(axis=(1, 2)) > 0.006).all()
    return found.reshape(scores.shape)


# All matrices are alike: there is little to compile.
SQUARE = {"source_vocab": 8, "target_vocab": 8, "ffn": 8, "encoder_layers": 1, "decoder_layers": 1}
# Besides what the tests of the variables have: what layers can share, what is fixed, and every way to select.
MORE = [
    {"weights": "multi_layer", "d_model": 6, "heads": 1, "ffn": 7, "source_vocab": 9},  # masks that end within a byte
    {"weights": "multi_layer", "sharing": "masks"},
    {"bias": True, "norm": "affine", "share_norm_scale": True},
    {"norm": "frozen", "embedding_path": "embeddings.txt"},
    {"embedding": "frozen", "embedding_path": "embeddings.txt", "selection": "score"},
    {"selection": "threshold", "threshold": 0.1, **SQUARE},
    {"selection": "signed_threshold", "threshold": 0.2, **SQUARE},
    {"selection": "sign", "keep": 1.0, **SQUARE},
]


@pytest.mark.parametrize("changes", [*OPTIONS, *(each for each in MORE if each not in OPTIONS)], ids=str)
def test_counts_are_those_of_the_real_arrays(changes):
    config = TINY.replace(**changes)
    variables = initialize(config, 0)
    found = account(config, variables)
    parameters = found["parameters"]
    for name, collection in (("trained", "params"), ("random", "random"), ("frozen", "frozen")):
        assert parameters[name] == sum(leaf.size for leaf in jax.tree.leaves(variables.get(collection, {}))), name

    params = flatten_dict(variables["params"])
    ones = {path: masks(leaf, config) for path, leaf in params.items() if path[-1] == "scores"}
    others = sum(leaf.nbytes for path, leaf in params.items() if path not in ones)
    others += sum(leaf.nbytes for leaf in jax.tree.leaves(variables.get("frozen", {})))
    assert parameters["kept"] == sum(each.sum() for each in ones.values())
    written = [pack(each.astype(np.int8), config.supermask) for each in ones.values()]  # what a ticket holds
    packed = sum(bits.nbytes for each in written for bits in each.values())
    assert found["bytes"]["ticket"] == packed + others


def test_the_masks_of_a_threshold_cannot_be_counted_without_scores():
    with user_error(r"model\.selection is 'threshold', so only the scores tell how much the masks keep"):
        account(TINY.replace(selection="threshold"))


@pytest.mark.parametrize("shared", [False, True])
def test_the_dense_model_has_every_matrix_of_every_layer_with_biases_and_norms_and_shared_tables_once(shared):
    config = TINY.replace(shared_embedding=shared, source_vocab=TINY.target_vocab)
    dense = config.replace(weights="dense")
    arrays = jax.tree.leaves(initialize(dense, 0))
    expected = sum(leaf.nbytes for leaf in arrays)
    for each in (config, dense, config.replace(weights="multi_layer", embedding="frozen", keep=0.3)):
        assert account(each)["bytes"]["dense_float32"] == expected
    assert account(dense)["bytes"]["ticket"] == expected, "it has no masks: all of it is trained"


FAMILIES = {
    "translation": {},
    "classifier": {"decoder_layers": 0, "embedding_norm": True},
    "decoder": {"encoder_layers": 0},
    "masked_lm": {"decoder_layers": 0, "embedding_norm": True},
}


@pytest.mark.parametrize(
    "changes", [{}, {"norm_position": "pre"}, {"norm_position": "pre", "block": "modern"}], ids=str
)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_dense_model_is_the_dense_model_of_its_shape(family, changes):
    dense = TINY.replace(family=family, weights="dense", **FAMILIES[family], **changes)
    found = account(dense)["parameters"]
    assert found["dense"] == found["trained"]
    for masked in (dense.replace(weights="one_layer"), dense.replace(weights="multi_layer", norm="plain")):
        assert account(masked)["parameters"]["dense"] == found["trained"]


def test_a_dense_model_has_a_table_of_positions_whether_it_is_trained_or_fixed():
    learned = TINY.replace(family="masked_lm", positions="learned", weights="dense", **FAMILIES["masked_lm"])
    frozen = {"positions": "frozen", "embedding_source": "roberta", "embedding_path": "roberta", "embedding": "frozen"}
    found = account(learned.replace(weights="one_layer", **frozen))["parameters"]
    assert found["dense"] == account(learned)["parameters"]["trained"]


def test_independent_masks_of_shared_weights_together_use_nearly_all_of_them():
    keep = 0.3
    config = TINY.replace(d_model=32, ffn=48, keep=keep, encoder_layers=6, decoder_layers=6)
    found = account(config)["parameters"]
    used = size = 0
    for path, leaf in flatten_dict(initialize(config, 0)["params"]).items():
        if leaf.ndim == 3:
            assert path[-1] == "scores"
            used += np.any(masks(leaf, config), axis=0).sum()
            size += leaf[0].size
    assert found["shared"] == size
    assert found["shared_used"] == pytest.approx((1 - (1 - keep) ** 6) * size, rel=1e-3)
    assert found["shared_used"] == pytest.approx(used, rel=0.02), "scores as they are drawn make independent masks"


def test_masks_of_a_layer_s_own_weights_use_no_more_than_they_keep():
    found = account(TINY.replace(weights="multi_layer"))["parameters"]
    assert found["no_mask"] == pytest.approx(found["random"] / 2, rel=0.01)
    assert found["shared"] == found["shared_used"] == 0

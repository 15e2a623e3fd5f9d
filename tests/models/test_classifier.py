"""The classifier: its numbers, what of it is trained, and its ticket."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.traverse_util import flatten_dict, unflatten_dict

from one_layer import tickets
from one_layer.data.config import DataConfig
from one_layer.data.special_tokens import PAD
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.preprocess import LABEL, Preprocessing
from one_layer.data.text.vocabulary import SPECIALS, Vocabulary
from one_layer.layers.materializing import materialize
from one_layer.models import ModelConfig, build, initialize
from one_layer.models.families import label_count
from one_layer.models.flops import batch_flops, update_flops
from one_layer.tasks.losses import label_nll
from tests import mostly_slow, numpy_transformer
from tests.compiling import jit
from tests.ticket_reader import TicketReader

PLAIN = ModelConfig(12, 7, d_model=8, ffn=12, heads=2, encoder_layers=2, decoder_layers=0, keep=0.6)
LIKE_ROBERTA = {"max_positions": 9, "embedding_norm": True, "activation": "gelu"}
FROZEN = {"positions": "frozen", "embedding_source": "roberta", "embedding_path": "somewhere"}
CONFIGS = {
    "as the paper's translation models": PLAIN,
    "as RoBERTa": PLAIN.replace(**LIKE_ROBERTA, **FROZEN, norm="affine", bias=True),
    "as RoBERTa, with a learned table": PLAIN.replace(**LIKE_ROBERTA, weights="dense", positions="learned"),
    "dense": PLAIN.replace(weights="dense", embedding_norm=True),
}
TEXTS = np.array([[0, 5, 6, 2, 2, 7, 2], [0, 8, 2, 1, 1, 1, 1]], np.int32)
LABELS = np.array([[5, 2], [4, 2]], np.int32)


@pytest.fixture(scope="module", params=mostly_slow(CONFIGS, list(CONFIGS)[:2]))
def case(request):
    """A config and variables in which no array is 0 or 1 alone."""
    config, noise = CONFIGS[request.param], np.random.default_rng(1)
    found = flatten_dict(initialize(config, 7))
    for path, leaf in found.items():
        if path[0] == "frozen" or path[-1] in ("bias", "scale"):
            found[path] = jnp.asarray(noise.normal(0.5, 0.4, leaf.shape), jnp.float32)
    return config, {"random": {}, **unflatten_dict(found)}, jit(build(config).apply)


def test_logits_are_those_of_the_description(case):
    config, variables, apply = case
    logits = apply(variables, TEXTS)
    assert logits.shape == (2, label_count(config)) == (2, 3) and logits.dtype == jnp.float32
    expected = numpy_transformer.label_logits(config, variables, TEXTS)
    np.testing.assert_allclose(logits, expected, rtol=2e-5, atol=2e-5)


def test_the_operations_of_a_batch_are_those_of_its_texts():
    """Labels are padded to the width of the texts, but the head makes one prediction for each text."""
    rows, width = TEXTS.shape
    labels = np.pad(LABELS, ((0, 0), (0, width - LABELS.shape[1])), constant_values=1)
    batch = {name: each[None] for name, each in {"source": TEXTS, "target": labels, "target_in": labels}.items()}
    assert batch_flops(PLAIN, batch, rows) == update_flops(PLAIN, rows, width) < update_flops(PLAIN, rows, width, width)


def test_the_head_drops_its_input_and_its_hidden_values_by_masks_of_their_own():
    config = PLAIN.replace(head_dropout=0.5)
    network, variables, key = build(config), initialize(config, 7), {"dropout": jax.random.key(3)}
    bound = network.bind(variables, rngs=key)
    one, two = (np.asarray(bound.head_drop(jnp.ones((2, 8)))) for _ in range(2))
    assert set(one.ravel()) | set(two.ravel()) == {0.0, 2.0} and np.any(one != two)

    head, table = variables["params"], network.apply(variables, method=lambda module: module.source_embedding())
    first = np.asarray(jit(partial(network.apply, method="encoded"))(variables, table, TEXTS))
    hidden = np.tanh(one * first[:, 0] @ head["head_dense"]["kernel"]) * two
    apply = jit(network.apply)
    np.testing.assert_allclose(apply(variables, TEXTS, rngs=key), hidden @ head["head_output"]["kernel"], atol=1e-5)
    np.testing.assert_array_equal(apply(variables, TEXTS), jit(build(PLAIN).apply)(variables, TEXTS))


def test_pads_and_other_texts_change_nothing(case):
    _, variables, apply = case
    logits = np.asarray(apply(variables, TEXTS))
    longer = np.pad(TEXTS[::-1], ((0, 0), (0, 2)), constant_values=PAD)
    np.testing.assert_allclose(apply(variables, longer)[::-1], logits, rtol=1e-5, atol=1e-6)


def test_the_head_and_the_scores_are_trained_and_all_of_them_get_a_gradient(case):
    config, variables, _ = case
    network = build(config)

    def loss(params):
        return label_nll(network.apply({**variables, "params": params}, TEXTS), LABELS, 0.1)[0]

    gradients = flatten_dict(jax.jit(jax.grad(loss))(variables["params"]))
    kinds = {path[-1] for path in gradients if not path[0].startswith("head_")}
    norms = {"scale", "bias"} if config.norm == "affine" else set()
    assert kinds == ({"kernel"} if config.weights == "dense" else {"scores"}) | norms
    assert {path for path in gradients if path[0].startswith("head_")} == {
        (name, leaf) for name in ("head_dense", "head_output") for leaf in ("kernel", "bias")
    }
    # The bias of a key moves all of a query's scores alike.
    assert all(np.any(np.asarray(g)) for path, g in gradients.items() if path[-2:] != ("key", "bias"))


def test_the_loss_is_of_labels_and_counts_no_empty_row():
    logits = jnp.asarray(np.random.default_rng(0).normal(size=(3, 4)), jnp.float32)
    target = np.array([[4, 2], [7, 2], [PAD, PAD]])
    total, nll, texts = label_nll(logits, target, 0.0)
    log_p = np.asarray(jax.nn.log_softmax(logits), np.float64)
    assert texts == 2 and nll == pytest.approx(-log_p[0, 0] - log_p[1, 3], rel=1e-6) and total == nll
    smoothed, _, _ = label_nll(logits, target, 0.1)
    assert smoothed == pytest.approx(0.9 * float(nll) - 0.1 * log_p[:2].mean(axis=1).sum(), rel=1e-6)


def test_its_ticket_is_the_whole_of_it(case, tmp_path):
    config, variables, apply = case
    words = tuple(f"w{number}" for number in range(8))
    vocabularies = Vocabulary(SPECIALS + words), Vocabulary((*SPECIALS, "entailment", "neutral", "contradiction"))
    assets = TextAssets(*vocabularies, Preprocessing("en", pairs=True), Preprocessing(LABEL))
    data = DataConfig(source="labelled", labels="mnli", directory="somewhere", max_length=9)
    tickets.save(tmp_path / "t", tickets.make(config, 7, variables, assets, data=data))

    loaded = tickets.load(tmp_path / "t")
    assert (loaded.config, loaded.assets, loaded.data) == (config, assets, data)
    logits = np.asarray(apply(jit(partial(materialize, mask=config.supermask))(variables), TEXTS))
    for packed in (False, True):
        np.testing.assert_array_equal(np.asarray(apply(tickets.variables(loaded, packed), TEXTS)), logits)

    reader = TicketReader(tmp_path / "t")
    assert reader.vocabularies["target"] == [*SPECIALS, "entailment", "neutral", "contradiction"]
    assert reader.preprocessing["source"]["pairs"] and not reader.preprocessing["target"]["pairs"]
    dense, output = (reader.arrays[f"params/head/{name}/kernel"] for name in ("dense", "output"))
    np.testing.assert_array_equal(dense, variables["params"]["head_dense"]["kernel"])
    np.testing.assert_array_equal(output, variables["params"]["head_output"]["kernel"])
    if config.positions == "frozen":
        np.testing.assert_array_equal(
            reader.weights["encoder/position"], variables["frozen"]["position_embedding"]["kernel"]
        )
        name = "params/encoder/embedding/norm/scale"
        np.testing.assert_array_equal(reader.arrays[name], variables["params"]["embedding_norm"]["layer_norm"]["scale"])

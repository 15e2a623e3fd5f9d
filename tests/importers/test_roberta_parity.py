"""RoBERTa's encoder and heads against those of Hugging Face's `transformers`, on the same tiny random weights, with right padding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.traverse_util import flatten_dict, unflatten_dict

from one_layer.data.special_tokens import PAD
from one_layer.importers.roberta import convert, export, write_options
from one_layer.models import ModelConfig, build, initialize
from one_layer.tasks.losses import label_nll, label_smoothed_nll

torch = pytest.importorskip("torch", reason="torch is not installed (requirements-torch.txt)")
transformers = pytest.importorskip("transformers", reason="transformers is not installed (requirements-torch.txt)")

VOCAB, TOLERANCE = 14, 1e-5
DENSE = ModelConfig(
    *(VOCAB, VOCAB),
    **{"d_model": 8, "ffn": 12, "heads": 2, "encoder_layers": 3, "decoder_layers": 0, "weights": "dense"},
    **{"positions": "learned", "max_positions": 9, "embedding_norm": True, "activation": "gelu", "family": "masked_lm"},
)
AFFINE = {"bias": True, "norm": "affine"}
CONFIGS = {
    "dense": DENSE,
    "one_layer, affine": DENSE.replace(weights="one_layer", keep=0.6, **AFFINE),
    "multi_layer": DENSE.replace(weights="multi_layer", keep=0.6, **AFFINE),
    "a layer string": DENSE.replace(weights="one_layer", encoder_layers="LSRS", keep=0.6),
}
SOURCE = np.array([[0, 5, 13, 6, 2, 7, 2], [0, 8, 13, 2, PAD, PAD, PAD]], np.int32)
PLACES, WANTED = np.array([[2, 5], [2, 0]], np.int32), np.array([[9, 7], [11, PAD]], np.int32)
LABELS = np.array([[5, 2], [4, 2]], np.int32)  # the first label has the id 4


def noisy(config):
    """Variables in which no array is 0 or 1 alone."""
    noise = np.random.default_rng(1)
    flat = flatten_dict(initialize(config, 7))
    for path, leaf in flat.items():
        if path[-1] in ("bias", "scale"):
            flat[path] = jnp.asarray(noise.normal(0.5, 0.4, leaf.shape), jnp.float32)
    return {"params": {}, "random": {}, **unflatten_dict(flat)}


def theirs(kind, config, variables):
    """Hugging Face's model with these weights, without dropout."""
    options = write_options(config, tuple(f"label{n}" for n in range(config.target_vocab - 4)))
    model = getattr(transformers, kind)(transformers.RobertaConfig(**options)).eval()
    state = {name: torch.from_numpy(array) for name, array in export(variables, config).items()}
    if kind == "RobertaModel":
        state = {name.removeprefix("roberta."): tensor for name, tensor in state.items() if name.startswith("roberta.")}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and not {name for name in missing if not name.startswith(("lm_head.decoder", "pooler"))}
    return model


def inputs():
    return {"input_ids": torch.tensor(SOURCE).long(), "attention_mask": torch.tensor(SOURCE != PAD).long()}


def close(ours, their):
    np.testing.assert_allclose(np.asarray(ours), their.detach().numpy(), rtol=TOLERANCE, atol=TOLERANCE)


@pytest.fixture(params=CONFIGS)
def masked_lm(request):
    config = CONFIGS[request.param]
    return config, noisy(config)


def test_masked_language_model(masked_lm):
    config, variables = masked_lm
    network, model = build(config), theirs("RobertaForMaskedLM", config, variables)
    labels = np.full_like(SOURCE, -100)
    for row, column, token in [(0, 2, 9), (0, 5, 7), (1, 2, 11)]:
        labels[row, column] = token
    their = model(**inputs(), labels=torch.tensor(labels).long())

    def loss(params):
        logits = network.apply({**variables, "params": params}, SOURCE, PLACES)
        total, _, count = label_smoothed_nll(logits, WANTED, 0.0)
        return total / count, logits

    (ours, logits), gradients = jax.jit(jax.value_and_grad(loss, has_aux=True))(variables["params"])
    close(ours, their.loss)
    close(logits, their.logits[np.arange(2)[:, None], PLACES])
    compare(config, variables, gradients, model, their.loss)


@pytest.mark.parametrize("name", CONFIGS)
def test_classifier(name):
    config = CONFIGS[name].replace(family="classifier", target_vocab=7)
    variables = noisy(config)
    network, model = build(config), theirs("RobertaForSequenceClassification", config, variables)
    their = model(**inputs(), labels=torch.tensor(LABELS[:, 0] - 4).long())

    def loss(params):
        logits = network.apply({**variables, "params": params}, SOURCE)
        total, _, count = label_nll(logits, LABELS, 0.0)
        return total / count, logits

    (ours, logits), gradients = jax.jit(jax.value_and_grad(loss, has_aux=True))(variables["params"])
    close(ours, their.loss)
    close(logits, their.logits)
    compare(config, variables, gradients, model, their.loss)


def compare(config, variables, gradients, model, loss):
    """Trained parameters have the same gradients, and scores have W sign(S) times that of W ⊙ M, as dL/dS of a mask is defined."""
    loss.backward()
    state = {name: parameter.grad.numpy() for name, parameter in model.named_parameters() if parameter.grad is not None}
    state.pop("roberta.embeddings.token_type_embeddings.weight")  # its row is added at all positions
    plain = config.replace(weights="dense", encoder_layers=config.depth("encoder"))
    their = flatten_dict(convert(state, plain, 0)[0]["params"])
    random, params = flatten_dict(variables["random"]), flatten_dict(variables["params"])
    stack = config.stack("encoder")
    letters = {group.name: group.letter for group in stack.groups}
    for path, gradient in flatten_dict(gradients).items():
        kernel, wanted = (*path[:-1], "kernel"), path
        factor = random[kernel] * np.sign(params[path]) if path[-1] == "scores" else 1.0
        if path[-1] == "scores":
            wanted = kernel
        if path[0] == "encoder":
            places = [place for place, letter in enumerate(stack.pattern) if letter == letters[path[1]]]
            found = their["encoder", "layers", *wanted[2:]][places]
            found = found.sum(axis=0) if found.ndim > gradient.ndim else found  # the layers share this parameter
        else:
            found = their[wanted]
        np.testing.assert_allclose(gradient, found * factor, rtol=TOLERANCE, atol=TOLERANCE, err_msg="/".join(path))

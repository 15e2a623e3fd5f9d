"""Five updates equal PyTorch's to 1e-5: of the optimiser alone, and of the whole training step on a model written in torch."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax.traverse_util import flatten_dict
from hypothesis import example, given, settings
from hypothesis import strategies as st

from one_layer.data.special_tokens import EOS, PAD
from one_layer.models import initialize
from one_layer.models.config import ModelConfig
from one_layer.runs.settings import OptimConfig
from one_layer.tasks import TASKS
from one_layer.training.optimizer import optimizer
from one_layer.training.step import train_step

torch = pytest.importorskip("torch", reason="torch is what the numbers are compared with; pip install torch")

UPDATES = 5
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
MODELS = {
    weights: ModelConfig(20, 18, d_model=16, ffn=32, heads=2, encoder_layers=2, decoder_layers=2, weights=weights)
    for weights in ("one_layer", "dense")
}
# eps: rounding must not become a step where a gradient is nearly 0, as that of a key's bias is always.
RECIPE = OptimConfig(lr=0.02, warmup=3, warmup_init_lr=0.004, eps=1e-5, weight_decay=0.1, clip=1.0, accumulate=2)


class TorchAdam:
    """fairseq's update made of torch's own parts: clip_grad_norm_, then AdamW, which decays p by lr·wd·p before Adam's step.

    AdamW adds eps to the corrected root. √(v / c) + eps / √c = (√v + eps) / √c is what the reference divides by, so AdamW gets
    another eps at every update. Update t has the rate of the schedule at t - 1.
    """

    def __init__(self, config, leaves):
        self.config, self.leaves, self.updates = config, leaves, 0
        self.adam = torch.optim.AdamW(leaves, betas=(config.b1, config.b2), weight_decay=config.weight_decay)

    def step(self):
        config, (group,) = self.config, self.adam.param_groups
        if config.clip:
            torch.nn.utils.clip_grad_norm_(self.leaves, config.clip)
        group["lr"] = self.rate()
        self.updates += 1
        group["eps"] = config.eps / math.sqrt(1 - config.b2**self.updates)
        self.adam.step()
        self.adam.zero_grad()

    def rate(self):
        """Linear to `lr` over the warm-up, then by the inverse square root."""
        config, t = self.config, self.updates
        if t < config.warmup:
            return config.warmup_init_lr + t * (config.lr - config.warmup_init_lr) / config.warmup
        return config.lr * config.warmup**0.5 * t**-0.5


RECIPES = st.builds(
    OptimConfig,
    lr=st.sampled_from([1e-4, 0.01, 0.1, 1.0]),
    warmup=st.integers(1, 7),
    warmup_init_lr=st.sampled_from([0.0, 1e-7, 0.02]),
    b1=st.sampled_from([0.0, 0.5, 0.9, 0.99]),
    b2=st.sampled_from([0.5, 0.9, 0.98, 0.999, 0.9999]),
    eps=st.sampled_from([1e-9, 1e-8, 1e-6, 1e-3]),
    weight_decay=st.sampled_from([0.0, 0.01, 0.5]),
    clip=st.sampled_from([0.0, 0.1, 3.0]),
)


@settings(max_examples=12, deadline=None)
@example(OptimConfig(lr=0.1, warmup=1, b2=0.9999), 0, 0)  # 1 - b2 in float32 would miss by three times the tolerance
@given(RECIPES, st.integers(0, 99), st.integers(-5, 1))
def test_the_optimiser_alone(recipe, seed, magnitude):
    rng = np.random.default_rng(seed)
    params = rng.standard_normal((2, 3, 4), np.float32)
    leaves = [torch.nn.Parameter(torch.tensor(leaf)) for leaf in params]
    params = dict(zip("ab", jnp.asarray(params), strict=True))
    theirs, ours = TorchAdam(recipe, leaves), optimizer(recipe, UPDATES)
    state = ours.init(params)
    for _ in range(UPDATES):
        gradients = rng.standard_normal((2, 3, 4), np.float32) * np.float32(10.0**magnitude)
        for leaf, gradient in zip(leaves, gradients, strict=True):
            leaf.grad = torch.tensor(gradient)
        theirs.step()
        changes, state = ours.update(dict(zip("ab", jnp.asarray(gradients), strict=True)), state, params)
        params = optax.apply_updates(params, changes)
        for name, leaf in zip("ab", leaves, strict=True):
            np.testing.assert_allclose(params[name], leaf.detach().numpy(), **CLOSE)


class Select(torch.autograd.Function):
    """Ones for the entries of largest |score|, all but int((1 - keep) n) of them; the gradient of |score| is passed through."""

    @staticmethod
    def forward(context, scores, keep):
        context.sign = scores.sign()
        mask = torch.ones(scores.numel())
        mask[scores.abs().flatten().argsort()[: int((1 - keep) * scores.numel())]] = 0.0
        return mask.view_as(scores)

    @staticmethod
    def backward(context, gradient):
        return gradient * context.sign, None


class TorchModel:
    """The Transformer of golden/README.md, of leaves named by their path here: one layer under L masks, or L trained layers."""

    def __init__(self, config, variables):
        self.config = config
        self.leaves = {path: torch.nn.Parameter(torch.tensor(a)) for path, a in flat(variables["params"]).items()}
        self.random = {path: torch.tensor(a) for path, a in flat(variables["random"]).items()}

    def loss(self, source, target_in, target, smoothing):
        """The label-smoothed sum over target tokens."""
        log_p = self.logits(torch.tensor(source), torch.tensor(target_in)).log_softmax(-1)
        target = torch.tensor(target).long()
        nll = -log_p.gather(-1, target[..., None])[..., 0]
        each = (1 - smoothing) * nll - smoothing / log_p.shape[-1] * log_p.sum(-1)
        return each[target != PAD].sum()

    def logits(self, source, target_in):
        tables = self.matrix("source_embedding"), self.matrix("target_embedding")
        words, past = (source != PAD)[:, None, None], (target_in != PAD)[:, None, None]
        past = past & torch.ones(target_in.shape[1], target_in.shape[1]).tril().bool()
        encoded = self.embed(tables[0], source)
        for layer in range(self.config.encoder_layers):
            at = "encoder", layer
            encoded = self.norm(
                *at, "self_attention", encoded + self.attend(*at, "self_attention", encoded, encoded, words)
            )
            encoded = self.norm(*at, "ffn", encoded + self.feed_forward(*at, encoded))
        x = self.embed(tables[1], target_in)
        for layer in range(self.config.decoder_layers):
            at = "decoder", layer
            x = self.norm(*at, "self_attention", x + self.attend(*at, "self_attention", x, x, past))
            x = self.norm(*at, "cross_attention", x + self.attend(*at, "cross_attention", x, encoded, words))
            x = self.norm(*at, "ffn", x + self.feed_forward(*at, x))
        return x @ tables[1].T

    def matrix(self, path, layer=...):
        if f"{path}/kernel" in self.leaves:
            return self.leaves[f"{path}/kernel"][layer]
        return self.random[f"{path}/kernel"] * Select.apply(self.leaves[f"{path}/scores"][layer], self.config.keep)

    def project(self, stack, layer, name, x):
        path = f"{stack}/layers/{name}"
        y = x @ self.matrix(path, layer)
        return y + self.leaves[f"{path}/bias"][layer] if self.config.bias else y

    def attend(self, stack, layer, name, x, source, visible):
        heads, size = self.config.heads, x.shape[-1] // self.config.heads

        def project(part, y):
            return self.project(stack, layer, f"{name}/{part}", y).unflatten(-1, (heads, size)).transpose(1, 2)

        scores = project("query", x) * size**-0.5 @ project("key", source).transpose(2, 3)
        mixed = scores.masked_fill(~visible, -torch.inf).softmax(-1) @ project("value", source)
        return self.project(stack, layer, f"{name}/output", mixed.transpose(1, 2).flatten(2))

    def feed_forward(self, stack, layer, x):
        return self.project(stack, layer, "ffn_out", self.project(stack, layer, "ffn_in", x).relu())

    def norm(self, stack, layer, name, x):
        path = f"{stack}/layers/{name}_norm/layer_norm"
        affine = (
            [self.leaves[f"{path}/{kind}"][layer] for kind in ("scale", "bias")] if self.config.norm == "affine" else []
        )
        return torch.nn.functional.layer_norm(x, x.shape[-1:], *affine, eps=1e-5)

    def embed(self, table, tokens):
        """Positions are counted over the tokens that are no pads, from 2; a pad's is the zero vector."""
        real, half = tokens != PAD, table.shape[1] // 2
        angles = (real.cumsum(1) + 1)[..., None] * torch.exp(-torch.arange(half) * math.log(10000) / (half - 1))
        return table[tokens] * math.sqrt(2 * half) + torch.cat([angles.sin(), angles.cos()], -1) * real[..., None]


def flat(tree):
    return {path: np.array(leaf) for path, leaf in flatten_dict(tree, sep="/").items()}


def batch(config, seed):
    """Two micro-batches of unlike many tokens: sources padded on the left, targets on the right."""
    rng, length = np.random.default_rng(seed), 7
    source = rng.integers(4, config.source_vocab, (2, 4, length)).astype(np.int32)
    target = rng.integers(4, config.target_vocab, (2, 4, length)).astype(np.int32)
    source[..., -1] = EOS
    for micro_batch in range(2):
        for row in range(4):
            source[micro_batch, row, :row] = PAD
            end = rng.integers(1, 3) if micro_batch else length - 1 - row
            target[micro_batch, row, end], target[micro_batch, row, end + 1 :] = EOS, PAD
    target_in = np.concatenate([np.full((2, 4, 1), EOS, np.int32), target[..., :-1]], axis=-1)
    target_in[target == PAD] = PAD
    return {"source": source, "target_in": target_in, "target": target}


@pytest.mark.parametrize("weights", MODELS)
def test_the_whole_training_step(weights):
    """The gradient of the sum over both micro-batches divided by the sum of their tokens, clipped in some updates; masks flip."""
    config, smoothing = MODELS[weights], RECIPE.label_smoothing
    variables = initialize(config, 1)
    params, fixed = variables["params"], {"random": variables["random"]}
    model, before = TorchModel(config, variables), flat(params)
    theirs, ours = TorchAdam(RECIPE, list(model.leaves.values())), optimizer(RECIPE, UPDATES)
    step, moments = train_step(TASKS["translation"], config, ours, smoothing, 1), ours.init(params)
    for update in range(UPDATES):
        arrays = batch(config, update)
        parts = [{name: array[index] for name, array in arrays.items()} for index in range(RECIPE.accumulate)]
        losses = [model.loss(**part, smoothing=smoothing) for part in parts]
        sum(losses).backward()
        tokens = int((arrays["target"] != PAD).sum())
        for leaf in model.leaves.values():
            leaf.grad /= tokens
        norm = sum(float((leaf.grad**2).sum()) for leaf in model.leaves.values()) ** 0.5
        theirs.step()
        params, moments, sums = step(params, moments, fixed, arrays, update)
        np.testing.assert_allclose(
            [sums["loss"], sums["tokens"], sums["norm"]], [sum(losses).item(), tokens, norm], rtol=1e-5
        )
        for path, found in flat(params).items():
            np.testing.assert_allclose(found, model.leaves[path].detach().numpy(), **CLOSE, err_msg=path)
    if config.masked:
        assert all(flips(before[path], found) for path, found in flat(params).items())


def flips(scores, others):
    """How many entries the mask of one matrix keeps and that of the other drops."""
    masks = [Select.apply(torch.tensor(each.reshape(-1)), 0.5) for each in (scores, others)]
    return int((masks[0] > masks[1]).sum())

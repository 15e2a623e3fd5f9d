"""The models once more, in float64 NumPy and plain loops, straight from its description."""

import math
from typing import Any

import numpy as np

from one_layer.models import ModelConfig

Tree = dict[str, Any]


def logits(config: ModelConfig, variables: Tree, source: np.ndarray, target_in: np.ndarray) -> np.ndarray:
    """[batch, target length, target vocabulary], for a model without dropout."""
    model = _Model(config, variables)
    return np.stack([model.sentence(s, t) for s, t in zip(source, target_in, strict=True)])


def label_logits(config: ModelConfig, variables: Tree, source: np.ndarray) -> np.ndarray:
    """[batch, labels], of a classifier without dropout."""
    model = _Model(config, variables)
    return np.stack([model.text(s) for s in source])


class _Model:
    def __init__(self, config: ModelConfig, variables: Tree) -> None:
        self.config, self.params, self.random = config, variables["params"], variables["random"]
        self.frozen = variables.get("frozen", {})

    def sentence(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        names = ("shared", "shared") if self.config.shared_embedding else ("source", "target")
        tables = [self.matrix(f"{name}_embedding") for name in names]
        encoded = self.encode(embed(tables[0], source), source)
        x = embed(tables[1], target)
        past = np.tril(np.ones((len(target), len(target)), bool)) & (target != 1)
        words = np.broadcast_to(source != 1, (len(target), len(source)))
        for layer in range(self.config.decoder_layers):
            at = ("decoder", "layers", layer)
            x = self.add(*at, "self_attention", x, self.attend(*at, "self_attention", x, x, past))
            x = self.add(*at, "cross_attention", x, self.attend(*at, "cross_attention", x, encoded, words))
            x = self.add(*at, "ffn", x, self.feed_forward(*at, x))
        return x @ tables[1].T

    def encode(self, x: np.ndarray, source: np.ndarray) -> np.ndarray:
        seen = np.broadcast_to(source != 1, (len(source), len(source)))
        for layer in range(self.config.encoder_layers):
            at = ("encoder", "layers", layer)
            x = self.add(*at, "self_attention", x, self.attend(*at, "self_attention", x, x, seen))
            x = self.add(*at, "ffn", x, self.feed_forward(*at, x))
        return x

    def text(self, source: np.ndarray) -> np.ndarray:
        table = self.matrix("source_embedding")
        x = embed(table, source)
        if self.config.positions != "sinusoidal":
            places, count = self.matrix("position_embedding"), np.cumsum(source != 1)
            x = np.stack([table[token] + places[1 + n * (token != 1)] for token, n in zip(source, count, strict=True)])
        if self.config.embedding_norm:
            x = self.normalise(x, ["embedding_norm"], None)
        first = self.encode(x, source)[0]
        dense, output = self.params["head_dense"], self.params["head_output"]
        return np.tanh(first @ dense["kernel"] + dense["bias"]) @ output["kernel"] + output["bias"]

    def matrix(self, *path: str | int) -> np.ndarray:
        """W, or W under the mask of its scores; a number in the path is the layer, which shared weights do not have."""
        names = [name for name in path if isinstance(name, str)]
        layer = next((name for name in path if isinstance(name, int)), None)
        params, fixed = get(self.params, names), get(self.random, names) or get(self.frozen, names)
        if "kernel" in params:
            return at_layer(params["kernel"], layer, 2)
        weights = at_layer(fixed["kernel"], layer, 2)
        if "scores" not in params:
            return weights
        mask = mask_of(self.config, at_layer(params["scores"], layer, 2))
        if self.config.dynamic_scale:  # along the outputs of a projection, the tokens of a table
            axis = 1 if layer is not None else 0
            mask = mask * np.sqrt(mask.shape[axis] / np.maximum(mask.sum(axis=axis, keepdims=True), 1e-30))
        return weights * mask

    def project(self, x: np.ndarray, *path: str | int) -> np.ndarray:
        y = x @ self.matrix(*path)
        params = get(self.params, [name for name in path if isinstance(name, str)])
        return y + at_layer(params["bias"], path[2], 1) if self.config.bias else y

    def attend(self, stack: str, layers: str, layer: int, name: str, x, source, visible) -> np.ndarray:
        at, heads = (stack, layers, layer, name), self.config.heads
        query, key, value = (
            self.project(y, *at, part) for y, part in ((x, "query"), (source, "key"), (source, "value"))
        )
        size, mixed = self.config.d_model // heads, []
        for head in range(heads):
            part = slice(head * size, (head + 1) * size)
            scores = np.where(visible, query[:, part] @ key[:, part].T / np.sqrt(size), -1e30)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            mixed.append(weights / weights.sum(axis=1, keepdims=True) @ value[:, part])
        return self.project(np.concatenate(mixed, axis=1), *at, "output")

    def feed_forward(self, stack: str, layers: str, layer: int, x: np.ndarray) -> np.ndarray:
        hidden = self.project(x, stack, layers, layer, "ffn_in")
        if self.config.activation == "gelu":
            hidden = hidden * (1 + np.vectorize(math.erf)(hidden / math.sqrt(2))) / 2
        else:
            hidden = np.maximum(hidden, 0)
        return self.project(hidden, stack, layers, layer, "ffn_out")

    def add(self, stack: str, layers: str, layer: int, block: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Post-LN: LayerNorm(x + y)."""
        return self.normalise(x + y, [stack, layers, f"{block}_norm"], layer)

    def normalise(self, total: np.ndarray, names: list[str], layer: int | None) -> np.ndarray:
        centred = total - total.mean(axis=1, keepdims=True)
        normal = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
        if self.config.norm == "plain":
            return normal
        tree = self.frozen if self.config.norm == "frozen" else self.params
        affine = get(tree, [*names, "layer_norm"])
        return normal * at_layer(affine["scale"], layer, 1) + at_layer(affine["bias"], layer, 1)


def embed(table: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """Scaled by the root of the width, plus [sines | cosines] at positions from 2 over the tokens that are no pads."""
    d, position, found = table.shape[1], 1, []
    for token in tokens:
        place = np.zeros(d)
        if token != 1:
            position += 1
            angles = position * 10000.0 ** (-np.arange(d // 2) / (d // 2 - 1))
            place = np.concatenate([np.sin(angles), np.cos(angles)])
        found.append(table[token] * np.sqrt(d) + place)
    return np.array(found)


def get(tree: Tree, names: list[str]) -> Tree:
    for name in names:
        tree = tree.get(name, {})
    return tree


def at_layer(array: np.ndarray, layer: int | None, axes: int) -> np.ndarray:
    """What layer number `layer` has of an array of so many axes, or one more where every layer has its own."""
    return np.asarray(array if layer is None or array.ndim == axes else array[layer], np.float64)


def mask_of(config: ModelConfig, scores: np.ndarray) -> np.ndarray:
    """The mask, by sorting and comparing."""
    flat, threshold = scores.ravel(), config.threshold
    if config.selection == "sign":
        return np.where(scores < 0, -1.0, 1.0)
    if config.selection == "signed_threshold":
        return np.where(np.abs(scores) > threshold, np.sign(scores), 0.0)
    if config.selection in ("threshold", "sigmoid_threshold"):
        values = 1 / (1 + np.exp(-flat)) if config.selection == "sigmoid_threshold" else flat
        kept, least = np.flatnonzero(values > threshold), int(0.005 * flat.size) + 1
        if len(kept) < least:
            kept = np.argsort(-flat, kind="stable")[:least]
    else:
        rank = np.abs(flat) if config.selection == "magnitude" else flat
        kept = np.argsort(-rank, kind="stable")[: flat.size - int((1 - config.keep) * flat.size)]
    mask = np.zeros(flat.size)
    mask[kept] = 1.0
    return mask.reshape(scores.shape)

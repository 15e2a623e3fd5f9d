"""The translation model once more, in float64 NumPy and plain loops, straight from its description."""

from __future__ import annotations

from typing import Any

import numpy as np

from one_layer.models import ModelConfig

Tree = dict[str, Any]


def logits(config: ModelConfig, variables: Tree, source: np.ndarray, target_in: np.ndarray) -> np.ndarray:
    """[batch, target length, target vocabulary], for a model without dropout."""
    model = _Model(config, variables)
    return np.stack([model.sentence(s, t) for s, t in zip(source, target_in, strict=True)])


class _Model:
    def __init__(self, config: ModelConfig, variables: Tree) -> None:
        self.config, self.params, self.random = config, variables["params"], variables["random"]

    def sentence(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        names = ("shared", "shared") if self.config.shared_embedding else ("source", "target")
        tables = [self.matrix(f"{name}_embedding") for name in names]
        encoded = embed(tables[0], source)
        seen = np.broadcast_to(source != 1, (len(source), len(source)))
        for layer in range(self.config.encoder_layers):
            at = ("encoder", "layers", layer)
            encoded = self.add(
                *at, "self_attention", encoded, self.attend(*at, "self_attention", encoded, encoded, seen)
            )
            encoded = self.add(*at, "ffn", encoded, self.feed_forward(*at, encoded))
        x = embed(tables[1], target)
        past = np.tril(np.ones((len(target), len(target)), bool)) & (target != 1)
        words = np.broadcast_to(source != 1, (len(target), len(source)))
        for layer in range(self.config.decoder_layers):
            at = ("decoder", "layers", layer)
            x = self.add(*at, "self_attention", x, self.attend(*at, "self_attention", x, x, past))
            x = self.add(*at, "cross_attention", x, self.attend(*at, "cross_attention", x, encoded, words))
            x = self.add(*at, "ffn", x, self.feed_forward(*at, x))
        return x @ tables[1].T

    def matrix(self, *path: str | int) -> np.ndarray:
        """W, or W under the mask of its scores; a number in the path is the layer, which shared weights do not have."""
        names = [name for name in path if isinstance(name, str)]
        layer = next((name for name in path if isinstance(name, int)), None)
        params, random = get(self.params, names), get(self.random, names)
        if "kernel" in params:
            return at_layer(params["kernel"], layer)
        weights = random["kernel"] if random["kernel"].ndim == 2 else at_layer(random["kernel"], layer)
        if "scores" not in params:
            return np.asarray(weights, np.float64)
        scores = np.abs(at_layer(params["scores"], layer)).ravel()
        kept = np.argsort(-scores, kind="stable")[: scores.size - int((1 - self.config.keep) * scores.size)]
        mask = np.zeros(scores.size)
        mask[kept] = 1.0
        return weights * mask.reshape(weights.shape)

    def project(self, x: np.ndarray, *path: str | int) -> np.ndarray:
        y = x @ self.matrix(*path)
        params = get(self.params, [name for name in path if isinstance(name, str)])
        return y + at_layer(params["bias"], path[2]) if self.config.bias else y

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
        hidden = np.maximum(self.project(x, stack, layers, layer, "ffn_in"), 0)
        return self.project(hidden, stack, layers, layer, "ffn_out")

    def add(self, stack: str, layers: str, layer: int, block: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Post-LN: LayerNorm(x + y)."""
        total = x + y
        centred = total - total.mean(axis=1, keepdims=True)
        normal = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
        if self.config.norm == "plain":
            return normal
        affine = get(self.params, [stack, layers, f"{block}_norm", "layer_norm"])
        return normal * at_layer(affine["scale"], layer) + at_layer(affine["bias"], layer)


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


def at_layer(array: np.ndarray, layer: int | None) -> np.ndarray:
    return np.asarray(array if layer is None else array[layer], np.float64)

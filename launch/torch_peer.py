"""The same training step in plain PyTorch, which `launch/benchmark.py train` measures for comparison: a peer (launch/benchmarks/peers.py).

It makes masks as Ramanujan et al. (2020) and the paper's code do: it sorts all scores of every matrix at every use.
"""

from __future__ import annotations

import json
import platform
import sys
from typing import Any

try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ModuleNotFoundError:
    print("error: launch/torch_peer.py needs PyTorch: pip install -r requirements-torch.txt", file=sys.stderr)
    sys.exit(2)


class Kept(torch.autograd.Function):
    """Keeps the half with the largest magnitudes, by sorting. The gradient passes straight through."""

    @staticmethod
    def forward(_: Any, magnitudes: torch.Tensor) -> torch.Tensor:
        """Returns the mask."""
        order = magnitudes.flatten().argsort()
        mask = torch.ones(magnitudes.numel())
        mask[order[: magnitudes.numel() // 2]] = 0.0
        return mask.view_as(magnitudes)

    @staticmethod
    def backward(_: Any, gradient: torch.Tensor) -> torch.Tensor:
        """Returns the gradient of the mask as the gradient of the magnitudes."""
        return gradient


class Matrix(nn.Module):
    """A trained weight, or the product of a fixed weight, which layers may share, and a mask."""

    def __init__(self, rows: int, columns: int, weight: torch.Tensor | None) -> None:
        super().__init__()
        fixed = torch.randn(rows, columns) * columns**-0.5 if weight is None else weight
        self.weight = nn.Parameter(fixed, requires_grad=weight is None)
        self.scores = None if weight is None else nn.Parameter(torch.empty(rows, columns).uniform_(-0.05, 0.05))

    def forward(self) -> torch.Tensor:
        """Returns the matrix to multiply by."""
        return self.weight if self.scores is None else self.weight * Kept.apply(self.scores.abs())


class Layer(nn.Module):
    """A post-LN layer of an encoder, or of a decoder if `attentions` is 2."""

    def __init__(self, d: int, ffn: int, heads: int, attentions: int, shared: list[torch.Tensor] | None) -> None:
        super().__init__()
        shapes = [(d, d)] * (4 * attentions) + [(ffn, d), (d, ffn)]
        self.matrices = nn.ModuleList(
            Matrix(*shape, None if shared is None else shared[n]) for n, shape in enumerate(shapes)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(d, elementwise_affine=shared is None) for _ in range(attentions + 1))
        self.heads, self.attentions = heads, attentions

    def forward(self, x: torch.Tensor, encoded: torch.Tensor | None) -> torch.Tensor:
        """Applies the layer to `x`; the second attention of a decoder attends to `encoded`."""
        matrices = [matrix() for matrix in self.matrices]
        for number in range(self.attentions):
            q, k, v, o = matrices[4 * number : 4 * number + 4]
            source = encoded if number else x
            parts = [
                F.linear(y, w).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                for y, w in ((x, q), (source, k), (source, v))
            ]
            causal = number == 0 and self.attentions == 2
            mixed = F.scaled_dot_product_attention(*parts, is_causal=causal).transpose(1, 2).flatten(2)
            x = self.norms[number](x + F.linear(mixed, o))
        hidden = F.relu(F.linear(x, matrices[-2]))
        return self.norms[-1](x + F.linear(hidden, matrices[-1]))


class Training:
    """A model in training. Each call is one Adam update on the batch, in float32, with label smoothing 0.1 and no dropout."""

    def __init__(
        self, masked: bool, sizes: tuple[int, int, int, int], vocabularies: tuple[int, int], batch: dict[str, Any]
    ) -> None:
        d, ffn, heads, layers = sizes
        torch.manual_seed(0)
        self.tables = nn.ModuleList(
            Matrix(rows, d, torch.randn(rows, d) * d**-0.5 if masked else None) for rows in vocabularies
        )
        self.stacks = nn.ModuleList()
        for attentions in (1, 2):
            shapes = [(d, d)] * (4 * attentions) + [(ffn, d), (d, ffn)]
            shared = [torch.randn(shape) * shape[1] ** -0.5 for shape in shapes] if masked else None
            self.stacks.append(nn.ModuleList(Layer(d, ffn, heads, attentions, shared) for _ in range(layers)))
        trained = [p for module in (self.tables, self.stacks) for p in module.parameters() if p.requires_grad]
        self.optimizer = torch.optim.Adam(trained, betas=(0.9, 0.98))
        self.batch = {name: torch.tensor(rows[0]) for name, rows in batch.items()}

    def __call__(self) -> float:
        source_table, target_table = (table() for table in self.tables)
        x = F.embedding(self.batch["source"], source_table)
        for layer in self.stacks[0]:
            x = layer(x, None)
        y = F.embedding(self.batch["target_in"], target_table)
        for layer in self.stacks[1]:
            y = layer(y, x)
        logits = F.linear(y, target_table).flatten(0, 1)
        loss = F.cross_entropy(logits, self.batch["target"].flatten(), label_smoothing=0.1)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())


def main() -> None:
    """Reads the task (`sizes`, `vocabularies`, `batch`), says what runs here, and makes one update for each name that it reads."""
    task = json.loads(sys.stdin.readline())
    sides = {name: Training(name == "masked", **task) for name in ("masked", "dense")}
    about = {"torch": torch.__version__, "threads": torch.get_num_threads(), "python": platform.python_version()}
    print(json.dumps(about), flush=True)
    for line in sys.stdin:
        print(json.dumps(sides[json.loads(line)]()), flush=True)


if __name__ == "__main__":
    main()

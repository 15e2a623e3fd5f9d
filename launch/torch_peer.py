"""The same training step in PyTorch: a peer (launch/benchmarks/peers.py) of the benchmarks `train` and `accelerator`.

Its side `masked` makes masks as Ramanujan et al. (2020) and the paper's code do: it sorts all scores of every matrix at every use.
`kthvalue` looks for the threshold alone, and `dense` has no masks. Compiled, it is what a user of PyTorch would run on an accelerator:
torch.compile (with CUDA graphs on a GPU), products in bfloat16 by autocast, fused attention and a fused Adam.
"""

import json
import platform
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ModuleNotFoundError:
    print("error: launch/torch_peer.py needs PyTorch: pip install -r requirements-torch.txt", file=sys.stderr)
    sys.exit(2)


class _Straight(torch.autograd.Function):
    """A mask of magnitudes; its gradient passes straight through to them."""

    @staticmethod
    def forward(context: Any, magnitudes: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Returns the mask."""
        return mask

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Returns the gradient of the mask as the gradient of the magnitudes."""
        return gradient, None


def by_sorting(magnitudes: torch.Tensor) -> torch.Tensor:
    """The mask of the larger half: all are sorted."""
    order = magnitudes.flatten().argsort()
    mask = torch.ones_like(magnitudes).flatten()
    mask[order[: magnitudes.numel() // 2]] = 0.0
    return mask.view_as(magnitudes)


def by_threshold(magnitudes: torch.Tensor) -> torch.Tensor:
    """The mask of the larger half: the largest that is dropped is looked for."""
    largest_dropped = magnitudes.flatten().kthvalue(magnitudes.numel() // 2).values
    return (magnitudes > largest_dropped).to(magnitudes.dtype)


Selection = Callable[[torch.Tensor], torch.Tensor]
SIDES: dict[str, Selection | None] = {"masked": by_sorting, "kthvalue": by_threshold, "dense": None}


class Matrix(nn.Module):
    """A trained weight with a bias, or the product of a fixed weight, which layers may share, and a mask by `select`."""

    def __init__(self, rows: int, columns: int, select: Selection | None, weight: torch.Tensor | None) -> None:
        super().__init__()
        fixed = torch.randn(rows, columns) * columns**-0.5 if weight is None else weight
        self.weight, self.select = nn.Parameter(fixed, requires_grad=select is None), select
        self.scores = nn.Parameter(torch.empty(rows, columns).uniform_(-0.05, 0.05)) if select else None
        self.bias = None if select else nn.Parameter(torch.zeros(rows))

    def forward(self) -> torch.Tensor:
        """Returns the matrix to multiply by."""
        if self.select is None or self.scores is None:
            return self.weight
        magnitudes = self.scores.abs()
        with torch.no_grad():
            mask = self.select(magnitudes)
        return self.weight * _Straight.apply(magnitudes, mask)


class Layer(nn.Module):
    """A post-LN layer of an encoder, or of a decoder if `attentions` is 2."""

    def __init__(
        self,
        sizes: tuple[int, int, int, int],
        attentions: int,
        select: Selection | None,
        shared: list[torch.Tensor],
        dropout: float,
    ) -> None:
        super().__init__()
        d, _, self.heads, _ = sizes
        self.matrices = nn.ModuleList(
            Matrix(*shape, select, shared[n] if select else None)
            for n, shape in enumerate(shapes_of_layer(sizes, attentions))
        )
        self.norms = nn.ModuleList(nn.LayerNorm(d, elementwise_affine=select is None) for _ in range(attentions + 1))
        self.attentions, self.drop = attentions, nn.Dropout(dropout)

    def forward(self, x: torch.Tensor, encoded: torch.Tensor | None) -> torch.Tensor:
        """Applies the layer to `x`; the second attention of a decoder attends to `encoded`."""
        project = [partial(F.linear, weight=matrix(), bias=matrix.bias) for matrix in self.matrices]
        for number in range(self.attentions):
            q, k, v, o = project[4 * number : 4 * number + 4]
            source = encoded if number else x
            query, key, value = (
                projection(y).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                for y, projection in ((x, q), (source, k), (source, v))
            )
            causal = number == 0 and self.attentions == 2
            mixed = F.scaled_dot_product_attention(query, key, value, is_causal=causal).transpose(1, 2).flatten(2)
            x = self.norms[number](x + self.drop(o(mixed)))
        return self.norms[-1](x + self.drop(project[-1](F.relu(project[-2](x)))))


def shapes_of_layer(sizes: tuple[int, int, int, int], attentions: int) -> list[tuple[int, int]]:
    """The shapes of the matrices of a layer."""
    d, ffn, *_ = sizes
    return [(d, d)] * (4 * attentions) + [(ffn, d), (d, ffn)]


class Network(nn.Module):
    """A translation model, from a batch to the loss with label smoothing 0.1. Its table of the target is that of its output."""

    def __init__(
        self, select: Selection | None, sizes: tuple[int, int, int, int], vocabularies: tuple[int, int], dropout: float
    ) -> None:
        super().__init__()
        d, *_, layers = sizes
        self.tables = nn.ModuleList(Matrix(rows, d, select, torch.randn(rows, d) * d**-0.5) for rows in vocabularies)
        for table in self.tables:
            table.bias = None
        self.stacks, self.drop = nn.ModuleList(), nn.Dropout(dropout)
        for attentions in (1, 2):
            shared = [torch.randn(shape) * shape[1] ** -0.5 for shape in shapes_of_layer(sizes, attentions)]
            self.stacks.append(nn.ModuleList(Layer(sizes, attentions, select, shared, dropout) for _ in range(layers)))

    def forward(self, source: torch.Tensor, target_in: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Returns the loss."""
        source_table, target_table = (table() for table in self.tables)
        x = self.drop(F.embedding(source, source_table))
        for layer in self.stacks[0]:
            x = layer(x, None)
        y = self.drop(F.embedding(target_in, target_table))
        for layer in self.stacks[1]:
            y = layer(y, x)
        return F.cross_entropy(F.linear(y, target_table).flatten(0, 1), target.flatten(), label_smoothing=0.1)


class Training:
    """A model in training. Each call makes so many Adam updates on the batch, and returns the last loss."""

    def __init__(
        self,
        select: Selection | None,
        sizes: tuple[int, int, int, int],
        vocabularies: tuple[int, int],
        batch: dict[str, Any],
        dropout: float = 0.0,
        dtype: str = "float32",
        compiled: bool = False,
    ) -> None:
        torch.manual_seed(0)
        torch.set_float32_matmul_precision("high" if compiled else "highest")
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        network = Network(select, sizes, vocabularies, dropout).to(self.device)
        trained = [each for each in network.parameters() if each.requires_grad]
        self.optimizer = torch.optim.Adam(trained, betas=(0.9, 0.98), fused=compiled)
        self.batch = {name: torch.tensor(rows[0], device=self.device) for name, rows in batch.items()}
        self.dtype = getattr(torch, dtype)
        graphs = "reduce-overhead" if self.device == "cuda" else "default"
        self.network = torch.compile(network, mode=graphs) if compiled else network

    def __call__(self, updates: int = 1) -> float:
        for _ in range(updates):
            with torch.autocast(self.device, self.dtype, enabled=self.dtype != torch.float32):
                loss = self.network(**self.batch)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return float(loss.detach())


def main() -> None:
    """Reads the task (`Training`'s arguments but the first), says what runs here, and makes updates of the side of each line that it reads.

    A line is the name of a side, or a pair of a side and a number of updates.
    """
    task = json.loads(sys.stdin.readline())
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    about = {"torch": torch.__version__, "threads": torch.get_num_threads(), "python": platform.python_version()}
    print(json.dumps(about | {"device": device}), flush=True)
    sides: dict[str, Training] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        side, updates = (asked, 1) if isinstance(asked, str) else asked
        if side not in sides:
            sides[side] = Training(SIDES[side], **task)
        print(json.dumps(sides[side](updates)), flush=True)


if __name__ == "__main__":
    main()

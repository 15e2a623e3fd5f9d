"""The operations of a compiled program, read from its text (HLO): what each is for, its arithmetic, and the bytes that it moves."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "u16": 2, "f16": 2, "s64": 8, "u64": 8, "f64": 8}  # all others have 4
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.-]+) \(.*\{$")
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.-]+) = (\(.*?\)|\S+) ([\w-]+)\((.*)$")
_WITHOUT_WORK = ("while", "conditional", "call", "tuple", "get-tuple-element", "parameter", "constant", "bitcast")
# What an operation is for, by words in the name that JAX gave it; the first that fits.
_GROUPS = (
    ("masks", r"jvp\(\)|largest|^jit\(step\)/jvp\(jit\("),
    ("Adam", r"/cond"),
    ("norms", r"norm"),
    ("attention but for its products", r"attention"),
    ("feed-forward but for its products", r"_feed_forward"),
    ("layers, others", r"layers"),
    ("embeddings, logits and loss", r"Transformer"),
    ("norm and scale of the gradient", r"jit\(step\)/"),
)


@dataclass(frozen=True)
class Operation:
    """`group` says what it is for. `flops`, of numbers of the type `kind`, and `bytes` are those of one execution."""

    group: str
    bytes: float
    flops: float = 0.0
    kind: str = ""


@dataclass(frozen=True)
class _Instruction:
    name: str
    shape: str
    kind: str
    operands: tuple[str, ...]
    rest: str

    def attribute(self, pattern: str) -> str:
        found = re.search(pattern, self.rest)
        return found[1] if found else ""


def operations(program: str) -> dict[str, Operation]:
    """All operations of `program` that take time, by name. Loops and conditions are left out, and what they contain is not."""
    computations: dict[str, dict[str, _Instruction]] = {}
    here: dict[str, _Instruction] = {}
    for line in program.splitlines():
        if begun := _COMPUTATION.match(line):
            here = computations.setdefault(begun[1], {})
        elif found := _INSTRUCTION.match(line):
            name, shape, kind, rest = found.groups()
            here[name] = _Instruction(name, shape, kind, tuple(re.findall(r"%([\w.-]+)", rest.split(")")[0])), rest)
    return {
        each.name: _operation(each, inside, computations)
        for inside in computations.values()
        for each in inside.values()
        if each.kind not in _WITHOUT_WORK
    }


def _operation(
    each: _Instruction, inside: dict[str, _Instruction], computations: dict[str, dict[str, _Instruction]]
) -> Operation:
    body = computations.get(each.attribute(r"calls=%?([\w.-]+)"), {}) if each.kind == "fusion" else {}
    for one in body.values() if body else (each,):
        if one.kind == "dot":
            of = body or inside
            return _product(one, of, _moved(each, inside, body))
    names = [one.attribute(r'op_name="([^"]*)"') for one in (*body.values(), each)]
    name = next((name for name in reversed(names) if name), "")
    group = next((group for group, words in _GROUPS if re.search(words, name)), "copies and casts without a name")
    return Operation(group, _moved(each, inside, body))


def _product(dot: _Instruction, inside: dict[str, _Instruction], moved: float) -> Operation:
    """A product by its rows, summed length and columns; or a stack of such products."""
    left, right = (_dimensions(inside[name].shape) for name in dot.operands)
    stack = math.prod(_numbers(dot.attribute(r"lhs_batch_dims=\{([\d,]*)\}"), left))
    summed = math.prod(_numbers(dot.attribute(r"lhs_contracting_dims=\{([\d,]*)\}"), left))
    rows, columns = math.prod(left) // summed // stack, math.prod(right) // summed // stack
    kind = inside[dot.operands[0]].shape.split("[")[0]
    group = f"{f'{stack} products' if stack > 1 else 'product'} {rows} x {summed} x {columns} {kind}"
    return Operation(group, moved, 2.0 * stack * rows * summed * columns, kind)


def _moved(each: _Instruction, inside: dict[str, _Instruction], body: dict[str, _Instruction]) -> float:
    """The bytes that it reads and writes. If it cuts a slice from an array, or changes one in place, only the slice counts."""
    if not body:
        return float(_size(each.shape) + sum(_size(inside[name].shape) for name in each.operands if name in inside))
    total, root = 0, list(body.values())[-1]
    while root.kind == "bitcast":
        root = body[root.operands[0]]
    total += _size(body[root.operands[1]].shape) if root.kind == "dynamic-update-slice" else _size(each.shape)
    for parameter in (one for one in body.values() if one.kind == "parameter"):
        users = [one for one in body.values() if parameter.name in one.operands]
        slices = [one for one in users if one.kind in ("dynamic-slice", "slice") and one.operands[0] == parameter.name]
        if users and len(slices) == len(users):
            total += sum(_size(one.shape) for one in slices)
        elif not (users == [root] and root.kind == "dynamic-update-slice" and root.operands[0] == parameter.name):
            total += _size(parameter.shape)
    return float(total)


def _numbers(places: str, dimensions: list[int]) -> list[int]:
    return [dimensions[int(place)] for place in places.split(",") if place]


def _dimensions(shape: str) -> list[int]:
    return [int(each) for each in shape.split("[")[1].split("]")[0].split(",") if each]


def _size(shapes: str) -> int:
    """The bytes of an array, or of all arrays of a tuple."""
    return sum(
        _BYTES.get(kind, 4) * math.prod(int(each) for each in sizes.split(",") if each)
        for kind, sizes in re.findall(r"(\w+)\[([\d,]*)\]", shapes)
    )

"""What of a compiled program costs time: transfers between devices, products by type, kernels and their bytes, and loops."""

import math
import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int

from one_layer.ahead.hlo import Instruction, Program, Shape, Visit, called_by

_COLLECTIVES = {
    "all-gather": "gathered", "all-reduce": "reduced", "reduce-scatter": "reduced", "all-to-all": "exchanged",
    "collective-permute": "exchanged", "ragged-all-to-all": "exchanged", "collective-broadcast": "exchanged",
}  # fmt: skip
_PRODUCTS = re.compile(r"__cublas\$|__onednn\$matmul")
# What computes nothing by itself: names, views, and what other instructions execute.
_NO_KERNEL = {
    "parameter", "constant", "tuple", "get-tuple-element", "bitcast", "while", "conditional", "call", "after-all", "partition-id",
    "replica-id", "opt-barrier", "async-start", "async-update", "async-done", "copy-done", "domain", "add-dependency",
}  # fmt: skip
# Of a TPU: a fusion of an all-reduce with the cut of each device's part, executed as one.
_FUSED_SCATTER = "all-reduce-scatter"
_TAKE = {"slice", "dynamic-slice", "gather"}
_PARTS = _TAKE | {"dynamic-update-slice"}
_NUMBERS = re.compile(r"\d+")  # in a name, of layers and of repeated modules
_EXECUTES = {"while", "conditional", "call", "async-start"}


@dataclass(frozen=True)
class Transfer:
    """A collective: `bytes` of its result on one device in one call of the program. `groups` of devices, by their places, take part."""

    operation: str
    bytes: float
    times: int
    groups: tuple[tuple[int, ...], ...]
    made_by: str

    @property
    def devices(self) -> int:
        """How many take part together."""
        return len(self.groups[0])

    @property
    def sent(self) -> float:
        """The bytes that a device sends, with the rings that libraries use: (n - 1) / n of the array, twice for an all-reduce."""
        share = (self.devices - 1) / self.devices
        whole = self.bytes * (self.devices if self.operation == "reduce-scatter" else 1)
        return whole * {"all-reduce": 2 * share, "collective-permute": 1.0}.get(self.operation, share)

    def leaves(self, together: int) -> bool:
        """Whether devices of several machines take part, where each machine has `together` of them, in order."""
        return any(len({device // together for device in group}) > 1 for group in self.groups)


@dataclass
class Kernels:
    """Kernels of one kind that one operation of the source made: how many are started, and the bytes that all of them read and write."""

    kind: str
    made_by: str
    number: int = 0
    bytes: float = 0.0


@dataclass
class Contents:
    """`products`: how many of each type, such as `bf16 x bf16 -> f32`. `started`: the kernels by kind and operation.

    `open_loops`: loops whose turns depend on data, with the source's operation; outside a CUDA graph, the host drives them.
    """

    transfers: list[Transfer] = field(default_factory=list)
    products: Counter[str] = field(default_factory=Counter)
    started: dict[tuple[str, str], Kernels] = field(default_factory=dict)
    open_loops: dict[str, str] = field(default_factory=dict)

    @property
    def kernels(self) -> int:
        """How many kernels are started."""
        return sum(each.number for each in self.started.values())

    @property
    def bytes(self) -> float:
        """What all kernels read and write."""
        return sum(each.bytes for each in self.started.values())

    def largest(self, number: int) -> list[Kernels]:
        """The kernels that read and write the most."""
        return sorted(self.started.values(), key=lambda each: -each.bytes)[:number]

    @property
    def moved(self) -> dict[str, int]:
        """The bytes of all results of collectives by what happens to them: gathered, reduced, exchanged."""
        total = dict.fromkeys(("gathered", "reduced", "exchanged"), 0)
        for each in self.transfers:
            total[_COLLECTIVES[each.operation]] += round(each.bytes)
        return total


def contents(text: str) -> Contents:
    """What the text of a compiled program has, in one call of it. A loop that depends on data counts as one turn."""
    program, found = Program(text), Contents()
    channels: set[tuple[str, str, tuple[Shape, ...]]] = set()
    kernels = _started(program)
    for visit in program.visits():
        each = visit.instruction
        operation = each.operation.removesuffix("-start")
        if operation in _COLLECTIVES:
            # An asynchronous collective of a TPU stands several times in a program, with one channel; others may share its number.
            number = each.attribute(r"channel_id=(\d+)") or f"{visit.computation}/{each.name}"
            channel = operation, number, _result(operation, each)
            if channel not in channels:
                channels.add(channel)
                found.transfers.append(_transfer(operation, visit))
        elif each.operation in ("dot", "convolution") or (
            each.operation == "custom-call" and _PRODUCTS.search(each.line)
        ):
            kinds = [shapes[0].kind for shapes in program.shapes_of(visit)[:2] if shapes]
            found.products[f"{' x '.join(kinds)} -> {each.shapes[0].kind}"] += visit.times
        elif each.operation == "while" and program.trips(each) is None:
            found.open_loops[each.name] = each.made_by
        if visit.computation in kernels and each.operation not in _NO_KERNEL and not each.operation.endswith("-done"):
            named = _named(program, each)
            name = _kind(named), _NUMBERS.sub("#", named.made_by)
            kernels_of = found.started.setdefault(name, Kernels(*name))
            kernels_of.number += visit.times
            kernels_of.bytes += visit.times * _traffic(program, visit)
    return found


def _named(program: Program, kernel: Instruction) -> Instruction:
    """What a kernel is called by: itself, or the call of a library that is fused with the slices that it reads."""
    body = program.computations.get(kernel.attribute(r"calls=%?([\w.-]+)"), [])
    return next((each for each in body if each.root and each.operation == "custom-call"), kernel)


def _kind(kernel: Instruction) -> str:
    """The operation, or of a call the function that is called, and the types of what it writes."""
    called = kernel.attribute(r'custom_call_target="([^"]*)"') if kernel.operation == "custom-call" else ""
    types = "+".join(sorted({shape.kind for shape in kernel.shapes}))
    return f"{called or kernel.operation} -> {types}"


def _started(program: Program) -> set[str]:
    """The computations whose instructions are kernels of their own: the entry, and bodies of loops and branches, but no fusion's."""
    found, waiting = {program.entry}, [program.entry]
    while waiting:
        for each in program.computations.get(waiting.pop(), []):
            if each.operation in _EXECUTES:
                more = [name for name in called_by(each) if name not in found]
                found |= set(more)
                waiting += more
    return found


def _traffic(program: Program, visit: Visit) -> float:
    """The bytes that a kernel reads and writes. Of an array in which it only takes or replaces a part, that part.

    The workspace of a library's product, which stands beside its result, is not counted: few products use it.
    """
    kernel = visit.instruction
    operands = program.shapes_of(visit)
    whole = [sum(shape.bytes for shape in shapes) for shapes in operands]
    body = program.computations.get(kernel.attribute(r"calls=%?([\w.-]+)"), [])
    if kernel.operation in _TAKE:
        return 2 * kernel.bytes
    if kernel.operation == "dynamic-update-slice":
        return 2 * whole[1]
    product = _PRODUCTS.search(_named(program, kernel).line)
    written, known = kernel.shapes[0].bytes if product else kernel.bytes, {each.name: each for each in body}
    for each in body:
        users = [other for other in body if each.name in other.operands]
        parts = [user for user in users if user.operation in _PARTS and each.name not in user.operands[1:]]
        if each.operation == "parameter" and users and parts == users:
            place = int(each.attribute(r"parameter\((\d+)\)"))
            taken = sum(user.bytes for user in users if user.operation in _TAKE)
            if place < len(whole):
                whole[place] = min(whole[place], taken)
        if each.operation == "dynamic-update-slice" and (each.root or any(user.root for user in users)):
            written -= each.bytes - known[each.operands[1]].bytes
    return max(written, 0.0) + sum(whole)


def _transfer(operation: str, visit: Visit) -> Transfer:
    each, groups = visit.instruction, _groups(visit.instruction)
    size = sum(shape.bytes for shape in _result(operation, each)) * visit.times
    if operation == "all-reduce" and visit.computation.startswith(_FUSED_SCATTER):
        return Transfer("reduce-scatter", size / len(groups[0]), visit.times, groups, each.made_by)
    return Transfer(operation, size, visit.times, groups, each.made_by)


def _result(operation: str, each: Instruction) -> tuple[Shape, ...]:
    """The shapes of a collective's result. The result of a start has the operands too, before those."""
    if (
        not each.operation.endswith("-start")
        or operation == "all-reduce"
        or not each.line.partition(" = ")[2].startswith("(")
    ):
        return each.shapes
    if operation == "collective-permute":
        return each.shapes[1:2]
    return each.shapes[len(each.operands) : 2 * len(each.operands)]


def _groups(each: Instruction) -> tuple[tuple[int, ...], ...]:
    """The devices that take part in a collective together, by their places in the program, in each form that XLA writes."""
    if form := re.search(r"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\(\[([^)]*)\)?\))? \{([^}]*)\}", each.line):
        mesh = {axis: int(size) for axis, size in re.findall(r"'(\w+)'=(\d+)", form[1])}
        over = [axis for axis in re.findall(r"'(\w+)'", form[3]) if axis in mesh]
        order = [list(mesh).index(axis) for axis in [*(axis for axis in mesh if axis not in over), *over]]
        devices = _transposed(form[2]) if form[2] else np.arange(math.prod(mesh.values()))
        groups = devices.reshape(*mesh.values()).transpose(order).reshape(-1, math.prod(mesh[axis] for axis in over))
        return tuple(map(tuple, groups.tolist()))
    if form := re.search(r"replica_groups=\[[\d,]*?(\d+)\]<=\[([\d,]+\](?:T\([\d,]+)?)", each.line):
        return tuple(map(tuple, _transposed(form[2]).reshape(-1, int(form[1])).tolist()))
    listed = each.attribute(r"(?:replica_groups|source_target_pairs)=\{(\{[\d,{}]+\})\}")
    return tuple(tuple(_integers(group)) for group in re.findall(r"\d[\d,]*", listed)) or ((0, 1),)  # XLA names none


def _transposed(form: str) -> Int[np.ndarray, "devices"]:
    """Numbers from 0 in the order that XLA writes as `4,2]T(1,0`: of that shape, and then with its axes in that order."""
    shape, _, order = form.partition("]")
    numbers = np.arange(math.prod(_integers(shape))).reshape(_integers(shape))
    return (numbers.transpose(_integers(order)) if order else numbers).ravel()


def _integers(text: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", text)]

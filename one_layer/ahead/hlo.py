"""Reads the text of a compiled program (optimised HLO): its computations, their instructions, and how often each is executed."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

_SHAPE = re.compile(r"\b([a-z]+\d*\w*)\[([\d,]*)\]")
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.-]+) \(.*\{\s*$")
_INSTRUCTION = re.compile(r"^\s+(ROOT )?%?([\w.-]+) = (\(.*?\)|\S+) ([\w-]+)\((.*)$")
_CALLED = re.compile(
    r"(?:body|condition|to_apply|calls|branch_computations|true_computation|false_computation|called_computations)="
    r"\{?(%?[\w.-]+(?:, ?%[\w.-]+)*)"
)
_TRIPS = re.compile(r'known_trip_count"?:\{"?n"?:"?(\d+)')


@dataclass(frozen=True)
class Shape:
    """The type and sizes of an array."""

    kind: str
    sizes: tuple[int, ...]

    @property
    def bytes(self) -> float:
        bits = re.search(r"\d+", self.kind)  # of bf16 and f8e4m3fn the first number; a token has none
        each = int(bits[0]) / 8 if bits else float(self.kind == "pred")
        return math.prod(self.sizes) * each


@dataclass(frozen=True)
class Instruction:
    """One line of a computation. `shapes` are those of its result, of all its parts if it has several."""

    name: str
    shapes: tuple[Shape, ...]
    operation: str
    operands: tuple[str, ...]
    line: str
    root: bool

    @property
    def bytes(self) -> float:
        return sum(shape.bytes for shape in self.shapes)

    def attribute(self, pattern: str) -> str:
        """The first group of a pattern in the line; empty if it is not there."""
        found = re.search(pattern, self.line)
        return found[1] if found else ""

    @property
    def made_by(self) -> str:
        """The operation of the source that the instruction was made for, as JAX names it."""
        return self.attribute(r'op_name="([^"]*)"')


@dataclass(frozen=True)
class Visit:
    """An instruction and where it is executed: `times` in one call of the program; loops without a known number of turns count once.

    `computation` has the instruction.
    """

    instruction: Instruction
    computation: str
    times: int


class Program:
    """A compiled program."""

    def __init__(self, text: str) -> None:
        self.computations: dict[str, list[Instruction]] = {}
        self.entry = name = ""
        for line in text.splitlines():
            begun = _COMPUTATION.match(line)
            if begun and " = " not in line.partition("(")[0]:
                name = begun[2]
                self.computations[name] = []
                self.entry = name if begun[1] else self.entry
            elif name and (found := _INSTRUCTION.match(line)):
                shapes = tuple(
                    Shape(kind, tuple(map(int, filter(None, sizes.split(",")))))
                    for kind, sizes in _SHAPE.findall(found[3])
                )
                operands = tuple(re.findall(r"%([\w.-]+)", found[5].partition(")")[0]))
                self.computations[name].append(Instruction(found[2], shapes, found[4], operands, line, bool(found[1])))

    def visits(self, name: str = "", times: int = 1) -> Iterator[Visit]:
        """Every instruction that is executed, with those inside fusions, loops and branches; by default of the whole program."""
        for each in self.computations.get(name or self.entry, []):
            yield Visit(each, name or self.entry, times)
            trips = self.trips(each) if each.operation == "while" else 1
            for called in called_by(each):
                yield from self.visits(called, times * (trips or 1))

    def trips(self, loop: Instruction) -> int | None:
        """The turns of a loop; None if they depend on data. TPU programs do not say them: there the condition compares with a constant."""
        if found := loop.attribute(_TRIPS.pattern):
            return int(found)
        body = self.computations.get(loop.attribute(r"condition=%?([\w.-]+)"), [])
        constants = {each.name: each.attribute(r"constant\((\d+)\)") for each in body if each.operation == "constant"}
        for each in body:
            if each.root and each.operation == "compare" and "direction=LT" in each.line:
                known = [constants[name] for name in each.operands if constants.get(name)]
                return int(known[0]) if known else None
        return None

    def shapes_of(self, visit: Visit) -> list[tuple[Shape, ...]]:
        """The shapes of an instruction's operands."""
        known = {each.name: each.shapes for each in self.computations[visit.computation]}
        return [known.get(name, ()) for name in visit.instruction.operands]


def called_by(instruction: Instruction) -> list[str]:
    """The computations that an instruction executes."""
    return [name.strip().lstrip("%") for names in _CALLED.findall(instruction.line) for name in names.split(",")]

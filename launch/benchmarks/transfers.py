"""The bytes that a compiled program moves between devices, read from its text (HLO)."""

from __future__ import annotations

import re
from collections import defaultdict

_BYTES = {"pred": 1, "s8": 1, "u8": 1, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8}
_KINDS = {"all-gather": "gathered", "all-reduce": "reduced", "reduce-scatter": "reduced", "all-to-all": "exchanged"}
_KINDS["collective-permute"] = "exchanged"
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.-]+) \(.*\{$")
_MOVES = re.compile(r" = (.*?) (all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(")
_CALLS = re.compile(r"(?:body|to_apply|calls|branch_computations|true_computation|false_computation)=\{?([%\w., -]+)")
_TRIPS = re.compile(r'known_trip_count":\{"n":"(\d+)"')


def moved_bytes(program: str) -> dict[str, int]:
    """The bytes of all results of collectives in one call of the program, by what happens to them: gathered, reduced, exchanged.

    A loop whose number of turns is known, such as that over the layers, counts so often. A loop that ends by a condition, such as a
    selection, counts once; its collectives move a few numbers.
    """
    here: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    called: dict[str, list[tuple[str, int]]] = defaultdict(list)
    name, entry = "", ""
    for line in program.splitlines():
        if begun := _COMPUTATION.match(line):
            name = begun[1]
            entry = name if line.startswith("ENTRY") else entry
            continue
        if moves := _MOVES.search(line):
            here[name][_KINDS[moves[2]]] += _size(moves[1])
        turns = int(trips[1]) if " while(" in line and (trips := _TRIPS.search(line)) else 1
        for names in _CALLS.findall(line):
            called[name] += [(each.strip().lstrip("%"), turns) for each in names.split(",") if each.strip()]
    total: dict[str, int] = dict.fromkeys(("gathered", "reduced", "exchanged"), 0)
    _add(entry, 1, here, called, total)
    return total


def _add(
    name: str,
    times: int,
    here: dict[str, dict[str, int]],
    called: dict[str, list[tuple[str, int]]],
    total: dict[str, int],
) -> None:
    for kind, size in here.get(name, {}).items():
        total[kind] += times * size
    for other, turns in called.get(name, []):
        _add(other, times * turns, here, called, total)


def _size(shapes: str) -> int:
    """The bytes of a result: one shape, or a tuple of shapes."""
    total = 0
    for kind, sizes in re.findall(r"(\w+)\[([\d,]*)\]", shapes):
        count = 1
        for each in filter(None, sizes.split(",")):
            count *= int(each)
        total += count * _BYTES.get(kind, 0)
    return total

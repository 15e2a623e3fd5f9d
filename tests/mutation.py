"""Changes one place of a module at a time, and says which tests fail of each change.

    python -m tests.mutation one_layer/supermask.py tests/test_supermask.py [FILE ...] [--lines=20-40] [--sample=200] [--workers=2]

A mutant is the module with one comparison, operator, number, truth value or loop replaced. Its tests run in a process of its own, which
reads the mutant in place of the file: the file itself stays as it is. At the end come the mutants of which no test fails, which want a
test or mean nothing, and the tests that no mutant needs, because another test fails of each mutant of which they fail.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import os
import random
import resource
import tempfile
from collections import Counter
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any, NamedTuple

from tests import ROOT

_OTHERS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    **{ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div,), ast.Div: (ast.Mult,), ast.FloorDiv: (ast.Div,)},
    **{ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,), ast.RShift: (ast.LShift,), ast.LShift: (ast.RShift,)},
    # Two for each relation are enough (Kaminski, Ammann and Offutt 2013, "Improving logic-based testing").
    **{
        ast.Lt: (ast.LtE, ast.NotEq),
        ast.LtE: (ast.Lt, ast.Eq),
        ast.Gt: (ast.GtE, ast.NotEq),
        ast.GtE: (ast.Gt, ast.Eq),
    },
    **{ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,)},
    **{ast.And: (ast.Or,), ast.Or: (ast.And,), ast.Break: (ast.Continue,), ast.Continue: (ast.Break,)},
}
_MEMORY = 2**34  # bytes of address space that a mutant may take
# What no mutant need import again, and what starts none of JAX's threads.
_BEFORE = "jax flax.linen optax hypothesis.extra.numpy beartype jaxtyping zstandard ml_collections absl.logging pytest"


class Mutant(NamedTuple):
    """The source of a module with one change, and the line of this change."""

    line: int
    change: str
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    """All mutants of a module. Annotations, docstrings and imports stay as they are."""
    tree = ast.parse(source)
    for number, node in enumerate(ast.walk(tree)):
        for place, other in _replacements(node):
            changed = copy.deepcopy(tree)
            twin = next(each for k, each in enumerate(ast.walk(changed)) if k == number)
            before = ast.unparse(twin)
            if isinstance(place, tuple):
                getattr(twin, place[0])[place[1]] = other
            else:
                setattr(twin, place, other)
            yield Mutant(getattr(node, "lineno", 0), f"{before}  ->  {ast.unparse(twin)}", ast.unparse(changed))


def _replacements(node: ast.AST) -> Iterator[tuple[str | tuple[str, int], Any]]:
    """The fields of a node, with a number where the field is a list, and what may stand in their place."""
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp):
        yield from (("op", other()) for other in _OTHERS.get(type(node.op), ()))
    elif isinstance(node, ast.Compare):
        for place, each in enumerate(node.ops):
            yield from ((("ops", place), other()) for other in _OTHERS.get(type(each), ()))
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.UAdd):
        yield "op", ast.UAdd()
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        yield "value", not node.value if isinstance(node.value, bool) else node.value + 1
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield "test", ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.For):
        yield "iter", ast.List([], ast.Load())


def plant(path: Path, source: str) -> None:
    """From now on this process imports `source` in place of the file at `path`, and uses and writes no bytecode of it."""
    read, stats = SourceFileLoader.get_data, SourceFileLoader.path_stats

    def get_data(self: SourceFileLoader, name: str) -> bytes:
        return source.encode() if Path(name) == path else read(self, name)

    def path_stats(self: SourceFileLoader, name: str) -> Any:
        if Path(name) == path:
            raise OSError("a mutant has no file")
        return stats(self, name)

    SourceFileLoader.get_data, SourceFileLoader.path_stats = get_data, path_stats  # type: ignore[method-assign]


def start(path: Path, mutant: Mutant, tests: list[str], report: Path, seconds: int) -> int:
    """Runs the tests on a mutant in a process of its own, which writes the names of those that fail to `report`; returns its number.

    It may take so many seconds of a processor.
    """
    if process := os.fork():
        return process
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    plant(path, mutant.source)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    import pytest

    class Failures:
        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed:
                self.written(report.nodeid.partition("[")[0])

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed:
                self.written("import")

        def written(self, name: str) -> None:
            with report.open("a") as file:
                file.write(f"{name}\n")

    pytest.main(["-q", "--tb=no", "-W", "ignore", "-p", "no:cacheprovider", *tests], plugins=[Failures()])
    os._exit(0)


def killers(
    path: Path, chosen: list[Mutant], tests: list[str], folder: Path, workers: int, seconds: int
) -> list[set[str]]:
    """For each mutant, the tests that fail of it. A process that dies counts as a test with the name of its end."""
    found: list[set[str]] = [set() for _ in chosen]
    waiting, running = list(enumerate(chosen)), dict[int, int]()
    while waiting or running:
        while waiting and len(running) < workers:
            number, mutant = waiting.pop(0)
            running[start(path, mutant, tests, folder / str(number), seconds)] = number
        process, status = os.wait()
        number = running.pop(process)
        report = folder / str(number)
        found[number] = set(report.read_text().split("\n")) - {""} if report.exists() else set()
        if status:
            found[number].add(f"ended with {status}")
        print(f"{path.name}:{chosen[number].line}  {chosen[number].change}: {len(found[number])} fail", flush=True)
    return found


def needless(found: list[set[str]]) -> list[str]:
    """The tests that can go one after the other, those that see the fewest mutants first, so that each mutant is still seen."""
    seen = Counter(name for names in found for name in names)
    left, gone = [set(names) for names in found], []
    for name, _ in sorted(seen.items(), key=lambda item: (item[1], item[0])):
        if all(names != {name} for names in left):
            left = [names - {name} for names in left]
            gone.append(name)
    return gone


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", type=Path)
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--lines", default="1-100000", help="only mutants of these lines, such as 20-40")
    parser.add_argument("--sample", type=int, default=200, help="at most so many mutants")
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    path = ROOT / arguments.module
    first, last = map(int, arguments.lines.split("-"))
    chosen = [each for each in mutants(path.read_text("utf-8")) if first <= each.line <= last]
    chosen = random.Random(0).sample(chosen, min(arguments.sample, len(chosen)))
    for name in _BEFORE.split():
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        same = [Mutant(0, "nothing", path.read_text("utf-8"))]
        if killers(path, same, arguments.tests, Path(folder), 1, 3000)[0]:
            raise SystemExit("the tests fail without a mutant")
        seconds = 10 + 2 * int(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime)
        found = killers(path, chosen, arguments.tests, Path(folder), arguments.workers, seconds)
    for mutant, names in zip(chosen, found, strict=True):
        if not names:
            print(f"no test fails of {path.name}:{mutant.line}  {mutant.change}")
    print("no mutant needs", *needless(found), sep="\n  ")


if __name__ == "__main__":
    main()

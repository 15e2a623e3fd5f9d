"""Changes one place of a module at a time: its tests must fail of each change, or tests/mutants.toml must say why none can.

    python -m tests.mutation supermask [search] [tickets] [--file=codecs] [--lines=20-40,57] [--tests=gaps]
                             [--sample=200] [--seed=0] [--workers=2]

A mutant is the source with one comparison, operator, number, condition, loop or decorator replaced. cosmic-ray makes them. Each is tested
in a process of its own, which reads the mutant in place of the file: the file itself stays as it is. The process is forked after all
modules have been imported that do not import the file. The first test that fails, or a limit on time, ends it. Annotations are left out,
and so are replacements that add nothing to others: `<` becomes `<=` and `!=`, and a test that fails of both fails of `>=` too.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import random
import resource
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from tests import ROOT

COSMIC_RAY = "cosmic-ray==8.7.0"
EXPLANATIONS = ROOT / "tests" / "mutants.toml"

# For each target its files in one_layer/, and the files in tests/ that are run for each, the quickest first.
TARGETS: dict[str, dict[str, tuple[str, ...]]] = {
    "supermask": {
        "supermask": ("test_supermask", "selection/test_selections"),
        "selection/counting": ("selection/test_counting", "test_supermask"),
        "selection/bits": ("test_supermask", "models/test_by_role"),
    },
    "search": {
        "tasks/translation/beam_search": ("tasks/translation/test_beam_search",),
        "tasks/translation/continuations": (
            "tasks/translation/test_continuations",
            "tasks/translation/test_beam_search",
        ),
        "tasks/translation/generate": ("tasks/translation/test_generate",),
        "tasks/translation/search": ("tasks/translation/test_generate",),
    },
    "tickets": {
        "tickets/codecs": ("tickets/test_codecs",),
        "tickets/precision": ("tickets/test_precision",),
        "tickets/limits": ("tickets/test_limits",),
        "tickets/file": ("tickets/test_file",),
        "tickets/settings": ("tickets/test_settings",),
        "tickets/content": ("tickets/test_content",),
        "tickets/ticket": ("tickets/test_ticket",),
        "tickets/inspection": ("tickets/test_inspection",),
    },
}

# What no mutant need import again, and what starts none of JAX's threads.
_BEFORE = (
    "jax flax.linen optax hypothesis.extra.numpy beartype jaxtyping zstandard tqdm ml_collections absl.logging pytest"
)

_ARITHMETIC = "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Div Mod_Div Pow_Mul RShift_LShift LShift_RShift"
_BITS = (
    "BitOr_BitAnd BitAnd_BitOr BitAnd_BitXor BitXor_BitAnd"  # `|` and `^` are the same where only one side can be true
)
# Two for each relation are enough (Kaminski, Ammann and Offutt 2013, "Improving logic-based testing").
_RELATIONS = "Lt_LtE Lt_NotEq LtE_Lt LtE_Eq Gt_GtE Gt_NotEq GtE_Gt GtE_Eq Eq_LtE Eq_GtE NotEq_Lt NotEq_Gt"
_EQUALITY = "Eq_NotEq NotEq_Eq Is_IsNot IsNot_Is"
_OTHERS = (
    "ReplaceUnaryOperator_Delete_USub ReplaceUnaryOperator_Delete_Invert ReplaceUnaryOperator_Delete_Not AddNot "
    "ReplaceTrueWithFalse ReplaceFalseWithTrue ReplaceAndWithOr ReplaceOrWithAnd ReplaceBreakWithContinue "
    "ReplaceContinueWithBreak ExceptionReplacer NumberReplacer RemoveDecorator ZeroIterationForLoop"
)
_RELATIONAL = [f"ReplaceComparisonOperator_{name}" for name in _RELATIONS.split()]
OPERATORS = [
    *(f"ReplaceBinaryOperator_{name}" for name in f"{_ARITHMETIC} {_BITS}".split()),
    *_RELATIONAL,
    *(f"ReplaceComparisonOperator_{name}" for name in _EQUALITY.split()),
    *_OTHERS.split(),
]

_PYTEST = ["-x", "-q", "--tb=no", "-W", "ignore", "-m", "not slow", "-k", "not golden", "-p", "no:cacheprovider"]
_PYTEST += ["-p", "no:unraisableexception"]  # which collects garbage many times
_MEMORY = 2**33  # bytes of address space that a mutant may take
Change = tuple[str, str]  # the code of the first line that differs, before and after


class Mutant(NamedTuple):
    """The source of a file of one_layer/ with one change, and the number of its line."""

    file: str
    line: int
    change: Change
    source: str


def path_of(file: str) -> Path:
    """Where a file of `TARGETS` lies."""
    return ROOT / "one_layer" / f"{file}.py"


def places(file: str) -> list[tuple[str, int]]:
    """What can be changed in a file: the names of operators, and the number of the place. Raises: SystemExit without cosmic-ray."""
    try:
        from cosmic_ray.ast import ast_nodes, get_ast
        from cosmic_ray.plugins import get_operator
    except ImportError:
        raise SystemExit(f"cosmic-ray makes the mutants, and is not installed; run pip install {COSMIC_RAY}") from None
    nodes, found = list(ast_nodes(get_ast(path_of(file).read_text("utf-8")))), []
    for name in OPERATORS:
        positions = get_operator(f"core/{name}")().mutation_positions
        changes = [(node, which) for node in nodes for which, _ in enumerate(positions(node))]
        for number, (node, which) in enumerate(changes):
            smaller = name == "NumberReplacer" and which == 1  # each number is made larger by 1, which is enough
            if not (smaller or _is_no_code(node) or (name in _RELATIONAL and _compares_text(node))):
                found.append((name, number))
    return found


def mutated(file: str, name: str, number: int) -> Mutant:
    """The file with one of its `places` changed."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    source = path_of(file).read_text("utf-8")
    changed = mutate_code(source, get_operator(f"core/{name}")(), number)
    return Mutant(file, *difference(source, changed), changed)


def _is_no_code(node: Any) -> bool:
    """Whether a node of parso's tree is part of an annotation, or a star that marks parameters."""
    if node.parent.type in ("parameters", "param"):
        return node.type == "operator"
    while (parent := node.parent) is not None:
        if parent.type in ("tfpdef", "annassign") and node is parent.children[1 if parent.type == "annassign" else 2]:
            return True
        if parent.type == "funcdef" and node is parent.annotation:
            return True
        node = parent
    return False


def _compares_text(node: Any) -> bool:
    """Whether one side of a comparison is a literal text: the order of texts means nothing."""
    return any(child.type == "string" for child in node.children)


def difference(before: str, after: str) -> tuple[int, Change]:
    """The number of the first line that differs, and this line of both texts, without its comment and the spaces around it."""
    lines = zip(before.split("\n"), after.split("\n"), strict=False)
    number, (old, new) = next((number, both) for number, both in enumerate(lines, 1) if both[0] != both[1])
    return number, (code_of(old), code_of(new))


def code_of(line: str) -> str:
    """A line without its comment and the spaces around it."""
    return line.partition("  # ")[0].strip()


def explanations(file: str) -> dict[Change, str]:
    """Why no test can fail of these changes of a file, from tests/mutants.toml."""
    groups = _explanations().get(file, [])
    return {(old, new): group["why"] for group in groups for old, *news in group["changes"] for new in news}


def explained_files() -> set[str]:
    """The files that tests/mutants.toml speaks of."""
    return set(_explanations())


def _explanations() -> dict[str, Any]:
    return tomllib.loads(EXPLANATIONS.read_text("utf-8"))


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


def start(mutant: Mutant | None, tests: Sequence[str], seconds: int) -> int:
    """Runs tests in a process of its own, on a mutant if one is given, and returns the process's number.

    It ends with pytest's exit code, or by a signal after so many seconds of a processor.
    """
    if process := os.fork():
        return process
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(20 * seconds)  # for one that waits forever
    if mutant:
        import jax

        jax.config.update("jax_persistent_cache_min_compile_time_secs", 1e9)  # a mutant's programs are of no more use
        plant(path_of(mutant.file), mutant.source)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
    import pytest

    files = [str(ROOT / "tests" / f"{test}.py") for test in tests]
    os._exit(pytest.main([*_PYTEST, *files]))


def outcome(status: int) -> str:
    """What a process's status says of its mutant."""
    if os.WIFSIGNALED(status):
        timed_out = os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL, signal.SIGALRM)
        return "killed by time" if timed_out else "killed by a crash"
    return "survived" if os.WEXITSTATUS(status) == 0 else "killed"


def tried(
    chosen: Iterable[Mutant], tests: Sequence[str], seconds: int, workers: int
) -> Iterator[tuple[Mutant, str, float]]:
    """Each mutant, as it ends, with its outcome and the seconds of a processor that it took."""
    waiting, running = iter(chosen), dict[int, Mutant]()
    while True:
        for mutant in islice(waiting, workers - len(running)):
            running[start(mutant, tests, seconds)] = mutant
        if not running:
            return
        process, status, used = os.wait4(-1, 0)
        yield running.pop(process), outcome(status), used.ru_utime + used.ru_stime


def without_mutant(tests: Sequence[str]) -> float:
    """The seconds of a processor that the tests take, compiling included. Raises: SystemExit if they fail."""
    _, status, used = os.wait4(start(None, tests, 3000), 0)
    if status:
        raise SystemExit(f"the tests {', '.join(tests)} fail without a mutant")
    return used.ru_utime + used.ru_stime


def prepare() -> None:
    """Imports what all mutants' tests import, and makes hypothesis repeatable and as quick as a failure may be."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # looking for plugins takes a quarter of a quick mutant's time
    gc.disable()
    for name in _BEFORE.split():
        importlib.import_module(name)
    from hypothesis import Phase, settings

    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("mutants", phases=phases, database=None, derandomize=True, deadline=None)
    settings.load_profile("mutants")


def import_others(file: str) -> None:
    """Imports the modules of one_layer/ that do not import `file`, with the hook of the tests' type checker, and forgets all others."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "one_layer"]:
        del sys.modules[name]
    importlib.import_module("tests.conftest")
    sys.modules[_module_of(path_of(file))] = None  # type: ignore[assignment]  # an import of it fails, and so of what imports it
    for path in sorted((ROOT / "one_layer").rglob("*.py")):
        with suppress(ImportError):
            importlib.import_module(_module_of(path))
    del sys.modules[_module_of(path_of(file))]
    from jax._src import xla_bridge

    assert not xla_bridge.backends_are_initialized(), "a forked process cannot use JAX's threads"


def _module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def judge(file: str, tests: Sequence[str], chosen: Sequence[Mutant], workers: int) -> Counter[str]:
    """How many of these mutants of a file ended how. Prints those that survive and are not explained, or are and do not."""
    seconds = int(5 + 2 * without_mutant(tests))
    known, counts, began, spent = explanations(file), Counter[str](), time.monotonic(), 0.0
    for mutant, end, took in tried(chosen, tests, seconds, workers):
        spent += took
        place, (old, new) = f"one_layer/{file}.py:{mutant.line}", mutant.change
        if end == "survived" and mutant.change in known:
            end = "survived, explained"
        elif end == "survived":
            print(f"{place}\n  - {old}\n  + {new}", flush=True)
        elif mutant.change in known:
            print(f"{place} is explained, but {end}\n  + {new}", flush=True)
        counts[end] += 1
    ends = ", ".join(f"{count} {end}" for end, count in sorted(counts.items()))
    seconds_taken = f"{spent:.0f} s of a processor, {time.monotonic() - began:.0f} s by the clock"
    print(f"{file}: {len(chosen)} mutants: {ends}; {seconds_taken}", flush=True)
    return counts


def _numbers(text: str) -> set[int]:
    """The numbers in a text such as 20-40,57."""
    ends = [part.partition("-") for part in text.split(",")]
    return {number for first, _, last in ends for number in range(int(first), int(last or first) + 1)}


def main() -> int:
    """Runs the command line. Returns 1 if a mutant survived that is not explained."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="+", choices=sorted(TARGETS), metavar="target", help=", ".join(TARGETS))
    parser.add_argument("--file", default="", help="only files whose name contains this")
    parser.add_argument("--lines", type=_numbers, help="only mutants of these lines, such as 20-40,57")
    parser.add_argument(
        "--tests", help="only tests that match this, as pytest -k does: for mutants that a new test should kill"
    )
    parser.add_argument("--sample", type=int, help="at most so many mutants of each file, drawn with --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.tests:
        _PYTEST[_PYTEST.index("not golden")] = f"not golden and ({arguments.tests})"
    files = {file: tests for target in arguments.targets for file, tests in TARGETS[target].items()}
    found = {file: [mutated(file, *place) for place in places(file)] for file in files if arguments.file in file}
    prepare()
    unexplained = 0
    for file, chosen in found.items():
        chosen = [mutant for mutant in chosen if arguments.lines is None or mutant.line in arguments.lines]
        if arguments.sample is not None and arguments.sample < len(chosen):
            chosen = random.Random(arguments.seed).sample(chosen, arguments.sample)
        import_others(file)
        unexplained += judge(file, files[file], chosen, arguments.workers)["survived"]
    return unexplained > 0


if __name__ == "__main__":
    sys.exit(main())

"""Who may import whom: rows of packages, read from the source by ast, so that nothing is imported to check it."""

import ast
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests import ROOT

# From the top down. A package imports from the rows below its own, and inside itself; never from its own row or above it.
ROWS = (
    ("__main__",),
    ("commands",),
    ("sweeps", "ahead"),
    ("cli",),
    ("report", "training", "page"),
    ("tickets", "importers"),
    ("runs",),
    ("tasks",),
    ("models",),
    ("layers", "data"),
    ("own_selection",),
    ("supermask", "initializers"),
    ("selection",),
    ("platform", "system"),
)
RANK = {package: rank for rank, row in enumerate(reversed(ROWS)) for package in row}
# Inside tasks/ each task's folder stands by itself; what they share lies beside them.
TASKS = ("translation", "classification", "causal_lm", "masked_lm")
# Flax stays here, so that the module library could be exchanged.
FLAX_LIVES_IN = {"layers", "models"}
ACCELERATED = {"jax", "jaxlib", "flax", "optax", "orbax", "chex"}

Imports = dict[str, set[str]]


def imported(source: str, modules: set[str]) -> set[str]:
    """Full names of what a source text imports, anywhere in it: modules of the project where they are some, else as written."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = "." * node.level + (node.module or "")
            names = {f"{package}.{alias.name}" for alias in node.names}
            found |= {name if name in modules else package for name in names}
    return found


def read_project(root: Path) -> Imports:
    """What each module of the project imports, by full name: one_layer.data.tokens, configs.toy, launch.benchmark, main."""
    folders = (root / folder for folder in ("one_layer", "configs", "launch"))
    files = [root / "main.py", *(file for folder in folders for file in folder.rglob("*.py"))]
    names = {file: ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__") for file in files}
    return {name: imported(file.read_text(encoding="utf-8"), set(names.values())) for file, name in names.items()}


def package(module: str) -> str:
    """The package of a module of one_layer, or the module itself where it lies in none: `data` of one_layer.data.tokens."""
    return module.split(".")[1] if "." in module else ""


def arrows(imports: Imports) -> set[tuple[str, str]]:
    """(package, package it imports from), between different ones of one_layer; the package itself opens what `load` needs."""
    return {
        (package(module), package(target))
        for module, targets in imports.items()
        for target in targets
        if module.startswith("one_layer.") and target.startswith("one_layer.") and package(module) != package(target)
    }


def upward(pairs: set[tuple[str, str]]) -> list[str]:
    """Every arrow that does not lead downwards in ROWS."""
    return [
        f"{source} imports {target}, which is not below it in tests/test_imports.py"
        for source, target in sorted(pairs)
        if RANK.get(target, len(RANK)) >= RANK.get(source, len(RANK))
    ]


def third_party(imports: Imports, module: str) -> set[str]:
    """First names of the packages that a module, or anything of the project that it imports, needs from outside."""
    seen, ahead = set(), {module}
    while ahead:
        seen |= ahead
        ahead = set().union(*(imports.get(name, set()) for name in ahead)) - seen
    return {name.split(".")[0] for name in seen if name not in imports}


def edges(project: Imports) -> Iterator[tuple[str, str]]:
    """Every module with each of its imports."""
    return ((module, target) for module, targets in project.items() for target in targets)


@pytest.fixture(scope="module")
def project() -> Imports:
    return read_project(ROOT)


def test_the_rows_name_every_package_and_no_other(project: Imports) -> None:
    assert {package(module) for module in project if module.startswith("one_layer.")} == set(RANK)


def test_imports_between_packages_lead_downwards(project: Imports) -> None:
    assert not upward(arrows(project)), "\n".join(upward(arrows(project)))


def test_no_module_imports_itself_in_a_circle(project: Imports) -> None:
    """All imports count, also those that only a type checker or a function reads."""
    TopologicalSorter({module: targets & project.keys() for module, targets in project.items()}).prepare()


def test_a_task_knows_no_other_task(project: Imports) -> None:
    wrong = {
        f"{module} imports {target}"
        for module, target in edges(project)
        for one in TASKS
        for other in TASKS
        if one != other
        and module.startswith(f"one_layer.tasks.{one}")
        and target.startswith(f"one_layer.tasks.{other}")
    }
    assert not wrong, sorted(wrong)


def test_no_module_outside_tasks_reads_one_task_alone(project: Imports) -> None:
    """But for commands that import the models of one task."""
    wrong = {
        f"{module} imports {target}"
        for module, target in edges(project)
        for task in TASKS
        if package(module) in set(RANK) - {"tasks", "commands"} and target.startswith(f"one_layer.tasks.{task}")
    }
    assert not wrong, sorted(wrong)


def test_every_import_gives_the_full_name(project: Imports) -> None:
    relative = {f"{module}: {target}" for module, target in edges(project) if target[0] == "."}
    assert not relative, f"write one_layer.… in full instead of a relative import: {sorted(relative)}"


def test_nothing_imports_main_the_launchers_or_the_configs(project: Imports) -> None:
    wrong = {
        f"{module} imports {target}"
        for module, target in edges(project)
        if target.split(".")[0] in {"main", "configs", "launch"} - {module.split(".")[0]}
        and (module.split(".")[0], target.split(".")[0]) != ("launch", "configs")
    }
    assert not wrong, sorted(wrong)


def test_the_data_side_needs_neither_jax_nor_ml_collections(project: Imports) -> None:
    for module in project:
        if package(module) in ("data", "system"):
            assert not third_party(project, module) & (ACCELERATED | {"ml_collections"}), (
                f"{module} must stay NumPy-only"
            )


def test_reports_and_sweeps_need_no_jax(project: Imports) -> None:
    readers = {module for module in project if package(module) == "report"}
    assert readers
    for module in (*readers, "one_layer.runs.collection", "one_layer.sweeps.plan", "one_layer.sweeps.jobs", "main"):
        needed = third_party({**project, "main": project["main"] & {"one_layer.report.writing"}}, module)
        assert not needed & ACCELERATED, f"{module} imports {needed & ACCELERATED}"


def test_flax_stays_in_the_networks(project: Imports) -> None:
    users = {package(module) for module, targets in project.items() if any(t.split(".")[0] == "flax" for t in targets)}
    assert users <= FLAX_LIVES_IN


def test_configs_import_only_ml_collections(project: Imports) -> None:
    allowed = {"configs", "ml_collections"} | sys.stdlib_module_names
    for module, targets in project.items():
        if module.split(".")[0] == "configs":
            wrong = {target for target in targets if target.split(".")[0] not in allowed}
            assert not wrong, (
                f"{module} imports {sorted(wrong)}; a config imports only ml_collections and other configs"
            )


def test_a_run_s_files_have_their_names_in_one_module() -> None:
    """All other modules ask `runs.paths.RunPaths` for them."""
    names = ("config.json", "metrics.jsonl", "result.json", "ticket.safetensors", "frozen.npz", '"tensorboard"')
    # The folders of Hugging Face's models have a config.json too.
    files = ("commands/import_roberta.py", "commands/import_llama.py", "importers/huggingface.py")
    others = {ROOT / "one_layer" / name for name in files}
    for file in {ROOT / "main.py", *(ROOT / "one_layer").rglob("*.py")} - others:
        strings = [
            node.value
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.right, ast.Constant)
            for node in [node.right]
        ]
        wrong = [text for text in strings if text in [name.strip('"') for name in names]]
        assert not wrong or file.name == "paths.py", f"{file.name} joins {wrong} to a path; RunPaths has these names"


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    """One idea, one file."""
    lines = {str(file): len(file.read_text("utf-8").splitlines()) for file in (ROOT / "one_layer").rglob("*.py")}
    assert not {file: number for file, number in lines.items() if number > 289}


def test_what_lies_in_launch_is_flags_alone() -> None:
    """What people who install the package need is in it; the benchmarks stay with the repository."""
    scripts = [
        file
        for file in (ROOT / "launch").iterdir()
        if file.is_file() and file.stem not in ("benchmark", "tables", "torch_peer")
    ]
    assert scripts and not {file.name: lines for file in scripts if (lines := len(file.read_text().splitlines())) > 60}


def test_a_module_s_name_says_what_it_holds() -> None:
    files = {file for folder in ("one_layer", "launch") for file in (ROOT / folder).rglob("*.py")}
    assert not {str(file) for file in files if file.stem in ("common", "helpers", "misc", "util", "utils")}


def test_the_checks_see_what_they_are_there_for() -> None:
    modules = {"one_layer", "one_layer.supermask", "one_layer.training.train", "one_layer.data", "one_layer.data.toy"}
    text = "from one_layer import supermask\nfrom one_layer.data import toy\ndef f():\n    import jax.numpy\n    from . import x\n"
    assert imported(text, modules) == {"one_layer.supermask", "one_layer.data.toy", "jax.numpy", "."}
    assert upward({("supermask", "training"), ("training", "supermask")}) == [
        "supermask imports training, which is not below it in tests/test_imports.py"
    ]
    assert upward({("layers", "data")}) and upward({("tasks", "no_such_package")})
    assert arrows({"one_layer.a.b": {"one_layer.c.d", "one_layer.a.e", "jax"}}) == {("a", "c")}
    with pytest.raises(CycleError):
        TopologicalSorter({"a": {"b"}, "b": {"a"}}).prepare()
    hidden = {"one_layer.report": {"one_layer.metrics"}, "one_layer.metrics": {"jax.numpy", "json"}}
    assert third_party(hidden, "one_layer.report") == {"jax", "json"}

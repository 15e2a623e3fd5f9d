"""Who may import whom: the direction of imports, read from the source by ast, so that nothing is imported to check it."""

from __future__ import annotations

import ast
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests import ROOT

# From the bottom up. A module may import from the rows below its own, never from its own row or above it.
# A new module goes into the lowest row that stands above everything it imports.
BASE = [
    ("one_layer", "errors", "files"),
    ("codecs",),
    ("ticket_file",),
]
DATA = [
    (
        "data",
        "data.text",
        "data.toy_lexicon",
        "data.archives",
        "data.bpe_learning",
        "data.byte_level",
        "data.cleaning",
        "data.markup",
        "data.parallel",
        "data.spill",
        "data.tfds_records",
    ),
    ("data.vocabulary", "data.preprocess", "data.manifest", "data.toy_clause"),
    (
        "data.streaming",
        "data.tokens",
        "data.vocabulary_json",
        "data.glue",
        "importers",
        "importers.fairseq_checkpoint",
        "importers.fairseq_dictionary",
    ),
    ("data.config", "data.assets", "data.batches", "data.data_bin", "data.embeddings", "data.shards", "data.toy"),
    ("data.prepared", "data.sources", "importers.roberta"),
    ("data.corpus",),
]
SCIENCE = [
    ("supermask", "initializers", "bleu", "classification"),
    ("config",),
    ("layers", "losses", "decode", "optim"),
    ("attention",),
    ("blocks", "models.inputs"),
    ("stack", "models.weights"),
    ("models.transformer", "models.classifier"),
    ("models",),
]
RUN = [
    ("settings", "metrics", "checkpoints", "step", "accounting", "frozen"),
    ("importers.fairseq", "ticket_settings"),
    ("restore", "generate", "importers.fairseq_options", "ticket_content"),
    ("translation_scores", "label_scores", "streams", "tickets", "embedding_sources"),
    ("evaluate", "translate", "classify"),
    ("results", "inspection"),
    ("train",),
]
RANK = {module: rank for rank, row in enumerate(BASE + DATA + SCIENCE + RUN) for module in row}

# What main.py dispatches to, and what it needs to do so.
MAIN_MAY_IMPORT = {
    "errors",
    "settings",
    "restore",
    "train",
    "evaluate",
    "translate",
    "classify",
    "tickets",
    "inspection",
    "report",
}
# Flax stays here, so that the module library could be exchanged.
FLAX_LIVES_IN = {
    "layers",
    "attention",
    "blocks",
    "stack",
    "reservoir",
    "models",
    "models.weights",
    "models.classifier",
    "models.transformer",
}
ACCELERATED = {"jax", "jaxlib", "flax", "optax", "orbax", "chex"}

Imports = dict[str, set[str]]


def short(module: str) -> str:
    """`one_layer.data.sources.toy.grammar` as the table above calls it: `data.toy`."""
    return module.removeprefix("one_layer.")


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
    """What each module of the project imports, by full name: one_layer.data.sources.toy.grammar, configs.toy, launch.benchmark, main."""
    files = [
        root / "main.py",
        *(f for folder in ("one_layer", "configs", "launch") for f in (root / folder).rglob("*.py")),
    ]
    names = {file: ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__") for file in files}
    return {name: imported(file.read_text(encoding="utf-8"), set(names.values())) for file, name in names.items()}


def inner(imports: Imports) -> Imports:
    """The edges inside one_layer alone, by the table's names."""
    return {
        short(module): {short(target) for target in targets if target.split(".")[0] == "one_layer"}
        for module, targets in imports.items()
        if module.split(".")[0] == "one_layer"
    }


def reachable(edges: Imports, module: str) -> set[str]:
    """A module and everything that importing it brings in from one_layer."""
    seen, ahead = set(), {module}
    while ahead:
        seen |= ahead
        ahead = set().union(*(edges.get(name, set()) for name in ahead)) - seen
    return seen


def third_party(imports: Imports, module: str) -> set[str]:
    """First names of the packages that a module of one_layer, or anything it imports there, needs from outside."""
    full = {short(name): targets for name, targets in imports.items()}
    outside = set().union(*(full.get(name, set()) for name in reachable(inner(imports), module)))
    return {name.split(".")[0] for name in outside} - {"one_layer"}


def upward(edges: Imports) -> list[str]:
    """Every edge that does not lead downwards in the table."""
    return [
        f"{module} imports {target}, which is not below it in tests/test_imports.py"
        for module, targets in sorted(edges.items())
        for target in sorted(targets)
        if RANK.get(target, len(RANK)) >= RANK.get(module, len(RANK))
    ]


def members(rows: list[tuple[str, ...]]) -> set[str]:
    return {module for row in rows for module in row}


@pytest.fixture(scope="module")
def project() -> Imports:
    return read_project(ROOT)


def test_the_table_names_every_module_and_no_other(project: Imports) -> None:
    present = set(inner(project))
    unknown, gone = sorted(present - set(RANK)), sorted(set(RANK) - present)
    assert not unknown, f"{unknown} has no place in the table of tests/test_imports.py: add it, as low as it can stand"
    assert not gone, f"{gone} stands in the table of tests/test_imports.py, but there is no such module: take it out"


def test_imports_lead_downwards(project: Imports) -> None:
    assert not upward(inner(project)), "\n".join(upward(inner(project)))


def test_there_is_no_cycle(project: Imports) -> None:
    TopologicalSorter(inner(project)).prepare()


def test_every_import_gives_the_full_name(project: Imports) -> None:
    relative = {f"{module}: {target}" for module, targets in project.items() for target in targets if target[0] == "."}
    assert not relative, f"write one_layer.… in full instead of a relative import: {sorted(relative)}"


def test_nothing_imports_main_the_launchers_or_the_configs(project: Imports) -> None:
    wrong = {
        f"{module} imports {target}"
        for module, targets in project.items()
        for target in targets
        if target.split(".")[0] in {"main", "configs", "launch"} - {module.split(".")[0]}
        and (module.split(".")[0], target.split(".")[0]) != ("launch", "configs")
    }
    assert not wrong, sorted(wrong)


def test_the_data_side_needs_neither_jax_nor_ml_collections(project: Imports) -> None:
    for module in members(BASE + DATA):
        assert not third_party(project, module) & (ACCELERATED | {"ml_collections"}), f"{module} must stay NumPy-only"


def test_the_science_knows_no_data(project: Imports) -> None:
    edges = inner(project)
    for module in members(SCIENCE):
        assert not reachable(edges, module) & members(DATA), f"{module} takes arrays and must not import data/"


def test_flax_stays_in_the_modules(project: Imports) -> None:
    users = {short(module) for module, targets in project.items() if any(t.split(".")[0] == "flax" for t in targets)}
    assert users <= FLAX_LIVES_IN, (
        f"flax is imported in {sorted(users - FLAX_LIVES_IN)}; it belongs to {sorted(FLAX_LIVES_IN)}"
    )


def test_the_report_starts_without_jax(project: Imports) -> None:
    assert not third_party(project, "report") & ACCELERATED, "report reads files only"


def test_configs_import_only_ml_collections(project: Imports) -> None:
    allowed = {"configs", "ml_collections"} | sys.stdlib_module_names
    for module, targets in project.items():
        if module.split(".")[0] == "configs":
            wrong = {target for target in targets if target.split(".")[0] not in allowed}
            assert not wrong, (
                f"{module} imports {sorted(wrong)}; a config imports only ml_collections and other configs"
            )


def test_main_only_dispatches(project: Imports) -> None:
    targets = {short(target) for target in project["main"] if target.split(".")[0] == "one_layer"}
    assert targets <= MAIN_MAY_IMPORT, (
        f"main.py imports {sorted(targets - MAIN_MAY_IMPORT)}; it is flags -> the mode's function"
    )


def test_the_checks_see_what_they_are_there_for() -> None:
    modules = {
        "one_layer",
        "one_layer.tasks.translation.bleu",
        "one_layer.training.train",
        "one_layer.data",
        "one_layer.data.sources.toy.grammar",
    }
    text = "from one_layer import bleu\nfrom one_layer.data import toy\ndef f():\n    import jax.numpy\n    from . import train\n"
    assert imported(text, modules) == {
        "one_layer.tasks.translation.bleu",
        "one_layer.data.sources.toy.grammar",
        "jax.numpy",
        ".",
    }
    assert upward({"bleu": {"train"}, "train": {"bleu"}}) == [
        "bleu imports train, which is not below it in tests/test_imports.py"
    ]
    assert upward({"data.toy": {"data.toy"}}) and upward({"bleu": {"no_such_module"}})
    with pytest.raises(CycleError):
        TopologicalSorter({"bleu": {"train"}, "train": {"bleu"}}).prepare()
    hidden = {"one_layer.report": {"one_layer.training.metrics"}, "one_layer.training.metrics": {"jax.numpy", "json"}}
    assert third_party(hidden, "report") == {"jax", "json"}

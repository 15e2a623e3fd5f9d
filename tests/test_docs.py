"""The documents: each link, path, command line, config key and import in them is one that exists. Nothing is run."""

import ast
import importlib
import pkgutil
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

import one_layer
from docs import pages as site
from tests import ROOT
from tests.documents import (
    PAGES,
    PLACEHOLDER,
    SECTIONS,
    blocks,
    check_command,
    check_config,
    commands,
    declared,
    each_command,
)

FOLDERS = ("configs", "docs", "examples", "launch", "one_layer", "results", "tests")


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def spans(page: Path) -> list[str]:
    """What stands between backticks in the prose."""
    return re.findall(r"`([^`\n]+)`", prose(page))


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to headings: lower case, punctuation dropped, hyphens for spaces."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def exists(dotted: str) -> bool:
    """Whether `one_layer.a.b.name` is a module, or a name in one; members of a class are taken on trust."""
    try:
        return pkgutil.resolve_name(dotted) is not None
    except ImportError:
        return False
    except AttributeError:
        owner = dotted.rpartition(".")[0]
        return "." in owner and exists(owner) and isinstance(pkgutil.resolve_name(owner), type)


by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


@pytest.mark.parametrize("page", site.PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"\w+:", target):
            continue  # another site's
        file, _, anchor = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.is_file(), f"{page.name}: {target}"  # the pages of `make docs` have no folders
        assert not anchor or anchor in anchors(there), f"{page.name}: {target}; headings are {sorted(anchors(there))}"


@by_page
def test_every_page_can_be_reached_from_the_readme(page: Path) -> None:
    assert page == PAGES[0] or f"]({page.relative_to(ROOT).as_posix()})" in PAGES[0].read_text("utf-8")


@by_page
def test_paths_and_names_exist(page: Path) -> None:
    missing = []
    for span in spans(page):
        path = re.match(rf"(?:{'|'.join(FOLDERS)})/[\w./-]*|requirements[\w-]*\.txt", span)
        if path and not PLACEHOLDER.search(path[0]) and not (ROOT / path[0]).exists():
            missing.append(span)
        if re.fullmatch(r"configs/\w+\.py:[a-z_]+", span):
            check_config([f"--config={span}"])
        missing += [span for dotted in re.findall(r"^one_layer(?:\.\w+)+", span) if not exists(dotted)]
    assert not missing, f"{page.name} names {', '.join(missing)}"


@by_page
def test_config_keys_exist(page: Path) -> None:
    config = importlib.import_module("configs.common").get_config()
    for span in (word for several in spans(page) for word in several.split()):
        key = re.fullmatch(rf"(?:--config\.)?((?:{'|'.join(SECTIONS)})\.[a-z0-9_]+)(?:=.*)?", span)
        if key and not re.search(r"\.(pt|de|en|tsv|txt|safetensors)$", span):
            section, name = key[1].split(".")
            assert name in config[section], f"{page.name}: `{span}`"


@by_page
def test_every_block_says_what_it_is(page: Path) -> None:
    text = page.read_text("utf-8")
    assert text.count("\n```") % 2 == 0
    for block in blocks(page):
        assert block.language in ("sh", "python", "js", "text"), f"{page.name}, line {block.line}"
    assert not re.search(r"\n\n {4}\S", prose(page)), (
        f"{page.name} has a block that is indented; fence it, and name its language"
    )


@pytest.mark.parametrize("words", each_command(), ids=" ".join)
def test_commands_parse(words: list[str]) -> None:
    check_command(words)


def test_the_models_of_the_example_of_fine_tuning_fit_each_other() -> None:
    page = (ROOT / "docs" / "fine-tuning.md").read_text("utf-8")
    example = re.search(r"## An example.*?```sh\n(.*?)```", page, re.DOTALL)
    first, second = (
        check_config([word for word in words if word.startswith("--config")]) for words in commands(example[1])
    )
    shape = "d_model ffn heads encoder_layers activation norm_position positions embedding_norm"
    recipe = "weights keep init_preset init_scheme init_attention init_embedding scale_by_keep"
    steps = "lowercase bpe_kind tokenize split_hyphens"
    for section, keys in (("model", f"{shape} {recipe}"), ("data", steps)):
        for key in keys.split():
            assert first[section][key] == second[section][key], f"{section}.{key}"


@by_page
def test_flags_in_the_prose_exist(page: Path) -> None:
    scripts = [ROOT / "main.py", *(ROOT / "one_layer" / "commands").glob("*.py"), ROOT / "launch" / "benchmark.py"]
    known = {name for script in scripts for name in declared(script)}
    for span in spans(page):
        for flag, value in re.findall(r"^(--\w+)(?:=([\w-]+))?", span):
            assert flag in known, f"{page.name}: `{span}`"
            accepted = declared(ROOT / "main.py").get(flag)
            assert not (accepted and value) or PLACEHOLDER.search(value) or value in accepted, f"{page.name}: `{span}`"


@by_page
def test_python_compiles_and_its_imports_exist(page: Path) -> None:
    for block in (block for block in blocks(page) if block.language == "python"):
        code = ast.parse(block.text, f"{page.name}, line {block.line}")
        for node in ast.walk(code):
            if isinstance(node, ast.Import):
                used = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                used = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                used = re.findall(r"one_layer(?:\.\w+)+", ast.unparse(node)) if isinstance(node, ast.Attribute) else []
            for name in used:
                assert name.split(".")[0] != "one_layer" or exists(name), f"{page.name}, line {block.line}: {name}"


def test_the_packages_are_all_in_the_architecture() -> None:
    drawn = next(block.text for block in blocks(ROOT / "docs" / "ARCHITECTURE.md") if block.language == "text")
    for path in (ROOT / "one_layer").iterdir():
        if path.stem != "__init__" and (path.suffix == ".py" or (path / "__init__.py").is_file()):
            assert re.search(rf"\b{path.stem}\b", drawn), f"docs/ARCHITECTURE.md does not draw {path.name}"


def test_the_pages_show_each_public_name() -> None:
    shown, names = site.api().splitlines(), site.public_names()
    assert {"one_layer.load", "one_layer.models.build", "one_layer.tickets.save", "one_layer.tickets.load"} <= set(
        names
    )
    assert all(f"::: {name}" in shown and exists(name) for name in names)


def test_the_pages_are_all_in_the_navigation() -> None:
    listed = re.findall(r"^ +- (?:.+: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted([*(page.relative_to(ROOT).as_posix() for page in site.PAGES), "docs/api.md"])


def test_the_version_is_the_same_everywhere() -> None:
    changelog, citation = ((ROOT / name).read_text("utf-8") for name in ("CHANGELOG.md", "CITATION.cff"))
    version, date = re.findall(r"^## \[([\d.]+)\] - ([\d-]+)$", changelog, re.MULTILINE)[0]
    assert version == one_layer.__version__
    assert f"\nversion: {version}\n" in citation and f'\ndate-released: "{date}"\n' in citation


@pytest.mark.parametrize(
    "line",
    [
        "make dmeo",
        "python main.py --config=configs/nowhere.py",
        "python main.py --config=configs/toy.py:nothing",
        "python main.py --config=configs/toy.py --config.model.kep=0.3",
        "python main.py --config=configs/toy.py --config.model.keep=half",
        "python main.py --mode=translat",
        "python main.py translate",
        "python main.py --wrokdir=runs/toy",
        "echo text | python main.py extra",
        "python launch/nothing.py",
        "python main.py sweep --config=configs/toy.py --sweep=figure9 --workdir=runs/x",
        "python main.py sweep --config=configs/toy.py --jbos=2 --workdir=runs/x",
        "python main.py prepare_wmt14 --quick",
        "python launch/benchmark.py --dtype=float23",
        "python main.py import_fairseq --config.data.nothing=1",
        ".venv/bin/pip install -r requirements-none.txt",
        "git push",
    ],
)
def test_the_checks_see_mistakes(line: str) -> None:
    with pytest.raises((AssertionError, ValueError)):
        list(map(check_command, commands(line)))


def test_names_that_are_not_there_are_seen() -> None:
    assert exists("one_layer.supermask.topk_mask") and exists("one_layer.tickets.load") and exists("one_layer.tickets")
    assert not exists("one_layer.supermask.nothing") and not exists("one_layer.nothing")


def test_the_picture_is_whole() -> None:
    root = ElementTree.parse(ROOT / "docs" / "one_layer.svg").getroot()
    names = {element.get("id") for element in root.iter()}
    used = re.findall(r'href="#(\w+)"|url\(#(\w+)\)', (ROOT / "docs" / "one_layer.svg").read_text("utf-8"))
    assert root.get("viewBox") and {first or second for first, second in used} <= names

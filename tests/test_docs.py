"""The documents: each link, path, command line, config key and import in them is one that exists. Nothing is run, and JAX is not needed."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
from absl import flags
from ml_collections import ConfigDict, config_flags

from tests import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FOLDERS = ("configs", "docs", "launch", "one_layer", "results", "tests")
PLACEHOLDER = re.compile(r"[A-Z]{3,}|[*{}<>\[\]]|\.\.\.")  # DIR, NAME.py, dict.{language}.txt, dict.*.txt
SECTIONS = ("model", "data", "optim", "train", "evaluation")


class Block(NamedTuple):
    """A fenced block of code: its language, its text and the line of its first fence."""

    language: str
    text: str
    line: int


@cache
def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    found = re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(each[1], each[2], text.count("\n", 0, each.start()) + 1) for each in found]


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def spans(page: Path) -> list[str]:
    """What stands between backticks in the prose."""
    return re.findall(r"`([^`\n]+)`", prose(page))


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to headings: lower case, punctuation dropped, hyphens for spaces."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command in a block for a shell, without comments, redirections and variables set before it."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, "|"]:
            if word != "|":
                words.append(word)
                continue
            assert not {"<", ">"} & set(words), f"{line}: give --input and --output instead"
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words.pop(0)
            if words:
                yield words
            words = []


def each_command() -> list[list[str]]:
    return [
        words for page in PAGES for block in blocks(page) if block.language == "sh" for words in commands(block.text)
    ]


# What modules and scripts offer, read from their source.


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def source_of(module: str) -> Path | None:
    """The file of a module of this repository."""
    base = ROOT.joinpath(*module.split("."))
    return next((path for path in (base / "__init__.py", base.with_suffix(".py")) if path.is_file()), None)


def names_in(path: Path) -> set[str]:
    """What a module defines or imports at its top level, and what a lazy one lists in `__all__`."""
    found: set[str] = set()
    for node in tree(path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
            if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets) and node.value:
                found |= set(ast.literal_eval(node.value))
    return found


def exists(dotted: str) -> bool:
    """Whether `one_layer.a.b.name` is a module, or a name in one; members of a class are taken on trust."""
    parts = dotted.split(".")
    for end in range(len(parts), 0, -1):
        path = source_of(".".join(parts[:end]))
        if path:
            return end == len(parts) or parts[end] in names_in(path)
    return False


def declared(script: Path) -> dict[str, list[str] | None]:
    """The flags (`--name`) and positional arguments of a script, with what each accepts where its source lists that."""
    found: dict[str, list[str] | None] = {}
    constants = {
        node.targets[0].id: node.value
        for node in tree(script).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for node in ast.walk(tree(script)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
            continue
        defines = node.func.attr.startswith("DEFINE_") or node.func.attr == "add_argument"
        if not defines or not isinstance(node.args[0], ast.Constant):
            continue
        choices = next((each.value for each in node.keywords if each.arg == "choices"), None)
        if node.func.attr == "DEFINE_enum":
            choices = node.args[2]
        if isinstance(choices, ast.Name):
            choices = constants.get(choices.id)
        keys = choices.keys if isinstance(choices, ast.Dict) else getattr(choices, "elts", None)
        name = node.args[0].value if node.func.attr == "add_argument" else f"--{node.args[0].value}"
        found[name] = [key.value for key in keys] if keys else None
    if any(isinstance(node, ast.ImportFrom) and node.module == "launch.importing" for node in tree(script).body):
        found |= declared(ROOT / "launch" / "importing.py")
    if script.name == "main.py":  # its flags are those of the package's own command
        return declared(ROOT / "one_layer" / "options.py")
    if "--mode" in found:  # the program's own modes, and what a task's models do with lines
        found["--mode"] = [each.value for each in constants["_MODES"].keys] + verbs()
    return found


def verbs() -> list[str]:
    """The `verb` of every class of trained models."""
    classes = (node for file in (ROOT / "one_layer" / "tasks").rglob("*.py") for node in tree(file).body)
    fields = (field for node in classes if isinstance(node, ast.ClassDef) for field in node.body)
    return [
        field.value.value
        for field in fields
        if isinstance(field, ast.Assign) and getattr(field.targets[0], "id", "") == "verb"
    ]


def check_script(words: list[str]) -> None:
    """Raises: AssertionError for a script that is not there, or a word that it does not take."""
    script, *arguments = words if words[:2] != ["-m", "one_layer"] else ["main.py", *words[2:]]
    assert (ROOT / script).is_file(), f"there is no {script}"
    known = declared(ROOT / script)
    overrides = [word for word in arguments if word.startswith(("--config=", "--config."))]
    if script == "launch/sweep.py":
        check_sweep(arguments)
    if "--config" in known:
        check_config(overrides)
        arguments = [word for word in arguments if word not in overrides]
    positional = iter([name for name in known if not name.startswith("--")])
    for word in arguments:
        name, _, value = word.partition("=") if word.startswith("--") else (next(positional, ""), "", word)
        assert name in known, f"{script} does not take {word}"
        accepted = known[name]
        assert not (accepted and value) or value in accepted, f"{script} does not take {word}; it takes {accepted}"


def check_sweep(words: list[str]) -> None:
    """Raises: AssertionError for a sweep that its config does not have. A config with a placeholder for its name is the user's own."""
    given = dict(word.partition("=")[::2] for word in words)
    if PLACEHOLDER.search(given["--config"]):
        return
    module = importlib.import_module(given["--config"].partition(":")[0].removesuffix(".py").replace("/", "."))
    assert "--sweep" not in given or given["--sweep"] in module.SWEEPS, f"{given['--config']} has no such sweep"


def check_config(words: list[str]) -> ConfigDict:
    """The config of a command. Raises: AssertionError for a config that does not load, and for keys and values that it does not take."""
    path = next((word.removeprefix("--config=") for word in words if word.startswith("--config=")), "configs/common.py")
    file, _, argument = path.partition(":")
    if PLACEHOLDER.search(file):  # the user's own, which has at least the keys of all configs
        file, argument = "configs/common.py", ""
    assert (ROOT / file).is_file(), f"there is no {file}"
    get_config = importlib.import_module(file.removesuffix(".py").replace("/", ".")).get_config
    config = get_config(argument) if argument else get_config()
    argv = ["main.py", *(word for word in words if word.startswith("--config."))]
    parsed = flags.FlagValues()
    try:
        config_flags.DEFINE_config_dict("config", config, flag_values=parsed, sys_argv=argv)
        rest = parsed(argv)[1:]
    except (flags.Error, AttributeError, KeyError, TypeError, ValueError) as error:
        raise AssertionError(f"{' '.join(words)}: {error}") from None
    assert not rest, f"{rest} is left over"
    return config


def check_command(words: list[str]) -> None:
    """Raises: AssertionError for a command that this repository does not have."""
    program, *rest = words
    if program == "make":
        targets = re.findall(r"^(\w[\w-]*):(?!=)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        assert set(rest) <= set(targets), f"{' '.join(words)}: the Makefile has {', '.join(sorted(set(targets)))}"
    elif program in ("python", ".venv/bin/python"):
        check_script(rest)
    elif program == ".venv/bin/pip":
        assert rest in (["install", "."], ["install", "tensorboard"]) or (
            rest[:2] == ["install", "-r"] and (ROOT / rest[2]).is_file()
        ), f"{' '.join(words)}: no such requirements"
    elif program.startswith("launch/"):
        check_script(["main.py", *[word for word in rest if word.startswith("--")]])
        assert (ROOT / program).is_file(), f"{program}: no such script"
    else:
        assert program in ("echo", ".venv/bin/tfds", ".venv/bin/tensorboard"), (
            f"{' '.join(words)}: no command that this test knows"
        )


by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


@by_page
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"\w+:", target):
            continue  # another site's
        file, _, anchor = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        assert there.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(there), f"{page.name}: {target}; headings are {sorted(anchors(there))}"


@by_page
def test_every_page_can_be_reached_from_the_readme(page: Path) -> None:
    assert page == PAGES[0] or f"](docs/{page.name})" in PAGES[0].read_text("utf-8")


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
    for span in spans(page):
        key = re.fullmatch(rf"(?:--config\.)?((?:{'|'.join(SECTIONS)})\.[a-z0-9_]+)(?:=.*)?", span)
        if key and not re.search(r"\.(pt|de|en|tsv|txt|safetensors)$", span):
            section, name = key[1].split(".")
            assert name in config[section], f"{page.name}: `{span}`"


@by_page
def test_every_block_says_what_it_is(page: Path) -> None:
    text = page.read_text("utf-8")
    assert text.count("\n```") % 2 == 0
    for block in blocks(page):
        assert block.language in ("sh", "python", "text"), f"{page.name}, line {block.line}"
    assert not re.search(r"\n\n {4}\S", prose(page)), (
        f"{page.name} has a block that is indented; fence it, and name its language"
    )


@pytest.mark.parametrize("words", each_command(), ids=" ".join)
def test_commands_parse(words: list[str]) -> None:
    check_command(words)


def test_the_models_of_the_example_of_fine_tuning_fit_each_other() -> None:
    shape = ("d_model", "ffn", "heads", "encoder_layers", "activation", "norm_position", "positions", "embedding_norm")
    recipe = (
        "weights",
        "keep",
        "init_preset",
        "init_scheme",
        "init_attention",
        "init_embedding",
        "init_qk_gain",
        "scale_by_keep",
    )
    steps = ("lowercase", "bpe_kind", "tokenize", "split_hyphens")
    page = (ROOT / "docs" / "fine-tuning.md").read_text("utf-8")
    example = re.search(r"## An example.*?```sh\n(.*?)```", page, re.DOTALL)
    first, second = (
        check_config([word for word in words if word.startswith("--config")]) for words in commands(example[1])
    )
    for section, keys in (("model", (*shape, *recipe)), ("data", steps)):
        for key in keys:
            assert first[section][key] == second[section][key], f"{section}.{key}"


@by_page
def test_flags_in_the_prose_exist(page: Path) -> None:
    scripts = [ROOT / "main.py", *(ROOT / "launch").glob("*.py")]
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
        "python launch/sweep.py --config=configs/toy.py --sweep=figure9 --workdir=runs/x",
        "python launch/sweep.py --config=configs/toy.py --jbos=2 --workdir=runs/x",
        "python launch/prepare_wmt14.py --quick",
        "python launch/benchmark.py tarin",
        "python launch/import_fairseq.py --config.data.nothing=1",
        "python launch/dump_embeddings.py --config.data.store=1",
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

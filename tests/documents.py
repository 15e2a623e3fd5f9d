"""Reads the documents: their blocks, the commands in them, and whether such a command can be given."""

import ast
import importlib
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ml_collections import ConfigDict

from one_layer.cli.config_files import config_of
from one_layer.cli.modes import MODES
from one_layer.commands import COMMANDS
from one_layer.system.errors import UserError
from one_layer.tasks.known import VERBS
from tests import ROOT

PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY")),
    *sorted((ROOT / "docs").glob("*.md")),
    *(ROOT / folder / "README.md" for folder in ("results", "tickets")),
]
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


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


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
        if node.func.attr != "add_argument" or not isinstance(node.args[0], ast.Constant):
            continue
        choices = next((each.value for each in node.keywords if each.arg == "choices"), None)
        if isinstance(choices, ast.Name):
            choices = constants.get(choices.id)
        keys = choices.keys if isinstance(choices, ast.Dict) else getattr(choices, "elts", None)
        found[node.args[0].value] = [key.value for key in keys] if keys else None
    imported = {node.module for node in tree(script).body if isinstance(node, ast.ImportFrom)}
    if "one_layer.commands.importing" in imported:
        found |= declared(ROOT / "one_layer" / "commands" / "importing.py")
    if "one_layer.cli.overrides" in imported:
        found["--config"] = None
    if script.stem in COMMANDS and script.parent.name == "launch":
        return declared(ROOT / "one_layer" / "commands" / script.name)
    if script.name == "main.py":  # its flags are those of the package's own command
        return declared(ROOT / "one_layer" / "cli" / "options.py")
    if "--mode" in found:  # the program's own modes, and what a task's models do with lines
        found["--mode"] = [*MODES, *VERBS]
    return found


def check_script(words: list[str]) -> None:
    """Raises: AssertionError for a script that is not there, or a word that it does not take."""
    if words[0] == "-m":
        words = [{"one_layer": "main.py"}.get(words[1], f"{words[1].replace('.', '/')}.py"), *words[2:]]
    script, *arguments = words
    if script == "main.py" and arguments and arguments[0] in COMMANDS:
        script, *arguments = f"one_layer/commands/{arguments[0]}.py", *arguments[1:]
    assert (ROOT / script).is_file(), f"there is no {script}"
    known = declared(ROOT / script)
    overrides = [word for word in arguments if word.startswith(("--config=", "--config."))]
    if script == "one_layer/commands/sweep.py":
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
    words = [word for word in words if word.startswith("--config.")]
    file, _, argument = path.partition(":")
    if PLACEHOLDER.search(file):  # the user's own, which has at least the keys of all configs
        file, argument = "configs/common.py", ""
    assert (ROOT / file).is_file(), f"there is no {file}"
    try:
        return config_of(str(ROOT / file) + (f":{argument}" if argument else ""), words)[0]
    except UserError as error:
        raise AssertionError(f"{' '.join(words)}: {error}") from None


def check_command(words: list[str]) -> None:
    """Raises: AssertionError for a command that this repository does not have."""
    program, *rest = words
    if program == "make":
        targets = re.findall(r"^(\w[\w-]*):(?!=)", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
        assert set(rest) <= set(targets), f"{' '.join(words)}: the Makefile has {', '.join(sorted(set(targets)))}"
    elif program in ("python", ".venv/bin/python"):
        check_script(rest)
    elif program == ".venv/bin/pip":
        assert rest in (["install", "."], ["install", "tensorboard"], ["install", "pre-commit"]) or (
            rest[:2] == ["install", "-r"] and (ROOT / rest[2]).is_file()
        ), f"{' '.join(words)}: no such requirements"
    elif program.startswith("launch/"):
        check_script(["main.py", *[word for word in rest if word.startswith("--")]])
        assert (ROOT / program).is_file(), f"{program}: no such script"
    else:
        assert program in ("echo", "export", ".venv/bin/tfds", ".venv/bin/tensorboard", ".venv/bin/pre-commit"), (
            f"{' '.join(words)}: no command that this test knows"
        )

"""The commands beside training and the other modes: `one_layer NAME ...`. Each is a module with a function `main(argv)`."""

import importlib
from collections.abc import Callable

COMMANDS = (
    "sweep",
    "population",
    "compare",
    "compile",
    "import_fairseq",
    "import_roberta",
    "import_llama",
    "prepare_everyday",
    "prepare_iwslt14",
    "prepare_wmt14",
)


def main_of(name: str) -> Callable[[list[str]], int | None]:
    """The function that runs the command with the words after its name, and returns its exit code; None stands for 0."""
    return importlib.import_module(f"one_layer.commands.{name}").main

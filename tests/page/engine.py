"""Runs the page's engine on tickets: files of bytes in, JSON out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from one_layer.data.text.moses_tables import moses_tables
from one_layer.data.text.preprocess import Preprocessing
from tests.page.node import evaluate

# Tables for texts in German and English, which most tickets of the tests have.
TABLES = moses_tables(Preprocessing(language, tokenize=True) for language in ("de", "en"))

_OPEN = """
    const { readFileSync } = await import("node:fs");
    const { open } = await import(`${page}/engine/index.js`);
    const { openTicket } = await import(`${page}/engine/ticket.js`);
    const { textOf } = await import(`${page}/text/index.js`);
    const read = (path) => new Uint8Array(readFileSync(path));
    const opened = (path) => open(read(path), (assets) => textOf(assets, given.tables));
"""
_WITHOUT_SIMD = "WebAssembly.validate = () => false;"
_OUTCOMES = """
    return given.paths.map((path) => {
        try {
            opened(path);
            return "";
        } catch (error) {
            if (error.constructor !== Error && error.constructor.name !== "Refused") return `CRASH ${error.stack}`;
            return error.message;
        }
    });
"""


def run(script: str, seconds: float = 300, simd: bool = True, **given: Any) -> Any:
    """What `script` returns within `seconds`; it has `given` and `opened(path)`, the model of a ticket.

    Without `simd`, the engine computes as in a browser that lacks WebAssembly with SIMD.
    """
    return evaluate(("" if simd else _WITHOUT_SIMD) + _OPEN + script, {"tables": TABLES, **given}, seconds)


def outcomes(paths: Sequence[Path]) -> list[str]:
    """For each file, the sentence with which the page refuses it; empty where it does not."""
    return list(run(_OUTCOMES, paths=list(map(str, paths))))

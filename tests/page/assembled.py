"""Assembles the page's WebAssembly module: `python -m tests.page.assembled` writes product.js from product.wat."""

import base64
import re

from tests.page.node import PAGE

FILE = PAGE / "engine" / "product.js"
_FILE = """/** The instructions of product.wat, assembled, in base64: `python -m tests.page.assembled` writes this file. */
export const PRODUCT = `
{}`;
"""


def assembled() -> str:
    """The text of product.js. Raises: ModuleNotFoundError without wasmtime, whose assembler it is."""
    from wasmtime import wat2wasm

    text = base64.b64encode(wat2wasm((PAGE / "engine" / "product.wat").read_text("utf-8"))).decode()
    return _FILE.format(re.sub("(.{1,140})", "\\1\n", text))


if __name__ == "__main__":
    FILE.write_text(assembled(), "utf-8")

"""Reads the bytes out of a page as a browser does: its letters in windows-1252, and the script that is in the page."""

import base64
import re

from one_layer.page.bundle import FOLDER
from tests.page.node import evaluate

_READ = """
    const code = given.begin.match(/  const odd = [^]*?\\n  };\\n/)[0];
    const textContent = new TextDecoder("windows-1252").decode(Uint8Array.from(Buffer.from(given.text, "base64")));
    const element = { textContent, dataset: { shift: given.shift }, remove() {} };
    const bytesOf = new Function("document", `${code} return bytesOf;`)({ getElementById: () => element });
    return Buffer.from(bytesOf("ticket")).toString("base64");
"""


def held(page: bytes, name: str) -> bytes:
    """The bytes of an element of data. A browser reads CR and CR LF as LF, and NUL as U+FFFD; such a page would be damaged."""
    (found,) = re.finditer(
        rb'<script type="text/plain" id="%b" data-shift="(\d+)">([^<]*)</script>' % name.encode(), page
    )
    shift, text = found.groups()
    assert not re.search(rb"[\r\0]", text)
    begin = (FOLDER / "view" / "begin.js").read_text("utf-8")
    given = {"begin": begin, "text": base64.b64encode(text).decode(), "shift": shift.decode()}
    return base64.b64decode(evaluate(_READ, given))

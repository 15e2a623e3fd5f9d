"""Bytes inside a page, nearly as small as they are: a page in windows-1252 has a letter for each byte, and only four bytes need two.

Base64 would take a third more, and no text in UTF-8 takes less than an eighth more. A browser reads NUL as U+FFFD and CR as LF, `<` may end
the element, and the fourth is the mark of an escaped letter. All bytes are shifted by the number that makes these four as rare as possible.
`view/begin.js` reads them back.
"""

import re

import numpy as np

ENCODING = "windows-1252"  # of the page: what browsers take latin-1 for as well
MARK = ord("=")
_ESCAPED = (0x00, 0x0D, ord("<"), MARK)
_ADDED = 64  # to an escaped byte, behind the mark
_SPECIAL = re.compile(b"[%b]" % re.escape(bytes(_ESCAPED)))


def element(name: str, content: bytes) -> bytes:
    """The element with this id that holds `content`; a browser does not run it."""
    counts = np.bincount(np.frombuffer(content, np.uint8), minlength=256)
    shift = min(range(256), key=lambda shift: sum(int(counts[(each - shift) % 256]) for each in _ESCAPED))
    shifted = content.translate(bytes((byte + shift) % 256 for byte in range(256)))
    text = _SPECIAL.sub(lambda found: bytes((MARK, (found[0][0] + _ADDED) % 256)), shifted)
    return b'<script type="text/plain" id="%b" data-shift="%d">%b</script>' % (name.encode(), shift, text)

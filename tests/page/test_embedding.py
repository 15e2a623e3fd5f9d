"""Bytes in a page come back as they were, and take at most a fiftieth more."""

import numpy as np
import pytest

from one_layer.page.embedding import element
from tests.page.embedded import held

DICE = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("content", "most"),
    [
        (b"", 0),
        (bytes(range(256)), 4),
        (bytes(DICE.integers(0, 256, 100_000, np.uint8)), 2000),
        (b"\0\r\n<=" * 1000 + b"</script><!--", 0),
        (bytes(5000), 0),
    ],
)
def test_bytes_come_back(content, most):
    page = element("ticket", content)
    assert held(page, "ticket") == content
    assert len(page) - len(element("ticket", b"")) - len(content) <= most + 2

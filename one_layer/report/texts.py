"""The texts of a report. Where it has several in one place, a text is called by the first digits of its fingerprint.

The table of methods has these digits for each run, and points.csv the whole fingerprints.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from one_layer.report.reading import Record

KEYS = ("source", "directory", "tfds_name", "source_language", "target_language", "labels", "lowercase")
TRAINING, VALIDATION = "training text", "validation text"
PARTS = {"train": TRAINING, "valid": VALIDATION}
UNKNOWN = "not recorded"

_FINGERPRINT = re.compile(r"\b([0-9a-f]{6})[0-9a-f]{2,}\b")


def content(record: Record, test: str, values: Mapping[str, Any]) -> str:
    """What a score is of: the fingerprint of the test set, or what is known of it, and how many tokens are masked."""
    known = values.get("fingerprint") or record.result.get("data", {}).get(test) or _described(record, values)
    if record.get("data.mask_share") and record.task == "masked_lm":  # how many tokens are to be found
        known += f", {record.get('data.mask_share'):g} masked"
    return str(known)


def _described(record: Record, values: Mapping[str, Any]) -> str:
    """What is known of a test set without its fingerprint: where it comes from, its languages and its size."""
    known = [record.get(f"data.{name}") for name in KEYS]
    return ", ".join(str(each) for each in [*known, values.get("sentences", values.get("texts"))] if each)


def short(content: str) -> str:
    """The same with the first digits of each fingerprint."""
    return _FINGERPRINT.sub(r"\1", content)


def named(content: str) -> str:
    """The content of a test set in a title: `text 82923e`, or what is known of one without a fingerprint."""
    return f"text {short(content)}" if _FINGERPRINT.match(content) else content


def validated(of: Sequence[str]) -> str:
    """What a validation score is of (`Record.validated`), for people: `validation text 3af121 1add17, stride 128`."""
    _, text, *how = of
    name = short(text.removeprefix("ids ")) if text.startswith("ids ") else UNKNOWN
    return ", ".join([f"{VALIDATION} {name}", *(part.replace("_", " ") for part in how)])

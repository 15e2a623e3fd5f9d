"""The texts of a report: a letter for each that must be told from another, and the same letter wherever the page names it.

Letters stand for contents, which are fingerprints; a table in the details has them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from one_layer.report.reading import Record
from one_layer.report.tables import Table

KEYS = ("source", "directory", "tfds_name", "source_language", "target_language", "labels", "lowercase")
TRAINING, VALIDATION = "training text", "validation text"
PARTS = {"train": TRAINING, "valid": VALIDATION}

_MASKED = re.compile(r"(, [\d.e-]+ masked)$")
_PRINT = re.compile(r"[0-9a-f ]{8,}")


def tests(record: Record) -> Iterator[tuple[str, dict[str, Any]]]:
    """The names of the test sets of a run's scores, each with the values that its result or an evaluation has of it."""
    yield from record.result.get("test", {}).items()
    yield from ((str(values.get("split")), values) for values in record.evaluations)


def content(record: Record, test: str, values: Mapping[str, Any]) -> str:
    """What a score is of: the fingerprint of the test set, or what is known of it, and how many tokens are masked."""
    known = values.get("fingerprint") or record.result.get("data", {}).get(test) or _described(record, values)
    if record.get("data.mask_share") and record.task == "masked_lm":  # how many tokens are to be found
        known += f", {record.get('data.mask_share'):g} masked"
    return str(known)


def _described(record: Record, values: Mapping[str, Any]) -> str:
    """What is known of a test set without its fingerprint: where it comes from, its languages and its size."""
    size = values.get("sentences", values.get("texts"))
    return ", ".join([*(str(record.get(f"data.{name}") or "") for name in KEYS), str(size)])


def letters(records: Iterable[Record]) -> dict[str, str]:
    """A letter for each text of which the report has another one in the same place, by its content: A, B, ..., Z, A2 and so on."""
    found: dict[str, str] = {}
    for contents in _contents(records).values():
        for each in sorted(contents) if len(contents) > 1 else ():
            found.setdefault(
                each, chr(ord("A") + len(found) % 26) + (str(len(found) // 26 + 1) if len(found) > 25 else "")
            )
    return found


def _contents(records: Iterable[Record]) -> dict[str, set[str]]:
    """The contents of each test set, of the validation texts, and of the training texts, where they are known."""
    of_tests: dict[str, set[str]] = {}
    of_parts: dict[str, set[str]] = {VALIDATION: set(), TRAINING: set()}
    for record in records:
        for test, values in tests(record):
            of_tests.setdefault(test, set()).add(_key(test, content(record, test, values)))
        for part, name in PARTS.items():
            of_parts[name] |= {record.texts.get(part, "")} - {""}
    return dict(sorted(of_tests.items())) | of_parts


def _key(test: str, text: str) -> str:
    """What stands for the content of a test set: its fingerprint, or what is known of this test set."""
    plain = _MASKED.sub("", text)
    return plain if _PRINT.fullmatch(plain) else f"{test}: {plain}"


def in_title(test: str, text: str, others: Iterable[str], known: Mapping[str, str]) -> str:
    """The content of a test set among `others` in the words of a title: `text A`, `text B, not recorded`, `0.3 masked`."""
    masked = "".join(_MASKED.findall(text))
    several = len({_key(test, other) for other in others}) > 1
    recorded = _PRINT.fullmatch(_MASKED.sub("", text))
    lettered = f"text {known.get(_key(test, text), '')}{'' if recorded else ', not recorded'}"
    shares = len({"".join(_MASKED.findall(other)) for other in others}) > 1
    return ", ".join(filter(None, [lettered * several, masked.removeprefix(", ") * shares]))


def validated(of: Sequence[str], known: Mapping[str, str]) -> str:
    """What a validation score is of (`Record.validated`), for people: `validation text B, stride 128`."""
    _, text, *how = of
    fingerprint = text.startswith("ids ")
    letter = known.get(text.removeprefix("ids "), "")
    name = " ".join(filter(None, [VALIDATION, letter])) if fingerprint else f"{VALIDATION} not recorded"
    return ", ".join([name, *(part.replace("_", " ") for part in how)])


def numbered(names: Sequence[str]) -> list[str]:
    """The names, of which equal ones get numbers: what tells them apart is in the details alone."""
    times, seen = Counter(names), Counter[str]()
    found = []
    for name in names:
        seen[name] += 1
        found.append(f"{name} (no. {seen[name]})" if times[name] > 1 else name)
    return found


def table(records: Sequence[Record]) -> Table:
    """All texts with their letters and their fingerprints, or what else is known of them."""
    known, places = letters(records), _places(records)
    rows = [
        [name, known.get(each, ""), places.get(each, ""), each]
        for name, contents in _contents(records).items()
        for each in sorted(contents)
    ]
    caption = "A letter stands for one text on the whole page. A text without a fingerprint is described by what is known of it."
    return Table("Texts", caption, ["text", "letter", "corpus of its first run", "fingerprint"], rows)


def _places(records: Iterable[Record]) -> dict[str, str]:
    """Where the first run that has a text read it: the folder or data set, and its languages."""
    found: dict[str, str] = {}
    for record in records:
        sides = "-".join(
            filter(None, [str(record.get(f"data.{side}_language") or "") for side in ("source", "target")])
        )
        folder = record.get("data.tfds_name") or record.get("data.directory") or record.get("data.source")
        place = ", ".join(filter(None, [str(folder or ""), str(record.get("data.labels") or sides)]))
        for test, values in tests(record):
            found.setdefault(_key(test, content(record, test, values)), place)
        for part in PARTS:
            found.setdefault(record.texts.get(part, ""), place)
    return found

"""Files of pairs of lines."""

from collections.abc import Iterable
from pathlib import Path


def write(folder: Path, name: str, german: Iterable[str], english: Iterable[str]) -> None:
    """Writes the two files of a part; each line gets its end."""
    for language, lines in {"de": german, "en": english}.items():
        (folder / f"{name}.{language}").write_text("".join(line + "\n" for line in lines), "utf-8")

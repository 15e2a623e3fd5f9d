"""Writes fairseq's data-bin folders, byte by byte as the format is defined."""

import struct
from pathlib import Path

import numpy as np

from one_layer.data.text.vocabulary import Vocabulary

Sentences = list[np.ndarray]


def write_mapped(prefix: Path, sentences: Sentences, code: int = 8, kind: str = "<u2") -> None:
    """--dataset-impl mmap: sizes in ids, pointers in bytes."""
    lengths = np.array([len(ids) for ids in sentences], "<i4")
    pointers = ((np.cumsum(lengths) - lengths) * np.dtype(kind).itemsize).astype("<i8")
    head = b"MMIDIDX\x00\x00" + struct.pack("<QBQ", 1, code, len(lengths))
    Path(f"{prefix}.idx").write_bytes(head + lengths.tobytes() + pointers.tobytes())
    Path(f"{prefix}.bin").write_bytes(np.concatenate(sentences).astype(kind).tobytes())


def write_folder(folder: Path, parts: dict[str, tuple[list[str], list[str]]]) -> None:
    """German and English lines of every part, and the dictionaries of `train`."""
    folder.mkdir()
    for side, language in enumerate(("de", "en")):
        vocabulary = Vocabulary.build(parts["train"][side])
        vocabulary.save(folder / f"dict.{language}.txt")
        for name, lines in parts.items():
            write_mapped(folder / f"{name}.de-en.{language}", [vocabulary.encode(line) for line in lines[side]])

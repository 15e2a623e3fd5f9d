"""Writes fairseq's data-bin folders, byte by byte as its two formats are defined."""

from __future__ import annotations

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


def write_older(prefix: Path, sentences: Sentences, code: int = 4, kind: str = "<i4") -> None:
    """--dataset-impl lazy or cached: offsets of dimensions and of ids, sizes; ids counted from 1."""
    lengths = np.array([len(ids) for ids in sentences], "<i8")
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype("<i8")
    head = b"TNTIDX\x00\x00" + struct.pack("<5Q", 1, code, np.dtype(kind).itemsize, len(lengths), len(lengths))
    dimensions = np.arange(len(lengths) + 1, dtype="<i8")
    Path(f"{prefix}.idx").write_bytes(head + dimensions.tobytes() + offsets.tobytes() + lengths.tobytes())
    Path(f"{prefix}.bin").write_bytes((np.concatenate(sentences) + 1).astype(kind).tobytes())


WRITERS = {"mapped": write_mapped, "older": write_older}


def write_folder(folder: Path, parts: dict[str, tuple[list[str], list[str]]], form: str = "mapped") -> None:
    """German and English lines of every part, and the dictionaries of `train`."""
    folder.mkdir()
    for side, language in enumerate(("de", "en")):
        vocabulary = Vocabulary.build(parts["train"][side])
        vocabulary.save(folder / f"dict.{language}.txt")
        for name, lines in parts.items():
            WRITERS[form](folder / f"{name}.de-en.{language}", [vocabulary.encode(line) for line in lines[side]])

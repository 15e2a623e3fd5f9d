"""Reads fairseq's checkpoints, which are PyTorch files, without running any code that they contain."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import numpy as np

from one_layer.data.text.vocabulary import Vocabulary
from one_layer.system.errors import UserError


def read_checkpoint(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Returns the tensors of `model` and the training options of a fairseq checkpoint.

    Raises: UserError for a file that cannot be read, or cannot be read without running its code, and if torch is not installed.
    """
    try:
        import torch
    except ImportError:
        raise UserError(
            "fairseq's files need torch, which is not installed; run .venv/bin/pip install -r requirements-torch.txt"
        ) from None
    try:
        with torch.serialization.safe_globals([argparse.Namespace]):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from None
    except Exception as error:  # torch and pickle raise many types of exception for a damaged file or another format
        raise UserError(_why(path, str(error))) from None
    model = content.get("model") if isinstance(content, dict) else None
    if not isinstance(model, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in model.values()):
        raise UserError(
            f"{path} has no tensors under the name 'model'; give a checkpoint that fairseq's training wrote"
        )
    state = {name: (t.float() if t.is_floating_point() else t).detach().numpy() for name, t in model.items()}
    return state, _options(content)


def check_rows(vocabulary: Vocabulary, path: str | Path, rows: int, table: str) -> None:
    """Checks that the dictionary in `path` has as many types as the table has rows. Raises: UserError if not."""
    if len(vocabulary) != rows:
        raise UserError(
            f"{path} has {len(vocabulary):,} types (4 special types and one for each line), but {table} has {rows:,} rows; "
            "give the dict.txt that the model was trained with"
        )


def _options(content: dict[str, Any]) -> dict[str, Any]:
    """Returns the training options. Older files have one namespace `args`; newer files have `cfg` with `task` and `model`."""
    sections = content.get("cfg")
    newer = [sections.get(name) for name in ("task", "model")] if isinstance(sections, dict) else []
    found: dict[str, Any] = {}
    for section in (content.get("args"), *newer):
        if isinstance(section, dict | argparse.Namespace):
            found.update(section if isinstance(section, dict) else vars(section))
    return found


def _why(path: Path, problem: str) -> str:
    needed = re.search(r"GLOBAL (\S+)", problem)
    if needed is None:
        sentence = problem.partition(".")[0][:200]
        detail = f" ({sentence!r})" if " " in sentence else ""  # some errors are a bare number
        return f"{path} is not a whole file of torch.save{detail}; create it or copy it again"
    return (
        f"{path} holds an object of type {needed[1]}, and loading such objects can run any program; if you trust the file, "
        "save only the needed parts: c = torch.load(FILE, weights_only=False); "
        "torch.save({'model': c['model'], 'args': c['args'] or c['cfg'].model}, NEW)"
    )

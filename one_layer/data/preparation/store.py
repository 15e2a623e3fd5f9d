"""The training text as ids, kept in a folder that is named by the content of everything it was made from."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from one_layer.data.text.assets import TextAssets, load_text_assets, save_text_assets
from one_layer.data.tokens import TokenStore, fitting_type
from one_layer.errors import UserError

_FORMAT = 1  # goes up where the same text would give other ids, or where the files change


@dataclass(frozen=True, eq=False)
class Prepared:
    """Training pairs as ids, the assets that made them, and lines for people."""

    assets: TextAssets
    source: TokenStore
    target: TokenStore
    report: list[str]


def content_key(options: dict[str, Any], files: Iterable[Path]) -> str:
    """BLAKE2b (128 bits, hexadecimal) of the options and of every file's bytes: time stamps and names do not matter."""
    digests = []
    for path in files:
        try:
            with path.open("rb") as file:
                digests.append(hashlib.file_digest(file, hashlib.blake2b).hexdigest())
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error.strerror or error}") from None
    whole = json.dumps([_FORMAT, options, digests], sort_keys=True)
    return hashlib.blake2b(whole.encode(), digest_size=16).hexdigest()


def open_prepared(folder: Path) -> Prepared:
    """Maps what `make_prepared` left in `folder`. Raises: UserError naming the file that is missing or cut short."""
    source, target = (TokenStore.open(folder / side) for side in ("source", "target"))
    assets = load_text_assets(folder)
    path = folder / "manifest.json"
    try:
        manifest = json.loads(path.read_text("utf-8"))
        fingerprints, report = manifest["vocabularies"], manifest["report"]
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{path} cannot be read ({error}); delete the folder, and it is made again") from None
    if fingerprints != _fingerprints(assets):
        raise UserError(f"{folder} holds other vocabularies than those it was made with; delete the folder")
    return Prepared(assets, source, target, report)


def make_prepared(folder: Path, make: Callable[[], Prepared]) -> Prepared:
    """Writes what `make` gives into a new `folder`, whole or not at all, and maps it from there.

    Of processes that make the same at the same time, the first to end decides. Raises: UserError where nothing can be written.
    """
    is_new = not folder.parent.exists()
    _temporary(folder).rmdir()  # that nothing can be written is better said before hours of work
    try:
        prepared = make()
    except BaseException:
        if is_new:
            with suppress(OSError):  # another process may have come to use it
                folder.parent.rmdir()
        raise
    temporary = _temporary(folder)
    try:
        os.chmod(temporary, folder.parent.stat().st_mode)  # mkdtemp makes it for its owner alone
        sides = {"source": prepared.source, "target": prepared.target}
        for (name, store), vocabulary in zip(sides.items(), prepared.assets.vocabularies, strict=True):
            store.save(temporary / name, fitting_type(len(vocabulary)))
        save_text_assets(prepared.assets, temporary)
        manifest = {"vocabularies": _fingerprints(prepared.assets), "report": prepared.report}
        (temporary / "manifest.json").write_text(json.dumps(manifest, ensure_ascii=False, indent=1) + "\n", "utf-8")
        os.rename(temporary, folder)
    except OSError as error:
        shutil.rmtree(temporary)
        if not folder.is_dir():
            raise UserError(f"data.store: {folder} cannot be written ({error.strerror}); make room there") from None
    except BaseException:
        shutil.rmtree(temporary)
        raise
    return open_prepared(folder)


def _temporary(folder: Path) -> Path:
    """A new folder beside `folder`, in a folder that is made if need be."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    except OSError as error:
        raise UserError(
            f"data.store: {folder.parent} cannot be written to ({error.strerror}); give another folder"
        ) from None


def _fingerprints(assets: TextAssets) -> list[str]:
    return [vocabulary.fingerprint for vocabulary in assets.vocabularies]

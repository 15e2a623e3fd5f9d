"""Stores the training text as ids in a folder. The folder's name is a hash of everything that the ids were made from."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from one_layer.data.text.assets import TextAssets, Vocabularies, load_text_assets, save_text_assets
from one_layer.data.tokens import TokenStore, fitting_type
from one_layer.system.errors import UserError
from one_layer.system.files import json_object, lock, remove_leftovers, sync

_FORMAT = 1  # increase it when the same text gives other ids, or when the files change


@dataclass(frozen=True, eq=False)
class Prepared:
    """Training pairs as ids, the text assets that produced them, and a report for people (one string per line)."""

    assets: TextAssets
    source: TokenStore
    target: TokenStore
    report: list[str]


def stored(
    store: str | Path,
    options: dict[str, Any],
    files: Sequence[Path],
    given: tuple[Vocabularies, str | None] | None,
    make: Callable[[], Prepared],
) -> Prepared:
    """What `make` gives, from its folder in `store` if it has been made before.

    `options` and the bytes of the `files` decide the folder's name. `given`: the vocabularies and codes of a run, if `make` uses these
    instead of its own. A resumed run finds the store that it made, unless the text has changed since; text in the vocabulary of another
    run has a folder of its own. Raises: UserError for a damaged folder, and for one that cannot be written.
    """
    folder = Path(store) / content_key(options, files)
    if given is not None and not _was_made_with(folder, *given):
        vocabularies, codes = given
        own = {"given": [*(vocabulary.fingerprint for vocabulary in vocabularies), codes]}
        folder = Path(store) / content_key(options | own, files)
    return open_prepared(folder) if folder.is_dir() else make_prepared(folder, make)


def _was_made_with(folder: Path, vocabularies: Vocabularies, codes: str | None) -> bool:
    if not folder.is_dir():
        return False
    assets = load_text_assets(folder)
    return (assets.vocabularies, assets.codes) == (vocabularies, codes)


def content_key(options: dict[str, Any], files: Iterable[Path]) -> str:
    """Returns BLAKE2b (128 bits, hexadecimal) of the options and of every file's bytes; ignores file names and time stamps."""
    digests = [_digest(path) for path in files]
    whole = json.dumps([_FORMAT, options, digests], sort_keys=True)
    return hashlib.blake2b(whole.encode(), digest_size=16).hexdigest()


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, hashlib.blake2b).hexdigest()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from None


def open_prepared(folder: Path) -> Prepared:
    """Memory-maps the files that `make_prepared` wrote into `folder`. Raises: UserError that names a missing or damaged file."""
    source, target = (TokenStore.open(folder / side) for side in ("source", "target"))
    assets = load_text_assets(folder)
    path = folder / "manifest.json"
    try:
        manifest = json_object(path)
        fingerprints, report, files = manifest["vocabularies"], manifest["report"], manifest["files"]
    except (OSError, ValueError, KeyError) as error:
        raise UserError(f"{path} cannot be read ({error}); delete the folder, then run again to recreate it") from None
    if fingerprints != _fingerprints(assets):
        raise UserError(
            f"{folder} does not hold the vocabularies that it was made with; delete the folder, then run again to recreate it"
        )
    for name, digest in files.items():
        if _digest(folder / name) != digest:
            raise UserError(f"{folder / name} is damaged; delete the folder, then run again to recreate it")
    return Prepared(assets, source, target, report)


def make_prepared(folder: Path, make: Callable[[], Prepared]) -> Prepared:
    """Writes the result of `make` into a new `folder`, completely or not at all, and memory-maps it from there.

    If several processes make the same folder at the same time, the first to finish wins. Raises: UserError if writing fails.
    """
    is_new = not folder.parent.exists()
    with suppress(FileNotFoundError):  # another process took it for a leftover
        _temporary(folder).rmdir()  # a folder that cannot be written to is reported before hours of work
    try:
        prepared = make()
    except BaseException:
        if is_new:
            with suppress(OSError):  # another process may have started to use it
                folder.parent.rmdir()
        raise
    remove_leftovers(folder.parent, re.compile(rf"\.{re.escape(folder.name)}\.[a-z0-9_]{{8}}"))
    temporary, handle = _locked(folder)
    try:
        os.chmod(temporary, folder.parent.stat().st_mode)  # mkdtemp gives access only to the owner
        sides = {"source": prepared.source, "target": prepared.target}
        for (name, store), vocabulary in zip(sides.items(), prepared.assets.vocabularies, strict=True):
            store.save(temporary / name, fitting_type(len(vocabulary)))
        save_text_assets(prepared.assets, temporary)
        digests = {path.name: _digest(path) for path in temporary.iterdir()}
        manifest = {"vocabularies": _fingerprints(prepared.assets), "report": prepared.report, "files": digests}
        (temporary / "manifest.json").write_text(json.dumps(manifest, ensure_ascii=False, indent=1) + "\n", "utf-8")
        for path in (*temporary.iterdir(), temporary):
            sync(path)
        os.rename(temporary, folder)
    except OSError as error:
        shutil.rmtree(temporary)
        if not folder.is_dir():
            raise UserError(
                f"data.store: {folder} cannot be written ({error.strerror}); free some space there, or give another folder"
            ) from None
    except BaseException:
        shutil.rmtree(temporary)
        raise
    finally:
        os.close(handle)
    sync(folder.parent)
    return open_prepared(folder)


def _locked(folder: Path) -> tuple[Path, int]:
    """A temporary folder as `_temporary` makes it, and a handle that holds its lock, so that nobody takes it for a leftover."""
    while True:
        temporary = _temporary(folder)
        with suppress(FileNotFoundError):  # taken for one before it had a lock
            handle = os.open(temporary, os.O_RDONLY)
            lock(handle)  # False on a file system without locks, where nobody takes it either
            if temporary.exists():
                return temporary, handle
            os.close(handle)


def _temporary(folder: Path) -> Path:
    """Creates a temporary folder next to `folder`, and the parent folder if it does not exist."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    except OSError as error:
        raise UserError(
            f"data.store: {folder.parent} cannot be written to ({error.strerror}); give another folder"
        ) from None


def _fingerprints(assets: TextAssets) -> list[str]:
    return [vocabulary.fingerprint for vocabulary in assets.vocabularies]

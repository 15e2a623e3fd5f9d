"""Stores the training text as ids in a folder. The folder's name is a hash of everything that the ids were made from."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from one_layer.data.text.assets import TextAssets, Vocabularies, load_text_assets, save_text_assets
from one_layer.data.tokens import TokenStore, fitting_type
from one_layer.system.errors import UserError
from one_layer.system.files import json_object, new_folder

_FORMAT = 2  # increase it when the same text gives other ids, or when the files change


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
    made_with = load_text_assets(folder) if given is not None and folder.is_dir() else None
    if given is not None and (made_with is None or (made_with.vocabularies, made_with.codes) != given):
        vocabularies, codes = given
        own = {"given": [*(vocabulary.fingerprint for vocabulary in vocabularies), codes]}
        folder = Path(store) / content_key(options | own, files)
    return open_prepared(folder) if folder.is_dir() else make_prepared(folder, make)


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
    path = folder / "manifest.json"
    try:
        manifest = json_object(path)
        report, files = manifest["report"], manifest["files"]
        damaged = [
            name for name, digest in files.items() if not (folder / name).is_file() or _digest(folder / name) != digest
        ]
        if not damaged:
            source, target = (TokenStore.open(folder / side) for side in ("source", "target"))
            return Prepared(load_text_assets(folder), source, target, report)
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise UserError(
            f"{path} or a file that it names cannot be read ({error}); delete the folder, then run again to recreate it"
        ) from None
    raise UserError(f"{folder / damaged[0]} is missing or damaged; delete the folder, then run again to recreate it")


def make_prepared(folder: Path, make: Callable[[], Prepared]) -> Prepared:
    """Writes the result of `make` into a new `folder`, completely or not at all, and memory-maps it from there.

    If several processes make the same folder at the same time, the first to finish wins. Raises: UserError if writing fails; a folder that
    cannot be written to is reported before hours of work.
    """
    try:
        with new_folder(folder, "data.store") as temporary:
            try:
                prepared = make()
            except OSError as error:  # which would be taken for one of writing the folder
                raise UserError(f"the training text cannot be read: {error}") from None
            _write(prepared, temporary)
    except UserError:
        if not folder.is_dir():
            raise
    return open_prepared(folder)


def _write(prepared: Prepared, folder: Path) -> None:
    sides = {"source": prepared.source, "target": prepared.target}
    for (name, store), vocabulary in zip(sides.items(), prepared.assets.vocabularies, strict=True):
        store.save(folder / name, fitting_type(len(vocabulary)))
    save_text_assets(prepared.assets, folder)
    digests = {path.name: _digest(path) for path in folder.iterdir()}
    manifest = {"report": prepared.report, "files": digests}
    (folder / "manifest.json").write_text(json.dumps(manifest, ensure_ascii=False, indent=1) + "\n", "utf-8")

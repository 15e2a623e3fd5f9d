"""Downloads published archives, checks that they are complete, and extracts files from them."""

import gzip
import hashlib
import http.client
import logging
import os
import shutil
import tarfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from one_layer.system.errors import UserError
from one_layer.system.files import continued

log = logging.getLogger(__name__)
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Archive:
    """A published file: its name, the URLs that offer it, and its size and SHA-256 if they are known."""

    name: str
    urls: tuple[str, ...]
    size: int = 0  # bytes
    sha256: str = ""


def fetch(archive: Archive, folder: str | Path, download: bool = False) -> Path:
    """Returns the path of the complete archive in `folder`; downloads it if it is missing and `download` is set.

    A download first writes to a file whose name ends in .part, and a later call continues that file. One process downloads, others wait.
    Raises: UserError if there is no file, if the download fails, or if the size or the checksum differs.
    """
    path = Path(folder) / archive.name
    if path.exists():
        check(archive, path)
        return path
    if not download:
        raise UserError(f"{path} does not exist; save {archive.urls[0]} there, or add --download")
    with continued(path, "an archive") as part:
        if part is not None:
            _download(archive, part)
            check(archive, Path(part.name))
    return path


def check(archive: Archive, path: Path) -> None:
    """Checks the size and the checksum of the file, where they are known. Raises: UserError if one differs."""
    size = path.stat().st_size
    if archive.size and size != archive.size:
        raise UserError(
            f"{path} has {size:,} bytes, but the published file has {archive.size:,}; delete it and download it again"
        )
    if archive.sha256 and (found := sha256(path)) != archive.sha256:
        raise UserError(
            f"{path} has the SHA-256 {found}, but the published file has {archive.sha256}; delete it and download it again"
        )


def sha256(path: Path) -> str:
    """Returns the hexadecimal SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def extract(archive: Path, names: Sequence[str], folder: Path) -> list[Path]:
    """Extracts the members of a .tgz whose last path component is in `names`, and writes each under that name into `folder`.

    The files get their names only after the whole archive has been read without an error; otherwise no file remains.
    Raises: UserError for an archive that is truncated or damaged, or that lacks one of the members.
    """
    parts = {name: folder / f"{name}.part" for name in names}
    folder.mkdir(parents=True, exist_ok=True)
    try:
        found = _copy_members(archive, parts)
        if missing := sorted(parts.keys() - found):
            raise UserError(f"{archive} holds no file {missing[0]}; give the published archive")
        for name, part in parts.items():
            os.replace(part, folder / name)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{archive} is not a whole .tgz archive ({error}); delete it and download it again") from None
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()  # succeeds only if the folder is empty
    return [folder / name for name in names]


def _copy_members(archive: Path, wanted: dict[str, Path]) -> set[str]:
    """Writes the first member of each wanted name to its path, and reads to the end, where gzip checks its checksum."""
    found = set()
    with gzip.open(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as members:
        for member in members:
            name = member.name.rsplit("/", 1)[-1]
            if name in wanted and name not in found and (content := members.extractfile(member)):
                with wanted[name].open("wb") as file:
                    shutil.copyfileobj(content, file, _BLOCK)
                found.add(name)
        while stream.read(_BLOCK):
            pass
    return found


def _download(archive: Archive, part: BinaryIO) -> None:
    problems = []
    for url in archive.urls:
        try:
            _copy_from(url, part)
            return
        except (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError, EOFError) as error:
            problems.append(f"{url} ({getattr(error, 'reason', None) or error})")
    raise UserError(
        f"{archive.name} cannot be downloaded from {', '.join(problems)}; try again, or save it to {Path(part.name).parent} yourself"
    )


def _copy_from(url: str, part: BinaryIO) -> None:
    """Downloads `url` to `part`, and continues an earlier attempt if the server supports that."""
    done = part.seek(0, os.SEEK_END)
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        response = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # the server has nothing left to send: the file may be complete, and the caller checks it
            return
        raise
    with response:
        log.info("%s -> %s", url, part.name)
        length = response.headers.get("Content-Length")
        part.truncate(done if response.status == 206 else 0)
        start = part.seek(0, os.SEEK_END)
        shutil.copyfileobj(response, part, _BLOCK)
        part.flush()
        if length is not None and part.tell() - start != int(length):
            raise EOFError(f"the connection ended after {part.tell():,} bytes")

"""A collection: what many runs have left (configs, results, scores, metrics, hypotheses) in one file, to keep or to send to a colleague.

The file is zstd-compressed JSON lines. The first line says what it is; each of the others has the name of a file and its text, unchanged:
`zstdcat FILE | head` shows it. Checkpoints and tickets are not in it. Hypotheses are there as plain text, with the vocabularies and the
preprocessing, so that others can score them with another measure, and two runs can be compared line by line.
"""

import glob
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import zstandard

from one_layer.data.text.assets import TEXT_FILES
from one_layer.runs.paths import SWEEP_FILE, RunPaths
from one_layer.system.errors import UserError
from one_layer.system.files import replacing

SUFFIX = ".jsonl.zst"

_TOKENIZED = ".tokenized"  # the same lines as tokens
_MEND = "is no whole collection of runs ({}); give a file that --mode=collect wrote"
_HEAD = {"format": "one_layer runs", "version": 1}
_MOST = 2**32  # characters that a reader takes
_LONGEST = 2**28  # characters of one line: a small file may unpack to a line that no memory holds


class Place(NamedTuple):
    """A pattern of folders. Those of a collection lie below `root`, and have names for people that begin with `shown`."""

    pattern: str
    root: Path = Path()
    shown: Path = Path()

    def named(self, folder: Path) -> Path:
        """The name of one of these folders for people."""
        return folder if self.root == Path() else self.shown / folder.relative_to(self.root)

    def address(self, folder: Path) -> str:
        """What `--runs` takes for one of these folders: its name, or FILE/RUN for a run of a collection."""
        return str(folder) if self.root == Path() else f"{self.shown}{SUFFIX}/{folder.relative_to(self.root)}"


@contextmanager
def opened(pattern: str) -> Iterator[list[Place]]:
    """The places where the runs of `pattern` lie: the folders themselves, and collections (FILE, or FILE/PATTERN) while they are unpacked.

    Raises: UserError for a collection that is damaged, or is none. One of what is done with the places names the collection.
    """
    file, suffix, inner = f"{pattern}/".partition(f"{SUFFIX}/")
    inner = inner.strip("/")
    one = Path(f"{file}{SUFFIX}")  # its name may have brackets
    files = [str(one)] if suffix and one.is_file() else sorted(glob.glob(str(one), recursive=True)) if suffix else []
    if not files:
        yield [Place(pattern)]
        return
    with tempfile.TemporaryDirectory() as folder:
        places, top = [], Path(folder).resolve()
        for number, each in enumerate(files):
            root = top / str(number)
            _unpack(Path(each), root)
            places.append(Place(f"{root}/{inner or '**'}", root, Path(each.removesuffix(SUFFIX))))
        try:
            yield places
        except UserError as error:
            said = re.sub(rf"{re.escape(str(top))}/(\d+)", lambda found: files[int(found[1])], str(error))
            raise UserError(said) from None


def collect(pattern: str, output: Path) -> int:
    """Writes the files of all runs that `pattern` matches, and of their sweeps, into the collection `output`.

    Runs are named by their folders below the deepest folder that has all of them. Returns the number of runs. Raises: UserError for a name
    without `.jsonl.zst`, for no run, and for a file or a name that is no text in UTF-8.
    """
    if not output.name.endswith(SUFFIX):
        raise UserError(f"--output={output} is the name of a collection, which ends in {SUFFIX}; give such a name")
    found: dict[str, Path] = {}
    with opened(pattern) as places:
        # Whole paths: `.` and `..` are no names of folders.
        folders = {
            path: Path(os.path.abspath(place.named(path))) for place in places for path in _holding(place.pattern)
        }
        runs = [path for path in folders if not (path / SWEEP_FILE).is_file()]
        if not runs:
            raise UserError(
                f"--runs={pattern} matches no folder of a run; give a pattern, for instance --runs='runs/figure2/**'"
            )
        top = os.path.commonpath([name.parent for name in folders.values()])
        for path, name in folders.items():
            found |= {(name.relative_to(top) / file.name).as_posix(): file for file in _files(path)}
        lines = [line for key in sorted(found) if (line := _line(key, found[key]))]
        packing = zstandard.ZstdCompressor(level=19, write_checksum=True)
        with replacing(output) as out, packing.stream_writer(out, closefd=False) as writer:
            for line in (f"{json.dumps({**_HEAD, 'files': len(lines)})}\n".encode(), *lines):
                writer.write(line)
    return len(runs)


def _line(key: str, file: Path) -> bytes:
    """The line of a file; empty if the file is gone, as the result of a run that becomes longer.

    Raises: UserError for a file or a name that is no text in UTF-8.
    """
    try:
        values = {"file": key, "text": file.read_bytes().decode()}
        return f"{json.dumps(values, ensure_ascii=False)}\n".encode()
    except FileNotFoundError:
        return b""
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise UserError(
            f"{str(file)!a} cannot be collected, as it is no text in UTF-8 ({error.reason}); restore it, or leave its run out of --runs"
        ) from None


def _holding(pattern: str) -> list[Path]:
    """The folders of runs and of sweeps that `pattern` matches; a folder that it names stands for those in it."""
    there = [pattern] if Path(pattern).is_dir() else glob.glob(pattern, recursive=True)
    every = {path for name in there for path in _below(name)}
    return sorted(path for path in every if RunPaths(path).is_of_run or (path / SWEEP_FILE).is_file())


def _below(top: str) -> Iterator[Path]:
    """A folder and all in it. Links are followed, as for a report, but none into a folder that was there before: links may form a loop."""
    seen: set[str] = set()
    for path, names, _ in os.walk(top, followlinks=True):
        if (real := os.path.realpath(path)) in seen:
            names.clear()
            continue
        seen.add(real)
        names.sort(key=lambda name: (os.path.islink(os.path.join(path, name)), name))
        yield Path(path)


def _files(folder: Path) -> list[Path]:
    """The files of a run, or of a sweep, that are text about it."""
    paths = RunPaths(folder)
    named = [paths.config_file, paths.result_file, paths.metrics_file, paths.identity_file, folder / SWEEP_FILE]
    found = [*(path for path in named if path.is_file()), *sorted(folder.glob("evaluation-*.json"))]
    found += [path for path in sorted(folder.glob("hypotheses-*.txt")) if not path.stem.endswith(_TOKENIZED)]
    return [*found, *(path for name in TEXT_FILES if (path := folder / name).is_file())]


def _unpack(file: Path, root: Path) -> None:
    """Writes the files of a collection below `root`. Raises: UserError for a file that is damaged, or no collection."""
    number, size, wanted = 0, 0, 0
    try:
        with file.open("rb") as packed, zstandard.ZstdDecompressor().stream_reader(packed) as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")
            for number, line in enumerate(iter(lambda: text.readline(_LONGEST + 1), ""), 1):
                size += len(line)
                if len(line) > _LONGEST or size > _MOST:
                    raise ValueError("it has more text than runs have")
                values = _object(line, number)
                if number == 1:
                    wanted = values.pop("files")
                    if values != _HEAD:
                        raise ValueError(f"its first line does not say {json.dumps(_HEAD)}")
                    continue
                target = root / _safe(values["file"])
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(values["text"], "utf-8", newline="\n")
        if not number:
            raise ValueError("it is empty, or cut off in its first line")
        if number != wanted + 1:
            raise ValueError(f"{number - 1:,} of its {wanted:,} files are there")
    except OSError as error:
        raise UserError(f"{file} {_MEND.format(f'it cannot be unpacked: {error.strerror}')}") from None
    except (EOFError, UnicodeError, zstandard.ZstdError):
        raise UserError(f"{file} {_MEND.format('it is damaged, or is no text that zstd compressed')}") from None
    except ValueError as error:
        raise UserError(f"{file} {_MEND.format(error)}") from None


def _object(line: str, number: int) -> dict[str, Any]:
    """The object of a line. Raises: ValueError, in words for people, for a line that has none of a collection."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        values = None
    wanted = {"files": int} if number == 1 else {"file": str, "text": str}
    if not isinstance(values, dict) or not all(isinstance(values.get(key), kind) for key, kind in wanted.items()):
        raise ValueError(f"line {number} is cut off or damaged, or is no line of a collection")
    return values


def _safe(name: str) -> PurePosixPath:
    """The name of a file in a collection. Raises: ValueError for one that would be written elsewhere, or is no file of a run."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name or path.suffix not in (".json", ".jsonl", ".txt"):
        raise ValueError(f"{name!r:.100} is no name of a run's file")
    return path

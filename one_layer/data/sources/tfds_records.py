"""Reads data sets that TensorFlow Datasets (TFDS) prepared as ArrayRecord, without TensorFlow."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from one_layer.data.preparation.parallel import chunks
from one_layer.system.errors import UserError

_AT_ONCE = 4096  # records of one request


class TfdsRecords:
    """The data set `name` ("wmt14_translate/de-en") in `directory`, by default TFDS's own folder.

    Raises: UserError if the data set is missing or not stored as ArrayRecord; the message gives the command that prepares it.
    """

    def __init__(self, name: str, directory: str = "") -> None:
        import tensorflow_datasets as tfds
        from tensorflow_datasets.core.read_only_builder import builder_from_files

        self._name, self._where = name, directory or "~/tensorflow_datasets"
        try:  # read only its files, because a data set's own code may need TensorFlow
            self._builder: Any = builder_from_files(name, data_dir=directory or None)
        except ValueError:  # TFDS's DatasetNotFoundError is a ValueError; an impossible name raises a ValueError too
            raise UserError(f"{name} is not prepared in {self._where}; {self._how()}") from None
        kept = self._builder.info.file_format
        if kept is not tfds.core.FileFormat.ARRAY_RECORD:
            raise UserError(f"{self._builder.data_dir} is stored as {kept and kept.value}; {self._how()}")

    @property
    def fields(self) -> list[str]:
        """The names of the fields of a record."""
        return list(self._builder.info.features)

    def stream(self, split: str, fields: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
        """Yields the values of `fields` for each record, in the order of the files: text as str, labels and numbers as int.

        `split` may be a part of a split in TFDS's notation (`train[:90%]`).
        Raises: UserError for an unknown split or field, a damaged file, and text that is not UTF-8.
        """
        lacking = [field for field in fields if field not in self.fields]
        if lacking:
            raise UserError(f"{self._name} has no field {lacking[0]!r}; it has {', '.join(self.fields)}")
        self.files(split)
        number = 0
        try:
            records = self._builder.as_data_source(split=split)
            shown = tqdm(range(len(records)), f"reading {self._name}", unit=" records", disable=None, leave=False)
            for places in chunks(shown, _AT_ONCE):
                for record in records.__getitems__(places):
                    number += 1
                    yield tuple(_plain(record[field]) for field in fields)
        except UnicodeDecodeError as error:
            raise UserError(
                f"{self._name}, split {split}, record {number:,}: the text is not UTF-8 ({error}); prepare it again"
            ) from None
        except (OSError, RuntimeError, ValueError, IndexError) as error:
            what = str(error).split("\n")[0]
            raise UserError(
                f"{self._builder.data_dir}, split {split}, cannot be read ({what}); prepare it again"
            ) from None

    def files(self, split: str) -> list[Path]:
        """Returns the files of `split`. Raises: UserError for an unknown split or a missing file."""
        try:
            files = [Path(path) for path in self._builder.info.splits[split].filepaths]
        except (KeyError, ValueError):
            known = ", ".join(self._builder.info.splits)
            raise UserError(f"{self._name} has no split {split!r}; it has {known}") from None
        for path in files:
            if not path.is_file():
                raise UserError(f"{path} does not exist; {self._how()}")
        return files

    def labels(self, field: str) -> tuple[str, ...]:
        """Returns the names of a field's classes, in the order of their numbers; none for a field that is no label."""
        return tuple(getattr(self._builder.info.features[field], "names", None) or ())

    def _how(self) -> str:
        return (
            f"prepare it once: pip install -r requirements-tfds.txt, then tfds build {self._name} --file_format=array_record "
            f"--data_dir={self._where}"
        )


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8")
    return int(value) if isinstance(value, (int, np.integer)) else value

"""Small data sets written by TFDS itself, as ArrayRecord; needs no TensorFlow."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tensorflow_datasets as tfds


def write(folder: Path, name: str, features: Any, splits: dict[str, list[dict[str, Any]]]) -> None:
    """The data set `name`, or one of its configs, `name/config`, under `folder`: a builder over these examples, run by TFDS."""
    name, _, config = name.partition("/")

    def info(self: Any) -> Any:
        return tfds.core.DatasetInfo(builder=self, features=features)

    def generators(self: Any, _: Any) -> dict[str, Any]:
        return {split: self._generate_examples(examples) for split, examples in splits.items()}

    def generate(self: Any, examples: list[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
        yield from enumerate(examples)

    builder = type(
        name.title().replace("_", ""),
        (tfds.core.GeneratorBasedBuilder,),
        {
            "__module__": __name__,
            "name": name,
            "code_path": None,  # TFDS looks beside it for checksums of downloads, with a package that it does not install
            "VERSION": tfds.core.Version("1.0.0"),
            "BUILDER_CONFIGS": [tfds.core.BuilderConfig(name=config)] if config else [],
            "_info": info,
            "_split_generators": generators,
            "_generate_examples": generate,
        },
        skip_registration=True,
    )
    builder(data_dir=str(folder), file_format="array_record").download_and_prepare()


def write_translation(folder: Path, name: str, parts: dict[str, tuple[list[str], list[str]]]) -> None:
    """German and English."""
    features = tfds.features.Translation(languages=("de", "en"))
    splits = {
        split: [{"de": german, "en": english} for german, english in zip(*sides, strict=True)]
        for split, sides in parts.items()
    }
    write(folder, name, features, splits)

"""What a run needs to read and write text, and keeps in its folder: vocabularies, preprocessing and BPE codes."""

import json
from dataclasses import dataclass
from pathlib import Path

from one_layer.data.text.preprocess import METASPACE, Preprocessing
from one_layer.data.text.vocabulary import BYTES, Vocabulary
from one_layer.system.errors import UserError
from one_layer.system.files import json_object, write_atomically

TEXT_FILES = ("vocabulary.source.txt", "vocabulary.target.txt", "preprocessing.json")
Vocabularies = tuple[Vocabulary, Vocabulary]  # (source, target)


@dataclass(frozen=True)
class TextAssets:
    """The vocabularies and the preprocessing of source and target."""

    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    source_preprocessing: Preprocessing
    target_preprocessing: Preprocessing

    def __post_init__(self) -> None:
        for vocabulary, steps in zip(self.vocabularies, self.steps, strict=True):
            if steps.bpe_kind == METASPACE and not vocabulary.has_bytes:
                raise UserError(
                    f"a vocabulary of metaspace pieces lacks a token of the bytes {BYTES[0]} to {BYTES[-1]}; give one that has them all"
                )

    @property
    def steps(self) -> tuple[Preprocessing, Preprocessing]:
        """(source, target)."""
        return self.source_preprocessing, self.target_preprocessing

    @property
    def vocabularies(self) -> Vocabularies:
        """(source, target)."""
        return self.source_vocabulary, self.target_vocabulary

    @property
    def languages(self) -> tuple[str, str]:
        """(source, target)."""
        return self.source_preprocessing.language, self.target_preprocessing.language

    @property
    def codes(self) -> str | None:
        """The BPE codes, which both languages share."""
        return self.source_preprocessing.codes


def check_equal(vocabularies: Vocabularies) -> None:
    """Raises: UserError for two vocabularies that differ, where both sides share one table."""
    for place, (ours, theirs) in enumerate(zip(*(each.tokens for each in vocabularies), strict=True)):
        if ours != theirs:
            raise UserError(
                f"model.shared_embedding is one table for both languages, but the id {place} is {ours!r:.60} in the vocabulary of the "
                f"source and {theirs!r:.60} in that of the target: give one vocabulary for both (with fairseq, preprocess with "
                "--joined-dictionary), or turn model.shared_embedding off"
            )


def save_text_assets(assets: TextAssets, folder: str | Path) -> None:
    """Writes vocabulary.source.txt, vocabulary.target.txt and preprocessing.json (codes inside) into `folder`."""
    folder = Path(folder)
    assets.source_vocabulary.save(folder / "vocabulary.source.txt")
    assets.target_vocabulary.save(folder / "vocabulary.target.txt")
    sides = {"source": assets.source_preprocessing.to_dict(), "target": assets.target_preprocessing.to_dict()}
    write_atomically(folder / "preprocessing.json", json.dumps(sides, ensure_ascii=False, indent=1) + "\n")


def load_text_assets(folder: str | Path) -> TextAssets:
    """Reads the files of `save_text_assets`; equal vocabularies become one object.

    Raises: UserError for a missing or damaged file.
    """
    folder = Path(folder)
    for name in TEXT_FILES:
        if not (folder / name).exists():
            raise UserError(f"the folder {folder} lacks its file {name}; restore it")
    source = Vocabulary.load(folder / "vocabulary.source.txt")
    target = Vocabulary.load(folder / "vocabulary.target.txt")
    path = folder / "preprocessing.json"
    try:
        sides = json_object(path)
        steps = [Preprocessing.from_dict(sides[side]) for side in ("source", "target")]
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path} is damaged ({error!r}): it must be as the training run wrote it") from None
    return TextAssets(source, source if source == target else target, *steps)

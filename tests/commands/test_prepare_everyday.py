"""Everyday sentences and captions as one text: what is held out is in no other part, whatever its case."""

import json
from pathlib import Path

import pytest

from one_layer.commands import prepare_everyday
from one_layer.commands.prepare_everyday import HELD_OUT, LANGUAGES, held_out_of, without
from tests import user_error

PAIRS = [(f"Sentence {number % 7000}.", f"Satz {number}.") for number in range(8000)]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("everyday")
    # Newer files have a third column.
    (folder / "deu.txt").write_text("\tleer\tCC-BY\n" + "".join(f"{en}\t{de}\tCC-BY\n" for en, de in PAIRS))
    held_out = held_out_of(PAIRS)["everyday"][0]
    captions = {
        "train": [(held_out[0].upper(), "Ein Hund."), ("A cat.", "Eine Katze.")],
        "test2016": [("A dog.", "Ein Hund.")],
    }
    for name, pairs in captions.items():
        for side, language in enumerate(LANGUAGES):
            (folder / f"{name}.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs))
    prepare_everyday.main([f"--tatoeba={folder / 'deu.txt'}", f"--multi30k={folder}", f"--out={folder / 'out'}"])
    return folder


def lines(folder: Path, name: str) -> list[tuple[str, str]]:
    sides = [(folder / "out" / f"{name}.{language}").read_text().splitlines() for language in LANGUAGES]
    return list(zip(*sides, strict=True))


def test_nothing_that_is_held_out_is_in_the_training_text(prepared: Path) -> None:
    train = lines(prepared, "train")
    for name, count in HELD_OUT.items():
        held_out = lines(prepared, name)
        assert len(held_out) == count and len({en for en, _ in held_out}) == count
        for side in range(2):
            assert not {pair[side].casefold() for pair in held_out} & {pair[side].casefold() for pair in train}
    assert ("A cat.", "Eine Katze.") in train and lines(prepared, "test2016") == [("A dog.", "Ein Hund.")]
    assert len(train) + sum(HELD_OUT.values()) < len(PAIRS) + 2, (
        "other translations of held-out sentences are left out too"
    )
    manifest = json.loads((prepared / "out" / "manifest.json").read_text())
    assert manifest["pairs"]["train"] == len(train)


def test_the_parts_depend_on_the_text_alone() -> None:
    assert held_out_of(PAIRS[:7000]) == held_out_of(PAIRS[6999::-1])
    assert without([("A b.", "c")], [("a  B. ", "x"), ("x", "C"), ("x", "y")]) == [("x", "y")]


def test_the_folder_that_is_read_is_not_written(prepared: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in prepared.iterdir() if path.is_file()}
    with user_error("is the folder of --multi30k, whose files would be replaced; give another one"):
        prepare_everyday.main(
            [f"--tatoeba={tmp_path}", f"--multi30k={prepared}", f"--out={prepared}/../{prepared.name}"]
        )
    assert before == {path: path.read_bytes() for path in before}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Hi.\tHallo.\n", "has 1 English sentence, too few to hold out 3,000"),
        ("Hi. Hallo.\n", "'Hi. Hallo.', has no tab; give"),
    ],
)
def test_another_text_is_refused(prepared: Path, tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "few.txt").write_text(text)
    with user_error(said):
        prepare_everyday.main(
            [f"--tatoeba={tmp_path / 'few.txt'}", f"--multi30k={prepared}", f"--out={tmp_path / 'out'}"]
        )

"""Data sets that TFDS wrote can be read and used for training without TensorFlow."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import tensorflow_datasets as tfds

from one_layer.data.config import DataConfig
from one_layer.data.loading import load
from one_layer.data.sources.tfds_records import TfdsRecords
from one_layer.data.sources.toy import grammar as toy
from tests import tfds_sets, user_error

TOY = toy.generate(1, train=60, valid=12, test=8)
NAME = "tiny_translate"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy language's pairs of the tiny run as a data set; one English test sentence contains a line end."""
    folder = tmp_path_factory.mktemp("tfds")
    test = TOY["test"][0], [*TOY["test"][1][:-1], "two\nlines"]
    tfds_sets.write_translation(folder, NAME, {"train": TOY["train"], "validation": TOY["valid"], "test": test})
    return folder


def config(folder: Path, **keys: object) -> DataConfig:
    known = {"source": "tfds", "tfds_name": NAME, "directory": str(folder), "valid": "validation"}
    return DataConfig(**{**known, **keys})  # type: ignore[arg-type]


def test_the_pairs_read_are_those_written(folder: Path) -> None:
    corpus, text = load(config(folder)), load(DataConfig(toy_train=60, toy_valid=12, toy_test=8))
    assert corpus.vocabularies == text.vocabularies and corpus.report[:2] == text.report[:2]
    pairs = zip(corpus.valid.source_text, corpus.valid.reference, strict=True)
    assert sorted(pairs) == sorted(zip(*TOY["valid"], strict=True))
    assert "two lines" in corpus.tests["test"].reference
    turned, tests = {"source_language": "en", "target_language": "de"}, ("validation[:2]", "train[3:5]")
    half = load(config(folder, train="train[:50%]", tests=tests, **turned))
    assert len(half.train) == 30 and {name: len(split) for name, split in half.tests.items()} == dict.fromkeys(tests, 2)
    assert set(half.valid.reference) == set(TOY["valid"][0])


def test_a_part_of_a_split_has_its_own_store(folder: Path, tmp_path: Path) -> None:
    here = config(folder, store=str(tmp_path))
    sizes = [len(load(replace(here, train=part)).train) for part in ("train", "train[:50%]", "train")]
    assert sizes == [60, 30, 60] and len(list(tmp_path.iterdir())) == 2


def test_tensorflow_is_not_imported(folder: Path) -> None:
    program = (
        "import sys; from one_layer.data.sources.tfds_records import TfdsRecords as R; "
        f"print(len(list(R({NAME!r}, {str(folder)!r}).stream('train', ('de',)))), 'tensorflow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["60", "False"]


def test_labels_are_read_as_numbers(tmp_path: Path) -> None:
    label = tfds.features.ClassLabel(names=["no", "yes"])
    features = tfds.features.FeaturesDict({"text": tfds.features.Text(), "label": label})
    rows = [{"text": "ü", "label": "yes"}, {"text": "", "label": 0}]
    tfds_sets.write(tmp_path, "tiny_labels", features, {"train": rows})
    records = TfdsRecords("tiny_labels", str(tmp_path))
    assert records.labels("text") == ()
    fields = {"source_language": "text", "target_language": "label"}
    with user_error(r"tiny_labels, split train: the field 'label' is no text; .* data\.labels makes"):
        load(config(tmp_path, tfds_name="tiny_labels", valid="train", tests=(), **fields))
    assert records.labels("label") == ("no", "yes")
    assert sorted(records.stream("train", ("text", "label"))) == [("", 0), ("ü", 1)]


def test_missing_data_sets_splits_and_fields_are_named(folder: Path) -> None:
    how = r"pip install -r requirements-tfds\.txt, then tfds build .* --file_format=array_record --data_dir=.*"
    for name in ("wmt14_translate/de-en", "no_such_set", "no name"):
        with user_error(rf"{name} is not prepared in .*{how}"):
            TfdsRecords(name, str(folder))
    with user_error(r"has no split 'valid'; it has .*validation"):
        load(config(folder, valid="valid"))
    with user_error(r"has no field 'fr'; it has de, en"):
        load(config(folder, target_language="fr"))
    with user_error(r"data\.tfds_name is empty"):
        DataConfig(source="tfds")


def test_files_that_are_truncated_in_another_format_or_missing_are_named(tmp_path: Path) -> None:
    tfds_sets.write_translation(
        tmp_path, "broken", {"train": TOY["train"], "validation": TOY["valid"], "test": TOY["test"]}
    )
    here = config(tmp_path, tfds_name="broken")
    (path,) = tmp_path.rglob("*-train.array_record*")
    path.write_bytes(path.read_bytes()[:-100])
    with user_error(r"split train, cannot be read"):
        load(here)
    (info,) = tmp_path.rglob("dataset_info.json")
    whole = info.read_text()
    info.write_text(whole.replace("array_record", "tfrecord"))
    with user_error(r"1\.0\.0 is stored as tfrecord; prepare it once: pip install"):
        load(here)
    info.write_text(whole)
    path.unlink()
    with user_error(r"broken-train\.array_record.* does not exist; prepare it once: pip install"):
        load(here)

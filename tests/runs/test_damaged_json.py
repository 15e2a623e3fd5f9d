"""JSON files of a run's folder that somebody has damaged are one sentence, or are not needed."""

import pytest

from one_layer.data.text.assets import TextAssets, load_text_assets, save_text_assets
from one_layer.data.text.preprocess import Preprocessing
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.runs.folder import RunFolder
from one_layer.runs.paths import read_object
from one_layer.system.errors import UserError
from tests import user_error

DEEP, LONG = 100_000, 5_000
DAMAGED = {
    "null": "null",
    "a list": "[]",
    "a string": '"a"',
    "cut": '{"a": ',
    "an integer of many digits": f'{{"a": {LONG * "1"}}}',
    "deeply nested": f"{DEEP * '['}{DEEP * ']'}",
    "deeply nested objects": f"{DEEP * chr(123) + '1'}",
    "objects in objects": DEEP * '{"a":' + "1" + DEEP * "}",
    "other bytes": "\udcff{}",
}
READERS = {
    "config.json": lambda folder: folder.read_config(),
    "identity.json": lambda folder: folder.began(),
    "preprocessing.json": lambda folder: load_text_assets(folder.path),
    "result.json": lambda folder: read_object(folder.result_file),
}


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    vocabulary = Vocabulary.build(["a b"])
    save_text_assets(TextAssets(vocabulary, vocabulary, Preprocessing("de"), Preprocessing("en")), tmp_path)
    return RunFolder(tmp_path)


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
@pytest.mark.parametrize("name", READERS)
def test_it_is_one_sentence_that_names_the_file(folder, name, content):
    (folder.path / name).write_text(content, "utf-8", "surrogateescape")
    with pytest.raises(UserError) as caught:
        READERS[name](folder)
    assert str(folder.path / name) in str(caught.value) and len(str(caught.value)) < 1000


@pytest.mark.parametrize("name", ["vocabulary.source.txt", "vocabulary.target.txt", "preprocessing.json"])
def test_a_missing_file_is_said_to_be_missing(folder, name):
    (folder.path / name).unlink()
    with user_error(rf"the folder {folder} lacks its file {name}; restore it$"):
        folder.assets()

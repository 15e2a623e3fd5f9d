"""The settings and the text of a ticket are read as they were written; what else is taken for them is in `forged.py`."""

import dataclasses
import json
import re

import numpy as np
import pytest

from one_layer.data.config import DataConfig
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.preprocess import Preprocessing
from one_layer.data.text.vocabulary import BYTES, Vocabulary
from one_layer.models.config import ModelConfig
from one_layer.system.errors import UserError
from one_layer.system.removed import IDLE
from one_layer.tasks import TASKS
from one_layer.tickets.file import TicketFile
from one_layer.tickets.settings import (
    Settings,
    read_settings,
    read_text,
    trained_with,
    write_settings,
    write_text,
)
from tests import ROOT

SIZES = {"d_model": 6, "ffn": 12, "heads": 2, "encoder_layers": 2}
CONFIG = ModelConfig(12, 6, **SIZES, decoder_layers=3, keep=0.3)
CODES = "#version: 0.2\na b</w>\nc d\n"


def settings_of(task: str = "translation", config: ModelConfig = CONFIG, data: DataConfig | None = None) -> Settings:
    return Settings(TASKS[task], config, 0, 0, data or DataConfig(), TASKS[task].settings())


PLAIN = settings_of(data=DataConfig(source="text", directory="d", tests=("a", "b/c", "d..e")))
TRAINING = {"optim": {"lr": 0.002, "freeze": "masks"}, "train": {"updates": 9, "backskip": "off"}}
MADE_OF = dataclasses.replace(PLAIN, checkpoint="average:3", training=TRAINING)
CLASSIFIER = settings_of(
    "classification",
    ModelConfig(12, 6, **SIZES, decoder_layers=0, family="classifier"),
    DataConfig(source="labelled", labels="mnli", directory="x"),
)
LARGEST = {"optim": {"clip": 10**18, "lr": None, "freeze": "a" * 2**16}, "train": {"updates": 2**31 - 1}}
CASES = {
    "translation": PLAIN,
    "classification": CLASSIFIER,
    "made of": MADE_OF,
    "the largest numbers of training": dataclasses.replace(PLAIN, training=LARGEST, step=2**40),
}
NAMES = ("best", "last", "0", "12345", "average:3", "average-best:10")
CASES |= {f"checkpoint {name}": dataclasses.replace(PLAIN, checkpoint=name) for name in NAMES}


def changed(settings: Settings = PLAIN, /, **sections: object) -> dict[str, str]:
    """The metadata with other values of keys of a section."""
    metadata = write_settings(settings)
    return metadata | {name: json.dumps(json.loads(metadata[name]) | values) for name, values in sections.items()}


@pytest.mark.parametrize("name", CASES)
def test_settings_are_read_as_they_were_written(name):
    settings = CASES[name]
    metadata = write_settings(settings)
    assert read_settings(metadata) == settings
    run = trained_with(settings)
    assert (run["task"], run["seed"], run["data"]) == (settings.task.name, 0, vars(settings.data))
    assert run["evaluation"] == vars(settings.evaluation) and run.items() >= settings.training.items()


def test_the_page_on_the_format_names_the_fields_that_are_left_out():
    page = (ROOT / "docs" / "ticket-format.md").read_text("utf-8")
    (named,) = re.findall(r"every field of `ModelConfig` except (.*?), vocabulary sizes included", page)
    fields = {each.name for each in dataclasses.fields(ModelConfig)}
    assert set(re.findall(r"`(\w+)`", named)) == fields - json.loads(write_settings(PLAIN)["model"]).keys()


def test_a_ticket_of_a_later_version_may_say_more_of_its_training():
    more = {
        "later": [{}],
        "optim": {**TRAINING["optim"], "later": {"a": 1}},
        "train": {**TRAINING["train"], "Later": [1, 2], "patience": 1},
    }
    assert read_settings(changed(MADE_OF, training=more)) == MADE_OF


def test_keys_that_are_gone_are_read_where_they_did_nothing_and_else_refused():
    idle = {section: {} for section in ("data", "model", "evaluation")}
    for name, value in IDLE.items():
        if (section := name.partition(".")[0]) in idle:
            idle[section][name.partition(".")[2]] = value
    assert read_settings(changed(**idle)) == PLAIN
    with pytest.raises(UserError, match=r"the key data\.min_count is gone; version 0\.5\.0 is the last that reads it"):
        read_settings(changed(data={**idle["data"], "min_count": 2}))
    with pytest.raises(UserError, match=r"the key model\.coats is gone; version 0\.7\.0 is the last that reads it"):
        read_settings(changed(model={**idle["model"], "coats": 2}))


LIMITS = [("data", {"toy_train": 10**6, "toy_valid": 10**6, "toy_test": 10**6, "block": 2**16})]
LIMITS += [("evaluation", TASKS["translation"].limits)]


@pytest.mark.parametrize(("section", "key", "most"), [(name, *item) for name, keys in LIMITS for item in keys.items()])
def test_a_setting_may_be_as_large_as_its_limit(section, key, most):
    found = getattr(read_settings(changed(**{section: {key: most}})), section)
    assert getattr(found, key) == most
    with pytest.raises(UserError, match=rf"{section}.{key} is {most + 1}(\.0)?; a ticket's is at most {most}$"):
        read_settings(changed(**{section: {key: most + 1}}))


def test_labels_of_a_users_own_may_have_a_thousand_names():
    longest = "a," + "b" * (2**16 - 2)
    for labels in (",".join(f"{number}:{'n' * 60}{number}" for number in range(900)), longest):
        data = DataConfig(source="labelled", columns="1,2", directory="x", labels=labels)
        settings = dataclasses.replace(CLASSIFIER, data=data)
        assert len(labels) > 2**15 and read_settings(write_settings(settings)) == settings
    with pytest.raises(UserError, match=r"data\.labels is .*; a ticket's settings are numbers"):
        read_settings(changed(settings, data={"labels": longest + "b"}))


@pytest.mark.parametrize("name", ["/x", "a\\b", "a\0b", "..", "x/../y", "a,/etc/hostname", "a, ../b,c", "~/x"])
@pytest.mark.parametrize("key", ["tfds_name", "train", "valid", "tests", "source_language", "target_language"])
def test_text_lies_in_its_folder(key, name):
    value = [name] if key == "tests" else "/" + name if key.endswith("language") else name
    if key.endswith("language") and ".." not in name and "/" in name:
        value = "/../x"
    with pytest.raises(UserError, match=r"names of text must not lead to another folder|without the character NUL"):
        read_settings(changed(data={key: value}))


def text_of(sides: tuple[str, str], codes: tuple[str | None, str | None]) -> TextAssets:
    vocabularies = (Vocabulary.build([" ".join(f"{side}{number}" for number in range(8))]) for side in sides)
    steps = (Preprocessing(side, True, codes=each) for side, each in zip("ab", codes, strict=True))
    return TextAssets(*vocabularies, *steps)


def file_of(metadata: str, tensors: dict[str, np.ndarray], codes: dict | None = None) -> TicketFile:
    return TicketFile(0, 0, {"text": metadata}, tensors, codes or {})


TYPES = CONFIG.replace(target_vocab=12)


@pytest.mark.parametrize(
    ("sides", "codes", "names"),
    [
        ("ab", (None, None), "source_vocabulary target_vocabulary"),
        ("aa", (CODES, CODES), "source_vocabulary source_codes"),
        ("ba", (CODES, CODES + "e f\n"), "source_vocabulary target_vocabulary source_codes target_codes"),
        ("ab", (None, CODES), "source_vocabulary target_vocabulary target_codes"),
    ],
)
def test_text_is_read_as_it_was_written_and_stored_once(sides, codes, names):
    assets = text_of(tuple(sides), codes)
    metadata, tensors = write_text(assets)
    assert tensors.keys() == {f"text/{name}" for name in names.split()}
    found, used = read_text(file_of(metadata, tensors), TYPES)
    assert found == assets and used == tensors.keys()
    assert (found.source_vocabulary is found.target_vocabulary) == (sides == "aa")


def test_pieces_that_hold_their_spaces_are_read_and_need_every_byte():
    steps = Preprocessing(
        "en", codes="#version: 0.2\n▁ a\n▁a \ufeff\n", bpe_kind="metaspace", inverse="sentencepiece,moses"
    )
    whole = Vocabulary.build(["▁a \ufeff \t"], always=BYTES)
    assets = TextAssets(whole, whole, steps, Preprocessing("de", inverse="none"))
    metadata, tensors = write_text(assets)
    config = CONFIG.replace(source_vocab=263, target_vocab=263)
    assert read_text(file_of(metadata, tensors), config)[0] == assets
    marked = {
        name: np.concatenate([np.frombuffer("\ufeff".encode(), np.uint8), text]) for name, text in tensors.items()
    }
    assert read_text(file_of(metadata, marked), config)[0] == assets, "a byte order mark is left out"
    for name, text, message in (
        ("vocabulary", whole.text.replace("<0x41>", "A"), "lacks a token of the bytes <0x00> to <0xFF>"),
        ("codes", "ab c\n", "'ab' is neither a character nor the result of any merge"),
    ):
        wrong = {**tensors, f"text/source_{name}": np.frombuffer(text.encode(), np.uint8)}
        with pytest.raises(UserError, match=message):
            read_text(file_of(metadata, wrong), config)


@pytest.mark.parametrize(("size", "message"), [(2**24, "not one whole zstd frame"), (2**24 + 1, "which is not a text")])
def test_a_text_has_at_most_16_mib(size, message):
    (metadata, tensors), name = write_text(text_of(("a", "b"), (CODES, None))), "text/source_vocabulary"
    file = file_of(metadata, {**tensors, name: np.zeros(1, np.uint8)}, {name: ("zstd", (size,))})
    with pytest.raises(UserError, match=message):
        read_text(file, TYPES)

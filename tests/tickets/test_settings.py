"""The settings of a ticket are read as they were written, and nothing else is taken for them."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest

from one_layer.data.config import DataConfig
from one_layer.models.config import ModelConfig
from one_layer.system.errors import UserError
from one_layer.tasks import TASKS
from one_layer.tickets import settings as ticket_settings
from one_layer.tickets.settings import (
    Settings,
    read_settings,
    settings_as_run,
    trained_with,
    write_settings,
)
from tests import ROOT

SIZES = {"d_model": 6, "ffn": 12, "heads": 2, "encoder_layers": 2}
CONFIG = ModelConfig(12, 6, **SIZES, decoder_layers=3, keep=0.3)
CODES = "#version: 0.2\na b</w>\nc d\n"


def settings_of(task: str = "translation", config: ModelConfig = CONFIG, data: DataConfig | None = None) -> Settings:
    return Settings(TASKS[task], config, 0, 0, data or DataConfig(), TASKS[task].settings())


CASES = {
    "translation": settings_of(data=DataConfig(source="text", directory="d", tests=("a", "b/c", "d..e"))),
    "layers left out": settings_of(config=CONFIG.replace(weights="multi_layer", decoder_layers="SsSS")),
    "classification": settings_of(
        "classification",
        ModelConfig(12, 6, **SIZES, decoder_layers=0, family="classifier"),
        DataConfig(source="labelled", labels="mnli", directory="x"),
    ),
}


TRAINING = {
    "optim": {"lr": 0.002, "freeze": "masks"},
    "train": {"updates": 9, "backskip": "off"},
}
CASES["made of"] = dataclasses.replace(CASES["translation"], checkpoint="average:3", training=TRAINING)
CASES["made of a step"] = dataclasses.replace(CASES["translation"], checkpoint="400")


@pytest.mark.parametrize("name", CASES)
def test_settings_are_read_as_they_were_written(name):
    settings = CASES[name]
    metadata = write_settings(settings)
    assert read_settings(metadata) == settings
    assert json.loads(metadata["model"]).keys().isdisjoint({"family", "backskip", "train_only", "freeze"})
    run = settings_as_run(settings)
    assert (run.task, run.seed, run.data, run.evaluation) == (settings.task, 0, settings.data, settings.evaluation)
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.seed = 1


def test_the_page_on_the_format_names_the_fields_that_are_left_out():
    page = (ROOT / "docs" / "ticket-format.md").read_text("utf-8")
    (named,) = re.findall(r"every field of `ModelConfig` except (.*?), vocabulary sizes included", page)
    (if_given,) = re.findall(r"\. (`keep_.*?) are there only if they are given", page)
    written = json.loads(write_settings(CASES["translation"])["model"])
    fields = {each.name for each in dataclasses.fields(ModelConfig)}
    left_out = [set(re.findall(r"`(\w+)`", names)) for names in (named, if_given)]
    assert left_out[0] | left_out[1] == fields - written.keys() and not left_out[0] & left_out[1]


@pytest.mark.parametrize("name", CASES)
def test_a_ticket_of_an_earlier_version_does_not_name_its_task(name):
    metadata = write_settings(CASES[name])
    del metadata["task"]
    assert read_settings(metadata) == CASES[name]


def test_a_ticket_of_an_earlier_version_does_not_say_how_it_was_trained():
    metadata = write_settings(CASES["made of"])
    del metadata["training"]
    assert read_settings(metadata) == CASES["translation"] and "training" not in write_settings(CASES["translation"])
    assert trained_with(read_settings(metadata)).keys() & {"optim", "train"} == set()
    assert trained_with(CASES["made of"])["optim"] == TRAINING["optim"]


def test_a_ticket_of_a_later_version_may_say_more_of_its_training():
    more = {
        "later": [{}],
        "optim": {**TRAINING["optim"], "later": {"a": 1}},
        "train": {**TRAINING["train"], "Later": [1, 2], "patience": 1},
    }
    assert read_settings(changed(CASES["made of"], training=more)) == CASES["made of"]


def test_what_a_run_may_be_trained_with_fits_into_its_ticket():
    largest = {"optim": {"clip": 10**18, "lr": None, "freeze": "a" * 2**16}, "train": {"updates": 2**31 - 1}}
    settings = dataclasses.replace(CASES["translation"], training=largest)
    assert read_settings(write_settings(settings)) == settings


@pytest.mark.parametrize("name", ["best", "last", "0", "12345", "average:3", "average-best:10"])
def test_a_checkpoint_has_one_of_its_names(name):
    assert read_settings(changed(CASES["made of"], training={"checkpoint": name})).checkpoint == name


@pytest.mark.parametrize(
    ("training", "message"),
    [
        *[
            ({"checkpoint": name}, "its checkpoint is .*, which is no name of a checkpoint")
            for name in (
                "newest",
                "best\n",
                "average:",
                "average:x",
                "../best",
                "9" * 17,
                "a" * 10**5,
                3,
                None,
                ["best"],
                {},
            )
        ],
        ([], "its metadata 'training' is not a JSON object"),
        ("best", "its metadata 'training' is not a JSON object"),
        ({"optim": []}, "a section of its metadata .training. is not a JSON object"),
        ({"optim": {"freeze": "a" * 65537}}, r"optim\.freeze is a text of 65,537 characters"),
        ({"optim": {"clip": 10**19}}, r"optim\.clip is a number of more than 18 digits"),
        ({"optim": {"lr": {}}}, r"optim\.lr is a list or an object"),
        ({"optim": {"lr": "high"}}, r"optim\.lr is 'high'; it takes a value of type"),
        ({"optim": {"freeze": 1}}, r"optim\.freeze is 1; it takes a value of type str"),
        ({"train": {"updates": -1}}, r"train\.updates is -1; it must be at least 0"),
    ],
)
def test_what_a_ticket_says_of_its_training_is_checked(training, message):
    with pytest.raises(UserError, match=message) as caught:
        read_settings({**write_settings(CASES["translation"]), "training": json.dumps(training)})
    assert str(caught.value).isprintable() and len(str(caught.value)) < 1000


def changed(settings: Settings = CASES["translation"], /, **sections: object) -> dict[str, str]:
    """The metadata with other values: of a whole section, or of keys of one."""
    metadata = write_settings(settings)
    for name, values in sections.items():
        whole = {**json.loads(metadata[name]), **values} if isinstance(values, dict) else values
        metadata[name] = json.dumps(whole)
    return metadata


LIMITS = [("data", {"toy_train": 10**6, "toy_valid": 10**6, "toy_test": 10**6, "block": 2**16})]
LIMITS += [("evaluation", TASKS["translation"].limits)]


@pytest.mark.parametrize(("section", "key", "most"), [(name, *item) for name, keys in LIMITS for item in keys.items()])
def test_a_setting_may_be_as_large_as_its_limit(section, key, most):
    found = getattr(read_settings(changed(**{section: {key: most}})), section)
    assert getattr(found, key) == most
    with pytest.raises(UserError, match=rf"{section}.{key} is {most + 1}(\.0)?; a ticket's is at most {most}$"):
        read_settings(changed(**{section: {key: most + 1}}))


@pytest.mark.parametrize("section", ["model", "data", "evaluation"])
@pytest.mark.parametrize("values", [[], 1, {"A": 1}, {"a" * 41: 1}])
def test_a_section_is_an_object_with_short_keys(section, values):
    with pytest.raises(UserError, match=f"its metadata '{section}' is not a JSON object with short keys"):
        read_settings(changed(**{section: values}))


@pytest.mark.parametrize("section", ["model", "data", "evaluation"])
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({}, "a list or an object"),
        ([{}], "a list or an object"),
        ("a" * 1001, "a text of 1,001 characters"),
        (2**40 + 1, "the number 1099511627777"),
    ],
)
def test_a_setting_that_is_too_long_is_named(section, value, shown):
    with pytest.raises(UserError, match=f"^{section}.key is {shown}; a ticket's settings are numbers up to 2"):
        read_settings(changed(**{section: {"key": value}}))


def test_labels_of_a_users_own_may_have_a_thousand_names():
    def labelled(labels):
        return DataConfig(source="labelled", columns="1,2", directory="x", labels=labels)

    names = ",".join(f"{number}:{'n' * 60}{number}" for number in range(900))
    settings = dataclasses.replace(CASES["classification"], data=labelled(names))
    assert len(names) > 2**15 and read_settings(write_settings(settings)) == settings
    longest = {"labels": "a," + "b" * (2**16 - 2)}
    assert read_settings(changed(settings, data=longest)).data.labels == longest["labels"]
    with pytest.raises(UserError, match=r"data\.labels is a text of 65,537 characters; "):
        read_settings(changed(settings, data={"labels": longest["labels"] + "b"}))


@pytest.mark.parametrize("value", [2**40, -(2**40), 0.5, True, None, "a" * 1000, ["a" * 1000] * 100, []])
def test_settings_may_be_short_texts_and_numbers(value):
    assert ticket_settings._plain(value)


@pytest.mark.parametrize(
    "value", [2**40 + 1, -(2**40) - 1, float("inf"), "a" * 1001, ["a"] * 101, ["a" * 1001], [1], [["a"]], {}]
)
def test_settings_may_be_nothing_else(value):
    assert not ticket_settings._plain(value)


@pytest.mark.parametrize("number", [-1, 2**40 + 1, 1.0, True, "1", None])
@pytest.mark.parametrize("name", ["seed", "step", "source_vocab", "target_vocab"])
def test_counts_are_whole_numbers(name, number):
    sections = {name: number} if name in ("seed", "step") else {"model": {name: number}}
    message = "its seed, its step or the sizes of its vocabularies are not valid whole numbers"
    if number == 2**40 + 1 and "model" in sections:
        message = f"model.{name} is the number 1099511627777; a ticket's settings are numbers up to"
    with pytest.raises(UserError, match=message):
        read_settings(changed(**sections))


def test_a_step_may_be_a_large_number_and_no_metadata_may_be_missing():
    assert read_settings(changed(step=2**40)).step == 2**40
    for name in ("seed", "model"):
        metadata = changed()
        del metadata[name]
        with pytest.raises(UserError, match=f"it lacks the metadata '{name}'"):
            read_settings(metadata)


@pytest.mark.parametrize("name", ["/x", "a\\b", "a\0b", "..", "x/../y", "a,/etc/hostname", "a, ../b,c", "~/x"])
@pytest.mark.parametrize("key", ["tfds_name", "train", "valid", "tests", "source_language", "target_language"])
def test_text_lies_in_its_folder(key, name):
    value = [name] if key == "tests" else "/" + name if key.endswith("language") else name
    if key.endswith("language") and ".." not in name and "/" in name:
        value = "/../x"
    with pytest.raises(UserError, match=r"names of text must not lead to another folder|without the character NUL"):
        read_settings(changed(data={key: value}))

"""The config's keys are declared once, and checked before anything happens."""

import copy
import dataclasses
import json
from typing import Any

import pytest

from configs import common
from one_layer.data.config import DataConfig
from one_layer.data.text.vocabulary import SPECIALS, Vocabulary
from one_layer.models.config import ModelConfig
from one_layer.runs.records import flatten
from one_layer.runs.settings import OPEN, MeshConfig, OptimConfig, RunConfig, TrainConfig, resolve
from one_layer.system.removed import REMOVED
from one_layer.tasks import TASKS
from one_layer.tasks.translation.settings import SearchSettings
from one_layer.training.plan import total_updates
from tests import tiny, user_error

RECORDS = {
    "model": ModelConfig,
    "data": DataConfig,
    "optim": OptimConfig,
    "mesh": MeshConfig,
    "train": TrainConfig,
    "evaluation": SearchSettings,
}
NOT_OF_THE_USER = {"source_vocab", "target_vocab", "family", "backskip", "train_only", "freeze"}
# A model by itself drops nothing; that is a matter of the recipe that trains it.
DELIBERATELY_DIFFERENT = {("model", "dropout")}
ELSEWHERE = {"data.source": "text", "data.directory": "there"}  # parts of the toy language have no other names
KEYS = [
    (section, name)
    for section, values in tiny.config().items()
    if isinstance(values, dict)
    for name in values
    if section != "evaluation" or name in SearchSettings.__dataclass_fields__  # keys of other tasks have no effect
]
WRONG = {
    int: ("3", 1.5, True, None),
    float: ("x", True, None),
    bool: (1, "yes", None),
    str: (3, None, ["a"]),
    type(None): (["a"], b""),
}


def changed(name: str, value: Any) -> dict[str, Any]:
    """The tiny config with one value at a dotted name, whatever its type."""
    config = copy.deepcopy(tiny.config())
    *path, last = name.split(".")
    section = config[path[0]] if path else config
    section[last] = value
    return config


def fields(record: type) -> dict[str, dataclasses.Field]:
    hidden = NOT_OF_THE_USER if record is ModelConfig else ()
    return {field.name: field for field in dataclasses.fields(record) if field.name not in hidden}


@pytest.mark.parametrize("section", RECORDS)
def test_common_declares_what_the_records_hold(section):
    declared, held = common.get_config()[section].to_dict(), fields(RECORDS[section])
    if section == "evaluation":  # every task has settings of its own
        held = {name: field for task in TASKS.values() for name, field in fields(task.settings).items()} | held
    assert declared.keys() == held.keys()
    for name, value in declared.items():
        if (section, name) not in DELIBERATELY_DIFFERENT:
            assert held[name].default == value, name
            assert type(held[name].default) is type(value), name


def test_common_declares_nothing_else():
    config = common.get_config().to_dict()
    assert config.keys() - RECORDS.keys() == {"task", "seed"}
    assert {"task", "seed", *RECORDS} <= fields(RunConfig).keys()


@pytest.mark.parametrize(("section", "name"), KEYS)
def test_a_mistyped_key_is_refused_with_the_right_one(section, name):
    config = tiny.config()
    config[section][name + "_"] = config[section].pop(name)
    with user_error(rf"unknown key {section}\.{name}_ .* did you mean {section}\.{name}\?"):
        resolve(config)


@pytest.mark.parametrize("key", sorted(key for key in REMOVED if key not in flatten(tiny.config())))
def test_a_key_that_is_gone_is_refused_whatever_its_value_with_the_last_version_that_reads_it(key):
    section, _, name = key.partition(".")
    config = tiny.config()
    config[section][name] = None
    with user_error(rf"^the key {key} is gone; version {REMOVED[key]} is the last that reads it"):
        resolve(config)


@pytest.mark.parametrize(("section", "name"), KEYS)
def test_a_value_of_another_type_is_refused(section, name):
    kind = type(tiny.config()[section][name])
    wrong = {"tests": ("test", [1.5], None), "bias": ("yes", 1), "embedding": (3,), "norm": (True,)}.get(name)
    wrong = wrong or ((1.5, True) if name.endswith("_layers") else WRONG[kind])
    for value in wrong:
        if value is None and f"{section}.{name}" in OPEN:
            continue
        with user_error(rf"{section}\.{name} is .* takes a value of type"):
            resolve(changed(f"{section}.{name}", tuple(value) if isinstance(value, list) else value))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("modle", {}, "unknown key modle in the config; did you mean model?"),
        ("model", 3, "model is 3"),
        ("task", "parsing", "task is 'parsing'; known are translation, classification"),
        ("seed", -1, "seed is -1"),
        ("seed", 2**32, "seed is 4294967296"),
        ("seed", "1", "seed is '1'"),
        ("seed", True, "seed is True"),
        (
            "model.keep",
            1.0,
            "there are no masks and nothing to train: .*; give a model.keep below 1, layers that are trained, or",
        ),
        ("model.heads", 3, "model.heads is 3, which does not divide model.d_model 16"),
        ("data.source", "web", "data.source='web'"),
        ("optim.lr", float("nan"), "optim.lr is nan"),
        ("train.updates", 0, "train.updates, train.epochs and train.minutes are all 0"),
        ("train.select", "loss", "train.select is 'loss', but the validation set is measured by nll and bleu;"),
        ("train.log_every", 0, "train.log_every is 0; it must be at least 1"),
        ("evaluation.beam", 0, "evaluation.beam is 0; it must be at least 1"),
        ("evaluation.length_penalty", float("nan"), "evaluation.length_penalty is nan"),
    ],
)
def test_what_no_run_can_have_is_refused(name, value, message):
    with user_error(message):
        resolve(changed(name, value))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train.patience": 3}, "train.patience=3 could end the run while its signs are soft"),
        ({"optim.freeze": "encoder.1.masks"}, "optim.softness=1.0 softens the signs that a run trains, all of them"),
        ({"optim.freeze": "masks", "model.embedding": "trained"}, "freeze no masks"),
        ({"model.selection": "magnitude", "model.keep": 0.5}, "give model.selection=sign"),
        ({"model.weights": "dense"}, "give model.selection=sign"),
    ],
)
def test_soft_signs_are_those_of_a_run_that_trains_them_all_to_its_end(changes, message):
    soft = {"model.selection": "sign", "model.keep": 1.0, "optim.softness": 1.0, "train.patience": 0}
    resolve(tiny.config(soft))
    with user_error(message):
        resolve(tiny.config(soft | changes))


@pytest.mark.parametrize("section", [name for name in RECORDS if name != "mesh"])
def test_a_missing_section_is_named(section):
    config = tiny.config()
    del config[section]
    with user_error(f"lacks the section '{section}'"):
        resolve(config)


def test_what_json_gives_back_is_the_same_config():
    config = tiny.config(ELSEWHERE | {"data.tests": ("a", "b"), "optim.lr": 1.0})
    assert resolve(json.loads(json.dumps(config))) == resolve(config)
    assert flatten(json.loads(json.dumps(config))) == flatten(config)


def test_a_whole_number_passes_for_a_float():
    assert resolve(changed("optim.lr", 1)).optim.lr == 1


def test_keep_1_with_something_else_to_train():
    assert resolve(changed("model.keep", 1.0) | {"model": tiny.config()["model"] | {"keep": 1.0, "bias": True}})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train.updates": 2**31}, r"train\.updates is 2147483648; it must be at most 2,147,483,647"),
        ({"train.epochs": 10**10}, r"train\.epochs is 10000000000; it must be at most"),
        ({"optim.warmup": 2**31}, r"optim\.warmup is 2147483648; it must be at most"),
        ({"optim.eps": 1e-300}, r"optim\.eps is 1e-300; it must be at least 1\.18e-38 \(less is 0 in float32\)"),
        ({"data.directory": "there"}, r"data\.directory='there' has no effect with data\.source='toy'"),
        ({"data.tests": ("train", "test")}, r"data\.tests=\('train', 'test'\) has no effect with data\.source='toy'"),
        ({"data.valid": "dev"}, r"data\.valid='dev' has no effect with data\.source='toy'"),
        (ELSEWHERE | {"data.valid": "dev", "data.tests": ("valid",)}, r"data\.tests contains 'valid'"),
        (
            ELSEWHERE | {"data.tests": ("test", "train")},
            r"data\.tests contains 'train', but result\.json has the .* rename",
        ),
        *(
            (
                {"data.source": "tsv", "data.directory": "there", "data.columns": columns},
                r"data\.columns=.* must be different",
            )
            for columns in ("1, 1", "9" * 5000 + ",de", "00,1", "01,1", "de, de", "de,1")
        ),
    ],
)
def test_values_that_could_mean_nothing_are_refused(changes, message):
    with user_error(message):
        tiny.run(changes)


def test_epochs_without_end_end_where_updates_do():
    assert total_updates(TrainConfig(epochs=2**31 - 1), 10**6) == 2**31 - 1


@pytest.mark.parametrize("shared", [True, False])
def test_one_table_for_both_languages_needs_one_vocabulary(shared: bool) -> None:
    """Where two vocabularies have equally many types, a shared table would otherwise give one row to two words."""
    run = tiny.run({"model.shared_embedding": shared, "data.joined_vocabulary": shared})
    ours = Vocabulary((*SPECIALS, "ein", "word3", "zwei"))
    again = Vocabulary(ours.tokens, (0,) * len(ours))
    theirs = Vocabulary((*SPECIALS, "ein", "wort3", "zwei"))
    assert run.model_for((ours, again)).target_vocab == 7
    if shared:
        with user_error("the id 5 is 'word3' in the vocabulary of the source and 'wort3' in that"):
            run.model_for((ours, theirs))
    else:
        assert run.model_for((ours, theirs)) == run.model_for((ours, again))


@pytest.mark.parametrize("given", [(2014,), ("2014",), [2014], (2014, "valid.x")])
def test_a_test_set_may_be_called_by_a_number(given: Any) -> None:
    """The command line takes 2014 for a number; its folder and files have its name."""
    run = tiny.run({**ELSEWHERE, "data.tests": given})
    assert run.data.tests == tuple(map(str, given)) and run.raw["data"]["tests"] == run.data.tests
    with user_error(r"data.tests is \(1e\+99,\); it takes"):
        tiny.run({**ELSEWHERE, "data.tests": (1e99,)})


def test_a_comma_stands_between_two_test_sets() -> None:
    """The command line takes --config.data.tests=a,b for one text."""
    assert tiny.run({**ELSEWHERE, "data.tests": ("a,b", "c")}).data.tests == ("a", "b", "c")

"""Random values for random keys of every config: each is accepted, or refused with one sentence that names a key."""

import importlib
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from one_layer.data.sources.toy import grammar
from one_layer.models.accounting import account
from one_layer.runs.records import flatten
from one_layer.runs.settings import resolve
from one_layer.system.errors import UserError
from one_layer.training import memory
from one_layer.training.memory import check_memory, estimate
from one_layer.training.train import train
from tests import tiny, user_error

CONFIGS = {
    "toy": ["one_layer", "multi_layer", "dense"],
    "multi30k": ["one_layer_tiny", "dense_cpu", "multi_layer_deep"],
    "multi30k_small": ["one_layer", "dense", "shared", "one_layer_wide", "dense_wide"],
    "multi30k_best": ["teacher", "best", "best_dense", "best_wide_one_size", "small", "small_dense", "small_shared"],
    "everyday": ["en_de", "de_en_large_dense"],
    "iwslt14": ["one_layer_small", "one_layer_wide_pretrained", "multi_layer_deep_xavier", "dense_small"],
    "wmt14": ["one_layer_base", "one_layer_wider_frozen", "dense_deeper"],
    "qqp": ["one_layer_base", "dense_cpu"],
    "mnli": ["one_layer_large", "multi_layer_cpu"],
    "sst2": ["one_layer_cpu", "dense_base"],
    "lm": ["one_layer_mini", "dense_enwik8", "signs_mini"],
    "mlm": ["one_layer_cpu", "dense_base"],
}
WHOLE = [0, 1, 2, 3, 5, 7, 64, -1, -(10**9), 10**6, 10**12, 2**31, 2**63, 10**400]
REAL = [0.0, 0.5, 1.0, -0.0, 1e-45, 1e-9, 0.999999, 1.5, -1.0, 1e9, 1e38, 1e39, 1e300, float("inf"), float("nan")]
TEXT = [
    "",
    " ",
    "none",
    "dense",
    "one_layer",
    "frozen",
    "en",
    "nowhere",
    "../x",
    "a\0b",
    "ü\u2028",
    "x" * 3000,
    "{language}",
    "{0}",
]
OTHER = [None, True, False, [], ["test"], [1], {"a": 1}, (), b"x", "1", 1, 1.0, {}]


def nested(name: str, argument: str) -> dict[str, Any]:
    return importlib.import_module(f"configs.{name}").get_config(argument).to_dict()


def value_for(dice: random.Random, present: Any, known: list[str]) -> Any:
    """A value of the same type, mostly; or of another."""
    if dice.random() < 0.15:
        return dice.choice(OTHER)
    if isinstance(present, bool):
        return not present
    if isinstance(present, int):
        return dice.choice([*WHOLE, dice.randint(0, 1000), present + dice.choice([-1, 1])])
    if isinstance(present, float):
        return dice.choice([*REAL, dice.uniform(0, 2)])
    return dice.choice([*TEXT, *known, *known])


def altered(dice: random.Random, configs: dict[str, list[str]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """One of `configs`, and the one to three values (by dotted names) that were changed in it."""
    name = dice.choice(list(configs))
    config = nested(name, dice.choice(configs[name]))
    if config["data"]["source"] != "toy":
        config["data"]["directory"] = config["data"]["directory"] or "somewhere"
    flat = flatten(config)
    known = [value for value in flat.values() if isinstance(value, str)]
    known += [
        "multi_layer",
        "masked",
        "trained",
        "threshold",
        "cosine",
        "bfloat16",
        "reference",
        "labelled",
        "rte",
        "nll",
        "gelu",
    ]
    changes: dict[str, Any] = {}
    for key in dice.sample(sorted(flat), dice.choice([1, 1, 2, 3])):
        section, _, last = key.rpartition(".")
        if dice.random() < 0.05:
            last = dice.choice([last[:-1] or "x", last + "s", "zzz", last.upper(), ""])
        changed = value_for(dice, flat[key], known)
        changes[f"{section}.{last}".lstrip(".")] = changed
        (config[section] if section else config)[last] = changed
    return config, changes


def examples(
    seed: int, count: int, configs: dict[str, list[str]] = CONFIGS
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    dice = random.Random(seed)
    return (altered(dice, configs) for _ in range(count))


def assert_names_a_key(error: UserError, changes: dict[str, Any]) -> None:
    """One line, and with the name of a key: one that was changed, or another that it does not go together with."""
    message = str(error)
    assert "\n" not in message and len(message) < 1500, message
    named = re.findall(r"\b(?:model|data|optim|mesh|train|evaluation)\.\w+|\btask\b|\bseed\b|unknown key", message)
    assert named, (message, changes)
    if len(changes) == 1:
        key = next(iter(changes))
        assert key in message or key.rpartition(".")[2] in message or len(named) > 1, (message, changes)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 20))])
def test_each_is_accepted_or_refused_with_a_sentence_that_names_a_key(seed):
    """Fifty for each seed."""
    accepted = 0
    for config, changes in examples(seed, 50):
        try:
            resolve(config)
            accepted += 1
        except UserError as error:
            assert_names_a_key(error, changes)
        except Exception as error:
            raise AssertionError(f"{changes}: {type(error).__name__}") from error
    assert 0 < accepted < 50  # the values reach both ways


# What makes any config so small that two updates take seconds, and independent of files that are not here.
SHRUNK: dict[str, Any] = {
    name: value for name, value in tiny.CHANGES.items() if name.startswith(("data.toy", "data.max", "data.buckets"))
}
SHRUNK |= {"model.d_model": 16, "model.ffn": 32, "model.heads": 2, "model.encoder_layers": 1, "model.decoder_layers": 1}
SHRUNK |= {"model.embedding_source": "text", "model.embedding_path": "", "model.positions": "sinusoidal"}
SHRUNK |= {
    "optim.warmup": 1,
    "train.log_every": 1,
    "train.init_from": "",
    "data.teacher": "",
    "data.teacher_mix": "translations",
    "evaluation.beam": 2,
    "evaluation.max_length_b": 8,
}
SHRUNK |= {"evaluation.valid_beam": 0, "evaluation.valid_tokens": 0}
SHRUNK |= {"evaluation.max_tokens": 256, "evaluation.buckets": 1}
SHRUNK |= {"train.select": "nll", "data.toy_valid": 4, "data.toy_test": 4}
SHRUNK |= {"train.minutes": 0.0, "train.bytes": 0, "train.model_of": ""}
TEXT_OF: dict[str, dict[str, Any]] = {
    "translation": {
        "data.source": "toy",
        "data.directory": "",
        "data.source_language": "de",
        "data.target_language": "en",
    },
    "classification": {"model.decoder_layers": 0, "data.source": "labelled", "data.tfds_name": ""},
    "causal_lm": {"model.encoder_layers": 0, "evaluation.stride": 8},
    "masked_lm": {"model.decoder_layers": 0, "data.bpe_merges": 20},
}
TEXT_OF["translation"] |= {"data.train": "train", "data.valid": "valid", "data.tests": ("test",)}
for each in ("translation", "classification"):
    TEXT_OF[each] |= {"data.bpe_merges": 0, "data.bpe_codes": "", "data.vocabulary": "", "data.bpe_kind": "subword-nmt"}
for each in ("causal_lm", "masked_lm"):
    TEXT_OF[each] |= {"data.source": "plain", "data.train": "text.txt", "data.held_out": 0.1, "data.block": 16}
# The header of a table for each of the tasks with labels, and what stands for a label there.
TABLES = {
    "sst2": ("sentence\tlabel", "01"),
    "qqp": ("question1\tquestion2\tis_duplicate", "01"),
    "mnli": ("sentence1\tsentence2\tgold_label", ("entailment", "neutral", "contradiction")),
}


def shrunk(config: dict[str, Any], changes: dict[str, Any], text: Path) -> dict[str, Any]:
    """The config with small values and the files of `text` for every key that was not changed, and two updates."""
    new = SHRUNK | {"data.directory": str(text)} | TEXT_OF[config["task"]]
    if config["task"] == "classification":
        new |= {"data.train": f"{config['data']['labels']}.tsv"}
        new |= {"data.valid": new["data.train"], "data.tests": (new["data.train"],)}
    for name, value in new.items():
        if name not in changes:
            section, _, key = name.rpartition(".")
            config[section][key] = value
    config["train"] |= {"updates": 2, "epochs": 0, "evaluate_every": 2, "minutes": 0.0, "bytes": 0}
    return config


def lengthened(changes: dict[str, Any]) -> bool:
    """Whether a change makes arrays or the text so large that it would only take long."""
    sized = (value for name, value in changes.items() if name.startswith(("model", "data", "evaluation", "optim.acc")))
    return any(isinstance(value, (int, float)) and abs(value) > 64 for value in sized)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A folder with a text, and with tables of its lines and random labels."""
    folder, dice = tmp_path_factory.mktemp("text"), random.Random(1)
    lines = grammar.generate(1, train=60, valid=1, test=1)["train"][1]
    (folder / "text.txt").write_text("\n".join(lines), "utf-8")
    for name, (header, labels) in TABLES.items():
        rows = ["\t".join([line] * header.count("\t") + [dice.choice(labels)]) for line in lines]
        (folder / f"{name}.tsv").write_text("\n".join([header, *rows]), "utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["toy", "multi30k_small", "multi30k_best", "qqp", "lm", "mlm"])
def test_a_sample_of_the_accepted_ones_trains(tmp_path, text, name):
    """One of each does two updates, or says a sentence: some values can be refused only when the text is known."""
    dice, trained, sentences = random.Random(name), False, []
    chosen = {name: [dice.choice(CONFIGS[name])]}
    while not trained:
        config, changes = altered(dice, chosen)
        if lengthened(changes) or str(config["task"]) not in TEXT_OF:
            continue
        try:
            run = resolve(shrunk(config, changes, text))
        except UserError:
            continue
        try:
            train(run, tmp_path / f"run-{len(sentences)}", [])
            trained = True
        except UserError as error:
            sentences.append(str(error))
        except Exception as error:
            raise AssertionError(f"{changes}: {type(error).__name__}") from error
    assert len(sentences) <= 4 and not any("\n" in each for each in sentences)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"model.d_model": 2**20, "model.heads": 2}, "model.d_model"),
        ({"model.ffn": 10**12}, "model.ffn"),
        ({"model.encoder_layers": 4096, "model.d_model": 4096, "model.ffn": 16384}, "model.encoder_layers"),
        ({"optim.accumulate": 10**12}, "optim.accumulate"),
        ({"evaluation.beam": 10**9}, "evaluation.beam"),
        ({"evaluation.valid_beam": 10**9}, "evaluation.valid_beam"),
    ],
)
def test_what_cannot_fit_into_memory_is_refused_before_it_is_made(tmp_path, changes, named):
    bound = "at least"
    if named.startswith("evaluation"):  # the estimate of a search can be too high
        # Of a masked model with such a search no ticket could be written.
        bound, changes = "about", {**changes, "model.weights": "dense"}
    with user_error(rf"would take {bound} [\d.,e+]+ GB of memory .* are there; lower .*{named}"):
        train(tiny.run(changes), tmp_path / "run", [])
    assert not (tmp_path / "run").exists()


def test_the_estimate_is_low_and_grows_with_what_it_counts(monkeypatch):
    """Parameters and two moments are certain; a model that is known to fit is accepted."""
    run = tiny.run()
    model, corpus = run.model_config(40, 50), run.task.corpus(run.data)
    check_memory(run, model, corpus)
    counted = account(model)["parameters"]
    parts = estimate(run, model, corpus)
    assert parts["state"] == 4 * (3 * counted["trained"] + counted["random"])
    assert min(parts.values()) > 0 and sum(parts.values()) < 50e6
    for change, part in {"optim.accumulate": "batches", "evaluation.beam": "search"}.items():
        assert estimate(tiny.run({change: 1000}), model, corpus)[part] > parts[part]
    monkeypatch.setattr(memory, "memory_limit", lambda devices: sum(parts.values()) // 4)
    with user_error("would take at least"):
        check_memory(run, model, corpus)

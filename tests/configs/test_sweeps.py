"""Sweeps as data: the functions that build them, and what holds for every sweep of every config."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from configs import (
    europarl,
    everyday,
    iwslt14,
    lm,
    mlm,
    mnli,
    multi30k,
    multi30k_best,
    multi30k_small,
    qqp,
    reservoirs,
    text,
    toy,
    wmt14,
)
from configs.sweeps import Overrides, chain, product, vary
from one_layer.commands import sweep as sweeps
from one_layer.layers.pattern import expand
from one_layer.layers.quantization import stored_bytes
from one_layer.models import shapes
from one_layer.models.accounting import account
from one_layer.models.weights import recipes
from one_layer.runs.records import flatten
from one_layer.runs.settings import MOST_UPDATES, resolve
from one_layer.sweeps import plan as plans
from one_layer.training.plan import check_warmup
from tests import ROOT

MODULES = (toy, everyday, multi30k, multi30k_best, multi30k_small, iwslt14, europarl, wmt14)
MODULES += (qqp, mnli, reservoirs, lm, mlm, text)
CONFIGS = {module.__name__.removeprefix("configs."): module for module in MODULES}
SWEEPS = [(name, sweep) for name, config in CONFIGS.items() for sweep in config.SWEEPS]
FIGURE_5 = [(name, sweep) for name, sweep in SWEEPS if sweep.startswith("figure5")]
# What a dense model does not have: masks over random weights.
OF_MASKS = ("keep", "selection", "threshold", "dynamic_scale", "scale_by_keep")


def values_of(config: str, runs: list[Overrides]) -> list[dict[str, Any]]:
    """The values of the runs by dotted names, as the config and the sweep give them."""
    plain: dict[str, dict[str, Any]] = {}
    for argument in {run.get("config", "") for run in runs}:
        words = [argument] if argument else []
        plain[argument] = flatten(CONFIGS[config].get_config(*words).to_dict())
    return [{**plain[run.get("config", "")], **run} for run in runs]


def of_users(config: str) -> dict[str, str]:
    """The keys that a user gives to a config."""
    languages = {"data.source_language": "en", "data.target_language": "fr"} if config == "text" else {}
    return {"data.directory": "" if config == "toy" else "somewhere", **languages}


def test_every_config_with_sweeps_is_tested_here():
    files = {path.stem for path in (ROOT / "configs").glob("*.py") if "\nSWEEPS" in path.read_text("utf-8")}
    assert files == CONFIGS.keys()


def test_the_narrow_dense_controls_have_about_the_bytes_of_the_ticket():
    """Without vocabularies, and before compression, which saves at most an eighth of the stored files in results/."""
    models = []
    for overrides in toy.sweep("controls"):
        values = toy.get_config(overrides["config"])
        values.update_from_flattened_dict({key: value for key, value in overrides.items() if key != "config"})
        if values.seed == 1 and (values.model.weights == "dense" or "model.embedding" not in overrides):
            models.append(resolve(values.to_dict()).model_config(208, 188))
    one, random, equal, *narrow = models
    ticket = account(one)["bytes"]["ticket"]
    assert one == random and len(narrow) == 2
    assert all(
        getattr(equal, key) == getattr(one, key) for key in ("d_model", "ffn", "encoder_layers", "decoder_layers")
    )
    for model, precision in zip(narrow, ("int8", "int4"), strict=True):
        found = shapes(model).values()
        stored = sum(stored_bytes(precision, each) if len(each) > 1 else 4 * math.prod(each) for each in found)
        assert stored == pytest.approx(ticket, rel=0.2) and model.d_model < one.d_model


@pytest.mark.parametrize("name", ["small", "wide"])
def test_the_kinds_of_small_files_have_about_equal_bytes(name):
    """Before compression, which masks do not need, and which saved a sixth of the numbers in 4 bits."""
    sizes = []
    for overrides in multi30k_small.sweep(name)[:: len(multi30k.SEEDS)]:
        values = multi30k_small.get_config(overrides["config"])
        values.data.directory = "somewhere"
        sizes.append(account(resolve(values.to_dict()).model_config(3070, 3070))["bytes"]["ticket"])
    masked, dense, *shared = sizes
    assert masked < dense < masked * 6 / 5
    assert shared == pytest.approx([dense] * (name == "small"), rel=0.02)


def test_a_product_has_every_combination():
    letters, numbers = vary("a", "x", "y"), vary("b", 1, 2)
    assert product(letters, numbers) == [{"a": a, "b": b} for a in "xy" for b in (1, 2)]
    assert product() == [{}] and product(letters, []) == []
    with pytest.raises(ValueError, match="a is varied twice"):
        product(letters, letters)


def test_a_chain_leaves_out_what_occurs_again():
    assert chain(vary("a", 1, 2), vary("a", 2, 3), vary("b", 1)) == [{"a": 1}, {"a": 2}, {"a": 3}, {"b": 1}]


@pytest.mark.slow
@pytest.mark.parametrize(("config", "sweep"), SWEEPS)
def test_every_sweep_can_be_run_and_trains_nothing_twice(config, sweep):
    given = [f"--config.{key}={value}" for key, value in of_users(config).items() if value]
    plan = plans.make(f"configs/{config}.py", sweep, given, Path("runs"))
    seen = {}
    for run in sweeps.resolved(plan).runs:
        assert "{sweep}" not in json.dumps(run.config)
        trained = json.loads(json.dumps(run.config))
        if trained["model"]["weights"] == "dense":
            for key in OF_MASKS:
                del trained["model"][key]
        other = seen.setdefault(json.dumps(trained, sort_keys=True), run.name)
        assert other == run.name, f"{other} and {run.name} are the same training"
        path = run.config["model"]["embedding_path"]
        assert not path.startswith("runs/") or path == "runs/dense_wide" or run.needs, (
            f"no run of the sweep makes {path}"
        )


@pytest.mark.parametrize(("config", "sweep"), SWEEPS)
def test_no_run_of_a_sweep_is_refused_for_its_length(config, sweep):
    """Where the number of epochs alone ends a run, the text decides; here it is as long as can be."""
    different = {}
    for overrides in CONFIGS[config].sweep(sweep):
        argument = overrides.get("config", "")
        length = {
            key: value for key, value in overrides.items() if key.startswith(("optim.", "train.", "model.embedding"))
        }
        different[argument, json.dumps(length, sort_keys=True)] = length
    for (argument, _), length in different.items():
        values = CONFIGS[config].get_config(*[argument] * bool(argument))
        values.update_from_flattened_dict(length | of_users(config))
        run = resolve(values.to_dict())
        if run.optim.warmup is not None:  # else the length of the run decides it
            check_warmup(run, MOST_UPDATES)


@pytest.mark.parametrize(("config", "sweep"), SWEEPS)
def test_a_file_of_embeddings_serves_models_of_one_width(config, sweep):
    """A table of another width could not be read."""
    widths: dict[str, set[int]] = {}
    for values in values_of(config, CONFIGS[config].sweep(sweep)):
        if values["model.embedding_path"]:
            widths.setdefault(values["model.embedding_path"], set()).add(values["model.d_model"])
    assert all(len(each) == 1 for each in widths.values()), widths


@pytest.mark.parametrize(("config", "sweep"), FIGURE_5)
def test_figure_5_compares_schemes_for_all_matrices(config, sweep):
    """Paper A, section 4: a scheme is that of every random matrix. Otherwise its lines are alike."""
    values = [each for each in values_of(config, CONFIGS[config].sweep(sweep)) if each["model.weights"] != "dense"]
    differing = {name for name in values[0] if any(each[name] != values[0][name] for each in values)} - {"config"}
    assert differing == {"model.init_scheme", "model.keep"} | ({"seed"} if len(CONFIGS[config].SEEDS) > 1 else set())
    resolved = {}
    for each in values:
        if (each["seed"], each["model.keep"]) == (1, 0.1):
            nested = CONFIGS[config].get_config(each["config"])
            nested.update_from_flattened_dict({name: value for name, value in each.items() if name != "config"})
            nested.data.directory = "" if config == "toy" else "somewhere"
            resolved[each["model.init_scheme"]] = resolve(nested.to_dict())
    assert len(resolved) > 1
    for scheme, run in resolved.items():
        assert {recipe.scheme for recipe in recipes(run.model_config(50, 50)).values()} == {scheme}
    left = [{**flatten(run.raw), "model.init_scheme": ""} for run in resolved.values()]
    assert all(each == left[0] for each in left)


def test_the_toy_has_the_reservoirs_of_multi30k_for_each_seed():
    """Paper B's comparison: all runs update as many layers, and the same kinds of reservoirs are between them on both texts."""
    texts = {"toy": "reservoirs", "reservoirs": "kinds"}
    compared = ("model.norm_position", "model.layerdrop", "train.backskip")
    found: dict[str, list[tuple[str, ...]]] = {}
    for config, sweep in texts.items():
        for values in values_of(config, CONFIGS[config].sweep(sweep)):
            encoder, decoder = (
                expand(key, values[f"model.{key}"], "L") for key in ("encoder_layers", "decoder_layers")
            )
            assert encoder.count("L") == 4 and decoder == "L"
            kind = values["model.reservoir"] * ("R" in encoder)
            found.setdefault(config, []).append((encoder, kind, *(str(values[key]) for key in compared)))
    assert sorted(found["toy"]) == sorted(found["reservoirs"] * len(toy.SEEDS))
    assert len(set(found["toy"])) == len(found["reservoirs"])

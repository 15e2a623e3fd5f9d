"""The paper's rows and figures as configs: every argument resolves, and every override names an existing key."""

import pytest
from ml_collections import ConfigDict

from configs import europarl, iwslt14, paper, wmt14
from one_layer.runs.records import flatten
from one_layer.runs.settings import resolve
from tests.configs.test_configs import TABLE

ROWS = {
    iwslt14: [
        "dense_small",
        "one_layer_small",
        *(f"one_layer_{size}_pretrained" for size in ("small", "wide", "deep")),
    ],
    wmt14: ["dense_base", "one_layer_base", *(f"one_layer_{size}_pretrained" for size in ("base", "wider", "deeper"))],
}
ARGUMENTS = [
    *((module, argument) for module, arguments in ROWS.items() for argument in arguments),
    *((module, f"{weights}_{module.SIZES[1]}") for module in ROWS for weights in paper.WEIGHTS),
    (iwslt14, "multi_layer_deep_frozen"),
    (wmt14, "one_layer_base_xavier_frozen_pretrained"),
]
FIGURES = [(module, name) for module in ROWS for name in module.FIGURES]


def short(value) -> str:
    """Returns the short name of a module or an argument for a test's id."""
    return getattr(value, "__name__", str(value)).removeprefix("configs.")


def resolved(config: ConfigDict):
    config.data.directory = "somewhere"
    return resolve(config.to_dict())


@pytest.mark.parametrize(("module", "argument"), ARGUMENTS, ids=short)
def test_every_argument_gives_the_run_that_it_names(module, argument):
    run = resolved(module.get_config(argument))
    model = run.model_config(50, 50)
    size = next(part for part in argument.split("_") if part in TABLE)
    assert (
        argument.startswith(model.weights)
        and (model.d_model, model.ffn, model.heads, model.encoder_layers) == TABLE[size]
    )
    assert model.decoder_layers == model.encoder_layers and model.keep == 0.5
    expected = "trained" if model.weights == "dense" else "frozen" if "frozen" in argument else "masked"
    assert model.embedding == expected
    assert bool(run.model["embedding_path"]) == ("pretrained" in argument)
    if "pretrained" in argument:  # footnote 4: fairseq's models; wide, which fairseq lacks, uses a dense run
        assert run.model["embedding_source"] == ("run" if size == "wide" else "fairseq")
    assert (model.init_scheme == "xavier_uniform") == ("xavier" in argument)
    assert not model.shared_embedding, "Table 1 counts one table per side"


@pytest.mark.parametrize("module", ROWS, ids=short)
def test_masked_models_train_with_the_dense_model_s_hyperparameters(module):
    """Paper A, implementation details: the hyperparameters are those of the fully weighted Transformer."""
    dense, masked = (flatten(module.get_config(argument).to_dict()) for argument in ROWS[module][:2])
    assert {name for name in dense if dense[name] != masked[name]} == {"model.weights"}


@pytest.mark.parametrize(
    ("module", "languages", "devices"), [(iwslt14, ("de", "en"), 1), (wmt14, ("en", "de"), 8)], ids=short
)
def test_every_device_of_the_paper_becomes_a_micro_batch(module, languages, devices):
    run = resolved(module.get_config())
    assert run.data.languages == languages
    assert run.optim.accumulate == devices and run.data.max_tokens == devices * 4096


@pytest.mark.parametrize(("module", "name"), FIGURES, ids=short)
def test_a_figure_has_a_run_for_every_argument_keep_and_seed(module, name):
    found = [(run["config"], run.get("model.keep"), run["seed"]) for run in module.sweep(name)]
    expected = []
    for argument in module.FIGURES[name]:
        for keep in (None,) if argument.startswith("dense") else paper.KEEPS:
            expected += [(argument, keep, seed) for seed in module.SEEDS]
    assert found == expected


@pytest.mark.parametrize("module", ROWS, ids=short)
def test_table_1_has_the_rows_of_the_paper_for_every_seed(module):
    runs = module.sweep("table1")
    for argument in ROWS[module]:
        assert [run["seed"] for run in runs if run["config"] == argument] == list(module.SEEDS)


@pytest.mark.parametrize(
    "argument", ["dense_small", "one_layer_small", "multi_layer_wide", "one_layer_deep_pretrained"]
)
def test_europarl_is_trained_as_iwslt14_is(argument):
    """But for the text, and for how a checkpoint is chosen."""
    ours, papers = (flatten(module.get_config(argument).to_dict()) for module in (europarl, iwslt14))
    differing = {name for name in ours if ours[name] != papers[name]}
    assert not {name for name in differing if name.startswith("optim.")} and "train.epochs" not in differing
    assert {name for name in differing if name.startswith("model.")} == {"model.dtype"}


@pytest.mark.parametrize("size", europarl.SIZES)
def test_the_best_recipe_on_europarl_has_controls_that_differ_in_their_weights_alone(size):
    signs, masks, shared, dense = (
        flatten(europarl.get_config(f"{weights}_{size}").to_dict()) for weights in europarl.BEST
    )
    assert {name for name in signs if signs[name] != masks[name]} == {"model.selection", "model.keep"}
    assert {name for name in shared if shared[name] != dense[name]} == {"model.sharing", "model.gains"}
    differing = {name for name in signs if signs[name] != dense[name]}
    assert differing and all(name.startswith("model.") for name in differing)
    for values in (signs, masks, shared, dense):
        assert TABLE[size][0] == values["model.d_model"]
        resolved(europarl.get_config(f"{europarl.BEST[0]}_{size}"))


def test_what_europarl_does_not_have_is_refused():
    for argument in ("signs_base", "signs", "shared_small_frozen", "dense_small_frozen"):
        with pytest.raises(ValueError, match=r"configs/europarl\.py:.* is unknown; give signs_, .*dense_"):
            europarl.get_config(argument)

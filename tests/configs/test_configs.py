"""Every config resolves with every argument, and every size gives a model."""

import pytest

from configs import common, everyday, iwslt14, lm, mlm, multi30k, multi30k_best, multi30k_small, qqp, text, toy
from one_layer.models import shapes
from one_layer.runs.records import flatten
from one_layer.runs.settings import resolve
from tests import user_error

# The sizes as published: d, ffn, heads, layers of each stack.
TABLE = {
    "tiny": (128, 256, 4, 4),
    "small": (512, 1024, 4, 6),
    "base": (512, 2048, 8, 6),
    "wide": (1024, 2048, 4, 6),
    "wider": (1024, 4096, 16, 6),
    "deep": (512, 1024, 4, 12),
    "deeper": (512, 2048, 8, 12),
}
WEIGHTS = ("dense", "one_layer", "multi_layer")


def test_the_sizes_equal_the_published_ones():
    assert common.SIZES == TABLE


@pytest.mark.parametrize("size", TABLE)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_multi30k_configs(weights, size):
    config = multi30k.get_config(f"{weights}_{size}")
    with user_error(r"data\.directory is empty"):
        resolve(config.to_dict())
    config.data.directory = "somewhere"
    run = resolve(config.to_dict())
    model = run.model_config(30, 30)
    assert model.weights == weights and run.data.languages == ("en", "de")
    found = (model.d_model, model.ffn, model.heads, model.encoder_layers)
    assert found == TABLE[size] and model.decoder_layers == model.encoder_layers


@pytest.mark.parametrize("width", ["", "_wide"])
def test_the_best_recipe_takes_over_the_whole_table_of_its_dense_model(width):
    models, widths = [], []
    for name in (f"table{width}", f"best{width}"):
        config = multi30k.get_config(name)
        config.data.directory = "somewhere"
        run = resolve(config.to_dict())
        models.append(run.model_config(30, 30))
        widths.append(shapes(models[-1])["params", "shared_embedding", "kernel"])
    table, best = models
    assert table.weights == "dense" and best.weights == "one_layer"
    assert widths[0] == widths[1] and run.train.init_from == f"runs/table{width}"


@pytest.mark.parametrize(
    "arg", [f"{weights}_{size}" for weights in WEIGHTS for size in ("mini", "cpu", "tiny", "wide")]
)
def test_the_configs_for_own_text(arg):
    config = text.get_config(arg)
    config.data.directory, config.data.source_language = "somewhere", "en"
    with user_error(r"data.target_language is empty: give the language's code"):
        resolve(config.to_dict())
    config.data.target_language = "fr"
    run = resolve(config.to_dict())
    assert run.optim.lr is run.optim.warmup is run.train.evaluate_every is None
    assert arg.startswith(run.model_config(30, 30).weights) and run.data.languages == ("en", "fr")


@pytest.mark.parametrize("size", ["mini", "cpu", "tiny"])
def test_the_best_recipe_for_own_text_fits_the_dense_model_that_it_begins_with(size):
    best, dense = text.get_config(f"best_{size}"), text.get_config(f"dense_{size}")
    best.data.directory, best.data.source_language, best.data.target_language = "somewhere", "en", "fr"
    for key in ("d_model", "ffn", "heads", "encoder_layers", "decoder_layers", "shared_embedding"):
        assert best.model[key] == dense.model[key]
    assert best.train.init_from == "runs/dense" and not best.data.bpe_merges
    run = resolve(best.to_dict())
    model = run.model_config(30, 30)
    assert model.weights == "one_layer" and model.embedding == "trained" and run.optim.lr is None


@pytest.mark.parametrize("size", ["mini", "cpu", "wide"])
def test_signs_of_own_text_need_no_other_run_and_train_no_matrix(size):
    config = text.get_config(f"signs_{size}")
    config.data.directory, config.data.source_language, config.data.target_language = "somewhere", "en", "fr"
    run = resolve(config.to_dict())
    model = run.model_config(30, 30)
    assert not run.train.init_from and not run.data.teacher
    trained = {path[-1] for path in shapes(model) if path[0] == "params"}
    assert trained == {"scores", "bias", "scale", "column_gain"}, "scores, and vectors beside them"
    plain = text.get_config(f"one_layer_{size}").model
    assert (model.d_model, model.ffn) == (1.5 * plain.d_model, 1.5 * plain.ffn)


@pytest.mark.parametrize(("size", "more"), [("", set()), ("_wide", {"model.selection", "model.keep"})])
def test_the_models_of_small_files_differ_in_weights_and_width_alone(size, more):
    one, dense = (flatten(multi30k_small.get_config(f"{arg}{size}").to_dict()) for arg in ("one_layer", "dense"))
    differing = {key for key in one if one[key] != dense[key]}
    beside = {"norm", "bias", "gains", "embedding", "init_scheme", "init_attention", "init_embedding"}  # of masks
    beside |= {"trained_precision", "dropout", "weights", "d_model", "ffn"}
    assert differing - {f"model.{name}" for name in beside} == {"optim.lr", "optim.warmup", *more}


@pytest.mark.parametrize(("signs", "dense"), [(name, f"{name}_dense") for name in ("best", "best_wide", "small")])
def test_the_best_small_files_and_their_controls_differ_in_weights_and_width_alone(signs, dense):
    ours, control = (flatten(multi30k_best.get_config(arg).to_dict()) for arg in (signs, dense))
    assert {key for key in ours if ours[key] != control[key] and not key.startswith("model.")} == {"optim.lr"}
    assert ours["model.selection"] == "sign" and control["model.trained_precision"] == "int4"
    alike = ("model.dropout", "model.dtype", "model.encoder_layers", "model.decoder_layers", "model.vector_precision")
    assert {key: ours[key] for key in alike} == {key: control[key] for key in alike}


@pytest.mark.parametrize("signs", ["best", "best_wide", "small"])
def test_the_control_of_trained_signs_differs_in_the_sizes_of_the_random_weights_alone(signs):
    ours, control = (flatten(multi30k_best.get_config(f"{signs}{more}").to_dict()) for more in ("", "_one_size"))
    assert {key for key in ours if ours[key] != control[key]} == {"model.init_scheme", "model.init_attention"}


def test_the_teacher_reads_and_writes_the_pieces_of_its_students():
    """So that they can learn from its probabilities too (`train.distil`)."""
    teacher, student = (flatten(multi30k_best.get_config(arg).to_dict()) for arg in ("teacher", "best"))
    assert {key for key in teacher if key.startswith("data.") and teacher[key] != student[key]} == {"data.teacher"}
    assert student["data.teacher"] == "runs/teacher"


@pytest.mark.parametrize("size", ["", "_large"])
def test_the_everyday_models_of_both_directions_share_their_random_layer(size):
    """They differ in which side is the source, and in nothing that a random weight is drawn from."""
    there, back = (flatten(everyday.get_config(f"{direction}{size}").to_dict()) for direction in everyday.DIRECTIONS)
    assert {key for key in there if there[key] != back[key]} == {"data.source_language", "data.target_language"}
    assert there["seed"] == back["seed"] and there["data.joined_vocabulary"]
    dense = flatten(everyday.get_config(f"en_de{size}_dense").to_dict())
    assert {key for key in there if there[key] != dense[key] and not key.startswith("model.")} == {"optim.lr"}
    with pytest.raises(ValueError, match=r"everyday.py:fr_en is unknown; give one of en_de, "):
        everyday.get_config("fr_en")


UNKNOWN = {
    **{
        everyday: ["fr_en"],
        toy: ["sparse"],
        multi30k_small: ["sparse"],
        multi30k_best: ["tiny", "best_dense_one_size"],
    },
    **{text: ["tiny"], mlm: ["tiny"], lm: ["", "mini", "dense_huge", "sparse_mini"]},
    multi30k: ["", "dense", "one_layer_", "sparse_tiny", "dense_huge", "tiny"],
    qqp: ["", "one_layer_roberta_base", "one_layer", "one_layer_", "sparse_base", "dense_small", "base"],
    iwslt14: ["", "one_layer_base", "small", "dense_small_frozen", "one_layer_small_", "one_layer_small_xavier_xavier"],
}
KNOWN = {
    **{everyday: "en_de, en_de_dense", toy: "one_layer, multi_layer, dense", multi30k_small: ".*dense_wide$"},
    **{
        multi30k_best: "teacher, best",
        text: ".* one of mini, cpu, tiny, small",
        mlm: "dense_, .* one of mini, cpu, base",
    },
    **{lm: "dense_, .* or signs_ and one of mini, enwik8", qqp: "dense_, .* and one of base, large, cpu"},
    **{
        multi30k: "best, table, best_wide, table_wide, or dense_, one_layer_ or multi_layer_",
        iwslt14: "dense_, .* small, wide, deep",
    },
}


@pytest.mark.parametrize("module", UNKNOWN, ids=lambda module: module.__name__)
def test_an_unknown_argument_is_refused_with_the_known_ones(module):
    file = module.__name__.replace(".", "/")
    for argument in UNKNOWN[module]:
        with pytest.raises(ValueError, match=f"^{file}.py:{argument} is unknown; give (one of )?{KNOWN[module]}"):
            module.get_config(argument)


def test_a_sweep_is_chosen_by_its_name_and_by_default_is_the_first():
    assert iwslt14.sweep() == iwslt14.sweep("figure2") == iwslt14.SWEEPS["figure2"]
    with pytest.raises(ValueError, match=r"configs/toy\.py has no sweep 'figure1'; it has figure2, figure3"):
        toy.sweep("figure1")

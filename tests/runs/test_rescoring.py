"""A finished run is scored with other settings and on other text: what may differ, and what is refused."""

import pytest

from configs import common
from one_layer.runs.rescoring import rescored
from one_layer.tasks.causal_lm.model import CausalLanguageModel
from one_layer.tasks.translation.model import TranslationModel
from tests import fuzz_tickets, tiny, user_error
from tests.tiny_tickets import TINY


def model_of(run, kind=TranslationModel):
    """A trained model of a run, without its arrays."""
    settings = {"config": run.model_config(12, 12), "data": run.data, "settings": run.evaluation}
    others = {"seed": 1, "step": 1, "assets": fuzz_tickets.assets(TINY), "variables": {}, "source": "best"}
    return kind(**settings, **others, trained_with=run.raw)


def test_a_finished_run_is_scored_with_another_search_on_text_that_lies_elsewhere():
    model = model_of(tiny.run({"data.source": "text", "data.directory": "here"}))
    other = tiny.config({"evaluation.beam": 7, "optim.lr": 3.0})
    moved = rescored(model, other, {"evaluation.beam": 7, "data.directory": "there", "data.tests": ("a", "b")})
    assert moved.settings.beam == 7 and moved.data.directory == "there" and moved.data.tests == ("a", "b")
    assert (moved.trained_with, moved.data.valid) == (model.trained_with, model.data.valid)
    assert rescored(model, other, {"model.keep": 0.5}).settings.beam == 7  # what it was trained with may be said again
    for name, value, message in (
        ("model.keep", 0.3, r"--config\.model\.keep=0.3, but the run was trained with 0.5"),
        ("train.unheard", 3, r"--config\.train\.unheard=3, but best does not hold this key"),
        ("optim.lr", 3.0, "trained with 0.01"),
        ("data.directory", 3, r"data\.directory is 3; it takes a value of type str"),
    ):
        with user_error(message):
            rescored(model, other, {name: value})
    with user_error(r"did you mean evaluation\.beam"):
        rescored(model, {"evaluation": {"beams": 7}}, {})


@pytest.mark.parametrize(
    ("trained", "scored", "fits"),
    [
        ({}, {"data.tests": ()}, True),
        ({"data.tests": ()}, {"data.tests": ("test",)}, False),  # lines that were trained on
        ({}, {"data.valid": "dev.tsv"}, False),  # `test` would have the lines of `valid`
        ({"data.valid": "dev.tsv"}, {"data.valid": "valid"}, False),
        ({"data.held_out": 0.0, "data.tests": ()}, {"data.tests": ("test",)}, True),  # a file of its own
    ],
)
def test_lines_that_were_not_held_out_in_training_are_not_scored(trained, scored, fits):
    text = {"data.source": "tsv", "data.directory": "there", "data.columns": "1,2", "data.held_out": 0.1}
    run = tiny.run(text | {"data.valid": "valid", "data.tests": ("test",)} | trained)
    model = model_of(run)
    if fits:
        assert rescored(model, run.raw, scored).data.tests == scored["data.tests"]
    else:
        with user_error(r"the parts that were held out are .*the model may have learned"):
            rescored(model, run.raw, scored)


@pytest.mark.parametrize("part", ["data.valid", "data.tests"])
def test_two_texts_do_not_have_one_name(part):
    """The test set `valid` would take the place of the validation set."""
    run = tiny.run({"data.source": "text", "data.directory": "there", "data.valid": "valid", "data.tests": ("test",)})
    scored = {"data.valid": "dev", "data.tests": ("valid",)}
    assert rescored(model_of(run), run.raw, {part: scored[part]}).data.valid in ("dev", "valid")
    with user_error(r"data\.tests contains 'valid', but --split=valid .*data\.valid='dev'; rename"):
        rescored(model_of(run), run.raw, scored)


def test_settings_that_do_not_fit_the_text_of_a_finished_run_are_refused():
    """The section `evaluation` of any config may replace the run's, whose data.block decides the largest stride."""
    text = {"data.source": "plain", "data.directory": "there", "data.held_out": 0.1, "data.block": 32}
    run = tiny.run({"task": "causal_lm", "model.encoder_layers": 0, "evaluation.stride": 8, **text})
    model = model_of(run, CausalLanguageModel)
    assert rescored(model, {"evaluation": {"stride": 32}}, {}).settings.stride == 32
    with user_error(r"the config lacks the section 'evaluation'; start from configs/common\.py"):
        rescored(model, {"model": {}}, {})
    for config in ({"evaluation": {"stride": 64}}, common.get_config().to_dict()):
        with user_error(r"evaluation\.stride is \d+, but data\.block is 32.*; give at most 32"):
            rescored(model, config, {})

"""The configs of labelled texts: every argument gives the run that it names, and the figures compare what the paper compares."""

import jax
import jax.numpy as jnp
import pytest

from configs import labelled, mnli, paper, qqp, sst2
from one_layer.models import build
from one_layer.models.families import label_count
from one_layer.runs.settings import resolve
from one_layer.tasks.classification.glue import TASKS

# Liu et al. 2019 (arXiv 1907.11692): d, ffn, heads, layers.
ROBERTA = {"base": (768, 3072, 12, 12), "large": (1024, 4096, 16, 24)}


@pytest.mark.parametrize("module", [qqp, mnli, sst2])
@pytest.mark.parametrize(
    "argument", ["one_layer_base", "one_layer_large", "multi_layer_base", "dense_base", "dense_cpu"]
)
def test_every_argument_gives_the_run_that_it_names(module, argument):
    run = resolve(module.get_config(argument).to_dict())
    name = module.__name__.removeprefix("configs.")
    task = TASKS[name]
    size = argument.rpartition("_")[2]
    model = run.model_config(50_265, 4 + len(task.labels))
    assert run.task.name == "classification" and run.data.labels == name and run.data.tfds_name == f"glue/{name}"
    assert (
        model.family == "classifier"
        and label_count(model) == len(task.labels)
        and argument == f"{model.weights}_{size}"
    )
    if size in ROBERTA:
        assert (model.d_model, model.ffn, model.heads, model.encoder_layers) == ROBERTA[size]
        assert (model.embedding, model.positions) == ("masked" if model.masked else "frozen", "frozen")
        assert model.activation == "gelu"
        assert run.data.bpe_kind == "byte-level" and run.data.max_length <= model.max_positions == 512
    logits, variables = jax.eval_shape(build(model).init_with_output, jax.random.key(0), jnp.ones((2, 7), jnp.int32))
    assert logits.shape == (2, label_count(model))
    kernel = variables["random"]["encoder"]["layers"]["ffn_in"]["kernel"] if model.masked else None
    assert kernel is None or kernel.ndim == (2 if model.weights == "one_layer" else 3)


@pytest.mark.parametrize("weights", ["dense", "multi_layer"])
@pytest.mark.parametrize("size", ROBERTA)
def test_a_whole_roberta_is_fine_tuned_with_all_of_its_parts(weights, size):
    run = resolve(sst2.get_config(f"{weights}_roberta_{size}").to_dict())
    model = run.model_config(50_265, 6)
    assert (model.weights, model.d_model, model.ffn, model.heads, model.encoder_layers) == (weights, *ROBERTA[size])
    assert (model.positions, model.norm, model.bias, model.activation) == ("learned", "affine", True, "gelu")
    assert model.dropout == model.attention_dropout == model.head_dropout == 0.1 and model.embedding_norm
    assert model.embedding != "frozen" and run.train.init_from == f"runs/roberta-{size}"
    assert run.optim.warmup is None  # a share of the run, which a small task ends long before 4,000 updates


@pytest.mark.parametrize("module", [qqp, mnli])
def test_a_figure_has_every_keep_of_both_sizes_and_the_dense_encoder(module):
    runs = module.sweep()
    expected = [(argument, keep) for argument in ("one_layer_base", "one_layer_large") for keep in paper.KEEPS]
    assert [(run["config"], run.get("model.keep")) for run in runs] == [*expected, ("dense_base", None)]


@pytest.mark.parametrize(
    ("arg", "schedule"), [("dense_roberta_base", "linear"), ("one_layer_base", "linear"), ("one_layer_cpu", "cosine")]
)
def test_own_texts_have_the_schedule_of_the_size(arg, schedule):
    """RoBERTa's fine-tuning has a linear one (Liu et al. 2019, table 10), whatever the text is."""
    for module in (labelled, qqp):
        assert module.get_config(arg).optim.schedule == schedule

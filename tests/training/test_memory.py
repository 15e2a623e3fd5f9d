"""The estimate of a run's memory, beside what XLA allocates for an update."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import optax
import pytest

from one_layer.data.masking import Masking
from one_layer.models import ModelConfig, abstract
from one_layer.tasks import TASKS
from one_layer.training import memory
from one_layer.training.memory import activations, check_memory, estimate
from one_layer.training.step import train_step
from tests import tiny, user_error

ROWS, LENGTH, TYPES = 4, 32, 2000
TOKENS = ROWS * LENGTH
SIZES = {"d_model": 16, "ffn": 32, "heads": 2, "weights": "dense", "encoder_layers": 2, "decoder_layers": 0}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "family", "changes"),
    [
        ("masked_lm", "masked_lm", {}),
        ("masked_lm", "masked_lm", {"encoder_layers": 6, "remat": True}),
        ("causal_lm", "decoder", {"encoder_layers": 0, "decoder_layers": 1, "remat": True}),
        ("classification", "classifier", {"source_vocab": 20}),
    ],
)
def test_an_update_takes_no_less_than_the_estimate(task, family, changes):
    """A run is refused by this number, so it may not be more than what XLA takes; logits are the largest part of these models."""
    config = ModelConfig(**{"source_vocab": TYPES, "target_vocab": TYPES, "family": family, **SIZES, **changes})
    given = tiny.run()
    run = replace(given, task=TASKS[task], data=replace(given.data, block=LENGTH))
    found = 4 * activations(run, config, TOKENS, LENGTH) + estimate(run, config)["gradients"]
    names = dict.fromkeys(("source", "target_in", "target"), LENGTH)
    if task == "masked_lm":
        places = Masking(0.15, 0, 0).places(LENGTH - 1)
        names = {"source": LENGTH, "places": places, "target": places}
    batch = {name: jax.ShapeDtypeStruct((1, ROWS, width), jnp.int32) for name, width in names.items()}
    fixed = abstract(config)
    params = fixed.pop("params")
    adam = optax.adam(0.1)
    step = train_step(run.task, config, adam, 0.1, 1)
    lowered = step.lower(params, jax.eval_shape(adam.init, params), fixed, batch, jax.ShapeDtypeStruct((), jnp.int32))
    needed = lowered.compile().memory_analysis().temp_size_in_bytes
    assert needed / 8 < found <= needed


def test_a_key_overrules_the_refusal(monkeypatch, caplog):
    monkeypatch.setattr(memory, "memory_limit", lambda devices: 1000)
    with user_error(r"train\.check_memory=False trains it nevertheless"):
        check_memory(tiny.run(), tiny.run().model_config(40, 50))
    run = tiny.run({"train.check_memory": False})
    check_memory(run, run.model_config(40, 50))
    assert "would take at least" in caplog.text

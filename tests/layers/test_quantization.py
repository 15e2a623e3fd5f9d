"""Training in few bits: the network sees what the ticket will hold, and the gradient passes to the float32 values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer import tickets
from one_layer.layers.quantization import PRECISIONS, Precisions, is_matrix, quantized, rounded
from one_layer.models import initialize
from one_layer.models.accounting import ticket_bytes
from one_layer.tasks import TASKS
from one_layer.tasks.model import prepared
from one_layer.tickets.precision import dequantize, quantize
from one_layer.training.step import train_step
from tests import user_error
from tests.tiny_tickets import CASES, TINY, flat, same_numbers, ticket_of, trained
from tests.training.test_step import CONFIG, DESCENT, SMOOTHING, batch, close

FEW = PRECISIONS[1:]
# Rows of all magnitudes, also such that are smaller than any step, and halves between two whole numbers.
ROWS = np.random.default_rng(0).normal(size=(4096, 8)).astype(np.float32)
ROWS *= np.exp2(np.arange(-160, 96, 1 / 16))[:, None].astype(np.float32)
ROWS[:8] = [[0.0] * 8, [7.0, 0.5, 1.5, -2.5, -3.5, 6.5, 1e-30, 0.0], *[[-0.0] * 8] * 6]


@pytest.mark.parametrize("precision", FEW)
def test_the_network_sees_the_numbers_of_the_file_bit_by_bit(precision):
    code = quantize(ROWS, precision)
    stored = dequantize(precision, code, ROWS.shape)
    seen = np.asarray(jax.jit(rounded, static_argnums=0)(precision, ROWS))
    tiny = np.abs(ROWS) < np.finfo(np.float32).tiny  # processors may take these for 0
    np.testing.assert_array_equal(np.where(tiny, 0, seen), np.where(tiny, 0, stored))
    np.testing.assert_array_equal(rounded(precision, jnp.asarray(seen)), seen, err_msg="rounding again changes nothing")
    assert quantize(stored, precision) == code, "what was read is stored as it is"


@pytest.mark.parametrize("precision", FEW)
def test_the_gradient_passes_unchanged(precision):
    given, weights = jnp.asarray(ROWS[1000:1004]), jnp.asarray(ROWS[2000:2004])
    found = jax.grad(lambda values: jnp.vdot(rounded(precision, values), weights))(given)
    np.testing.assert_array_equal(found, weights)


@pytest.mark.parametrize("case", ["dense", "trained besides", "from elsewhere"])
def test_a_ticket_computes_with_what_training_saw(tmp_path, case):
    """Whatever computes with a ticket: W ⊙ M made once, or masks that stay bits."""
    config = TINY.replace(**CASES[case], trained_precision="int4", vector_precision="int8")
    variables = trained(config)
    tickets.save(tmp_path / "t", ticket_of(config, variables=variables))
    loaded = tickets.load(tmp_path / "t")
    seen = flat(prepared(config, variables))
    same_numbers(flat(tickets.variables(loaded)), seen)
    same_numbers(flat(prepared(config, tickets.variables(loaded, packed=True))), seen)
    plain = flat(prepared(config.replace(trained_precision="float32"), variables))
    moved = [name for name, array in plain.items() if not np.array_equal(array, seen[name])]
    assert moved and all(name.endswith(("/kernel", "/bias", "/scale")) for name in moved)
    held = sum(array.nbytes for array in loaded.masks.values())
    held += sum(
        len(quantize(array, "int4" if is_matrix(path[-1], array.shape) else "int8"))
        for path, array in loaded.arrays.items()
    )
    assert ticket_bytes(config) == held


@pytest.mark.slow
def test_an_update_has_the_gradient_at_the_rounded_values_and_moves_the_others():
    """Rounded once, before the micro-batches."""
    config = CONFIG.replace(embedding="trained", trained_precision="int4")
    step, plain = (
        train_step(TASKS["translation"], each, DESCENT, SMOOTHING, 1)
        for each in (config, config.replace(trained_precision="float32"))
    )
    variables = initialize(config, 3)
    params = variables.pop("params")
    seen = quantized({"params": params}, Precisions("int4"))["params"]
    before = jax.tree.map(np.asarray, (params, seen))
    moments = DESCENT.init(params)
    new, _, sums = step(params, moments, variables, batch(micro_batches=2), 0)
    other, _, others = plain(seen, moments, variables, batch(micro_batches=2), 0)
    close(*(jax.tree.map(lambda now, then: now - then, *pair) for pair in ((new, before[0]), (other, before[1]))))
    np.testing.assert_allclose(sums["loss"], others["loss"], rtol=1e-6)


def test_another_precision_than_that_of_the_training_is_refused(tmp_path):
    ticket = ticket_of(TINY.replace(**CASES["dense"], trained_precision="int8"))
    with user_error(r"the precision float32 does not fit .* model.trained_precision=int8"):
        tickets.save(tmp_path / "t", ticket, "float32")
    assert not (tmp_path / "t").exists()
    assert tickets.save(tmp_path / "t", ticket, "int8") == tickets.save(tmp_path / "t", ticket)
    with user_error(r"model.trained_precision is 'int2'; known are float32, bfloat16, int8, int4"):
        TINY.replace(trained_precision="int2")

"""One update: what it is of its micro-batches, what it depends on, and that it compiles once and donates."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from one_layer.data.special_tokens import EOS, PAD
from one_layer.models import build, initialize
from one_layer.models.config import ModelConfig
from one_layer.models.sharding import Devices
from one_layer.models.trained import TrainedParts
from one_layer.platform import compiling_for
from one_layer.tasks import TASKS
from one_layer.tasks.losses import label_smoothed_nll
from one_layer.tasks.translation.task import Translation
from one_layer.training.optimizer import OptimConfig, optimizer, pace
from one_layer.training.step import train_step
from tests import mostly_slow

VOCAB, ROWS, LENGTH, SMOOTHING = 15, 4, 6, 0.1
CONFIG = ModelConfig(VOCAB, VOCAB, d_model=8, ffn=16, heads=2, encoder_layers=1, decoder_layers=1)
DESCENT = optax.sgd(1.0)  # the update is the gradient itself


def batch(seed=0, micro_batches=1, empty=0):
    """`ROWS` random pairs and `empty` rows without a target, dealt to the micro-batches."""
    random = np.random.default_rng(seed)
    source, target = random.integers(4, VOCAB, (2, ROWS, LENGTH)).astype(np.int32)
    for row in range(ROWS):
        source[row, row + 2 :], target[row, LENGTH - row :] = PAD, PAD
        source[row, row + 1], target[row, LENGTH - row - 1] = EOS, EOS
    source = np.concatenate([source, np.full((empty, LENGTH), EOS, np.int32)])
    target = np.concatenate([target, np.full((empty, LENGTH), PAD, np.int32)])
    target_in = np.where(target == PAD, PAD, np.roll(target, 1, axis=1))
    target_in[:, 0] = EOS
    arrays = {"source": source, "target_in": target_in, "target": target}
    return {name: array.reshape(micro_batches, -1, LENGTH) for name, array in arrays.items()}


def start():
    """Fresh every time, for a step donates it."""
    variables = initialize(CONFIG, 3)
    return variables["params"], DESCENT.init(variables["params"]), {"random": variables["random"]}


@pytest.fixture(scope="module")
def step():
    return train_step(TASKS["translation"], CONFIG, DESCENT, SMOOTHING, 1)


@pytest.fixture(scope="module")
def dropping():
    return train_step(TASKS["translation"], CONFIG.replace(dropout=0.3), DESCENT, SMOOTHING, 1)


def close(tree, other, tolerance=1e-6):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=0, atol=tolerance), tree, other)


def equal(tree, other):
    return all(jax.tree.leaves(jax.tree.map(lambda x, y: bool((x == y).all()), tree, other)))


def test_the_update_is_the_gradient_of_the_mean_over_tokens(step):
    params, moments, fixed = start()
    whole = {name: array[0] for name, array in batch().items()}

    def mean(params):
        logits = build(CONFIG).apply({"params": params, **fixed}, whole["source"], whole["target_in"])
        loss, nll, tokens = label_smoothed_nll(logits, whole["target"], SMOOTHING)
        return loss / tokens, (loss, nll, tokens)

    gradient, (loss, nll, tokens) = jax.jit(jax.grad(mean, has_aux=True))(params)
    expected = jax.tree.map(lambda p, g: p - g, params, gradient)
    new, _, sums = step(params, moments, fixed, batch(), 0)
    close(new, expected)
    np.testing.assert_allclose([sums["loss"], sums["nll"], sums["tokens"]], [loss, nll, tokens], rtol=1e-6)
    squares = sum(float(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(gradient))
    np.testing.assert_allclose(sums["norm"], squares**0.5, rtol=1e-5)


def test_soft_signs_are_signs_in_the_end_and_other_numbers_before():
    """The last update is that of a run whose signs were never soft, bit for bit."""
    config, rates = CONFIG.replace(selection="sign", keep=1.0), pace(OptimConfig(lr=0.1, warmup=0), 10)
    of_sign, soft = (
        train_step(TASKS["translation"], config, DESCENT, SMOOTHING, 1, softness=each) for each in (0.0, 5.0)
    )
    fixed = initialize(config, 3)
    params = fixed.pop("params")

    def after(step, number):
        new, _, sums = step(jax.tree.map(jnp.copy, params), DESCENT.init(params), fixed, batch(), number, rates)
        return new, sums

    assert equal(after(soft, 10), after(of_sign, 10))
    assert equal(after(of_sign, 0), after(of_sign, 10))
    assert not equal(after(soft, 0), after(of_sign, 0))


def test_micro_batches_and_empty_rows_change_nothing(step):
    """Though the pairs' lengths differ, and so the micro-batches' tokens."""
    one, _, sums = step(*start(), batch(), 0)
    two, _, sums_of_two = step(*start(), batch(micro_batches=2), 0)
    padded, _, sums_of_padded = step(*start(), batch(empty=ROWS, micro_batches=2), 0)
    for new, others in ((two, sums_of_two), (padded, sums_of_padded)):
        close(new, one)
        close(others, sums, 1e-4)


def test_an_update_without_a_target_is_applied_with_a_gradient_of_0(step):
    """A masked language model has one where no token of a small batch is masked."""
    params, moments, fixed = start()
    before, none = jax.tree.map(np.array, params), {"target": np.full_like(batch()["target"], PAD)}
    new, _, sums = step(params, moments, fixed, batch() | none, 0)
    assert equal(new, before) and sums["targets"] == 0 and sums["norm"] == 0


def test_it_compiles_once_a_shape(step):
    step(*start(), batch(micro_batches=2), 0)
    params, moments, _ = step(*start(), batch(), 0)
    programs = step._cache_size()
    for number in range(1, 4):
        params, moments, _ = step(params, moments, start()[2], batch(number), number)
        step(*start(), batch(number, micro_batches=2), number)
    assert step._cache_size() == programs


def test_it_donates_what_it_replaces_and_nothing_else(step):
    params, moments, fixed = start()
    step(params, moments, fixed, batch(), 0)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(params))
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(fixed))


class Disturbed(Translation):
    """Adds a number of the batch to the loss, which leaves the gradient as it is, or multiplies the loss, which does not."""

    def loss(self, model, variables, batch, *given):
        added, factor = (batch[name].max() for name in ("added", "factor"))
        sums = super().loss(model, variables, {name: batch[name] for name in ("source", "target_in", "target")}, *given)
        return {**sums, "loss": sums["loss"] * factor + added}


@pytest.mark.parametrize("platform", mostly_slow(["cpu", "tpu"], ["cpu"]))
def test_a_loss_or_gradient_that_is_not_finite_is_not_applied(platform, monkeypatch):
    """Accelerators have no condition around the optimiser. A norm may overflow where the loss does not."""
    monkeypatch.setattr(Devices, "platform", platform)
    optim = OptimConfig(clip=1.0, weight_decay=0.1, warmup=0)
    adam = optimizer(optim)
    step = partial(train_step(Disturbed(), CONFIG, adam, SMOOTHING, 1), pace=pace(optim, 10))

    def disturbed(added=0.0, factor=1.0):
        return batch() | {"added": np.full((1, ROWS), added), "factor": np.full((1, ROWS), factor)}

    params, _, fixed = start()
    params, moments, _ = step(params, adam.init(params), fixed, disturbed(), 0)
    broken = {"added": np.inf}, {"factor": np.nan}, {"factor": 1e25}
    for place, (numbers, applied) in enumerate([({}, True), *((each, False) for each in broken)]):
        before = jax.tree.map(np.array, (params, moments))
        params, moments, sums = step(params, moments, fixed, disturbed(**numbers), place + 1)
        unchanged = jax.tree.map(lambda x, y: bool((x == y).all()), before, (params, moments))
        assert applied != all(jax.tree.leaves(unchanged))
        assert applied == bool(np.isfinite([sums["loss"], sums["norm"]]).all())


ON_ACCELERATORS = {
    "multi_layer": {"weights": "multi_layer"},
    "one_layer, frozen in part": {"weights": "one_layer", "norm": "affine", "freeze": "encoder.ffn,norms"},
    "multi_layer, frozen in part": {"weights": "multi_layer", "encoder_layers": 2, "freeze": "encoder.2"},
}


@pytest.mark.parametrize("case", mostly_slow(ON_ACCELERATORS, ["multi_layer, frozen in part"]))
def test_an_update_on_an_accelerator_is_that_on_a_cpu(case, monkeypatch):
    """By the program for an accelerator, run on a CPU: it selects masks together, and has no condition around the optimiser."""
    config = CONFIG.replace(**{"norm": None, "bias": None, **ON_ACCELERATORS[case]})
    programs, found = [], []
    for platform in ("cpu", "cuda"):
        monkeypatch.setattr(Devices, "platform", platform)
        fixed = initialize(config, 3)
        params = fixed.pop("params")
        moments = DESCENT.init(TrainedParts.of(config).pick(params))
        with compiling_for(platform):
            step = train_step(TASKS["translation"], config, DESCENT, SMOOTHING, 1)
            programs.append(str(jax.make_jaxpr(step)(params, moments, fixed, batch(micro_batches=2), 0)))
            found.append(step(params, moments, fixed, batch(micro_batches=2), 0))
    assert programs[0] != programs[1]
    (new, _, sums), (other, _, others) = found
    close(other, new, 3e-5)  # of gradients of about 0.3, by sums in another order: up to 7e-6 on one machine
    close(others, sums, 1e-4)


def test_dropout_is_a_function_of_the_seed_and_the_update(dropping):
    first, again = (dropping(*start(), batch(), 5)[0] for _ in range(2))
    assert equal(first, again)
    assert not equal(first, dropping(*start(), batch(), 6)[0])
    of_another_seed = train_step(TASKS["translation"], CONFIG.replace(dropout=0.3), DESCENT, SMOOTHING, 2)
    assert not equal(first, of_another_seed(*start(), batch(), 5)[0])


@pytest.mark.slow
def test_micro_batches_drop_different_units(step, dropping):
    """Two equal micro-batches are twice the one, but for dropout."""
    alone = batch()
    twice = {name: np.concatenate([array, array]) for name, array in alone.items()}
    for update, same in ((step, True), (dropping, False)):
        sums, of_two = update(*start(), alone, 0)[2], update(*start(), twice, 0)[2]
        assert float(of_two["tokens"]) == 2 * float(sums["tokens"])
        assert (float(of_two["loss"]) == pytest.approx(2 * float(sums["loss"]), rel=1e-5)) == same

"""The programs of updates are compiled before they are needed, each once."""

import threading
import time
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer.training import trainer
from one_layer.training.compiling import Compiling
from one_layer.training.meter import Clock
from one_layer.training.train import train
from tests import tiny

PACE = np.float32(0.1)


def givens(*lengths):
    """What a step is given beside its state: batches of these lengths, the first update, a pace, and whether it skips anything."""
    return [({"source": jnp.zeros((1, 2, length), jnp.int32)}, 0, PACE, False) for length in lengths]


def traced_step(seen):
    """A step, which says of each batch how long it is and in which thread it is traced."""

    def step(params, moments, fixed, batch, number, pace, skips):
        seen.append((batch["source"].shape[-1], threading.current_thread() is threading.main_thread()))
        return params + fixed * number * pace, moments, {"loss": batch["source"].sum()}

    return jax.jit(step, donate_argnums=(0, 1), static_argnums=6)


@pytest.fixture(autouse=True)
def _quiet():
    """No program of another test is being compiled: it would be counted, and its line of the log too."""
    _wait_for_compilations()
    yield
    _wait_for_compilations()


def _wait_for_compilations():
    for thread in threading.enumerate():
        if thread.name.startswith("compiling"):
            thread.join()


@pytest.fixture
def compiled():
    """The name of each program that JAX compiles in the test."""
    found = []

    def listen(event, seconds, **about):
        if event.endswith("backend_compile_duration"):
            found.append(about["fun_name"])

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield found
    jax.monitoring.unregister_event_duration_listener(listen)


@pytest.mark.parametrize("restored", [False, True])
@pytest.mark.parametrize("known", [0, 1, 2])
def test_every_program_is_compiled_once_and_beside_the_updates(compiled, restored, known):
    """Also where the state was restored, and is bound to its device; and those that nobody knew of before."""
    seen = []
    step, given = traced_step(seen), givens(3, 5)
    state = jnp.ones(4), jnp.ones(2), jnp.ones(4)
    if restored:
        state = jax.device_put(state, jax.devices()[0])
    compiled.clear()
    programs = Compiling(step, state, given[:known])
    for number, (batch, _, *more) in enumerate(given * 2):
        programs.wait((batch, number, *more))
        params, moments, _ = step(*state, batch, number, *more)
        state = params, moments, state[2]
    programs.close()
    assert sorted(seen) == [(3, False), (5, False)] and len(compiled) == 2


POLICY = {"model.encoder_layers": "LRL", "model.reservoir": "ffn", "model.weights": "dense", "train.backskip": "policy"}


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, POLICY], ids=["masks", "policy"])
def test_a_run_finds_the_updates_that_the_measurement_of_its_speed_has_compiled(compiled, changes, tmp_path, caplog):
    """And a run of another pace finds those of the first one. A policy has two programs, of which the measurement meets one."""
    trainer.train_step.cache_clear()
    minutes = {"train.minutes": 2.0, "train.epochs": 1, "data.tests": (), **changes}

    def trained(name: str, **more: float) -> tuple[dict[str, Any], int]:
        compiled.clear()
        result = train(tiny.run({**minutes, **more}), tmp_path / name, [])
        return result, sum("step" in name for name in compiled)

    with caplog.at_level("INFO"):
        result, updates = trained("first")
    assert updates == (2 if changes else 1)
    assert result["epochs"] == 1 and result["config"]["train"]["updates"] > 20
    assert "chosen: train.updates=" in caplog.text
    assert trained("second", **{"optim.lr": 1e-4, "optim.warmup": 2})[1] == 0


def test_the_seconds_of_a_training_are_those_of_its_updates(monkeypatch, tmp_path):
    clock = [0.0]

    def wait(*_):
        clock[0] += 1000.0

    monkeypatch.setattr(Compiling, "wait", wait)
    monkeypatch.setattr("one_layer.training.trainer.Clock", partial(Clock, lambda: clock[0] + time.perf_counter()))
    result = train(tiny.run({"train.updates": 8, "data.tests": ()}), tmp_path / "run", [])
    assert clock[0] == 8000.0 and 0.0 < result["train_seconds"] < 1000.0


def test_what_compiling_raises_reaches_the_update():
    def step(*_):
        raise ValueError("too large")

    (given,) = givens(3)
    programs = Compiling(jax.jit(step, static_argnums=6), (jnp.ones(1),) * 3, [given])
    with pytest.raises(ValueError, match="too large"):
        programs.wait(given)
    programs.close()


def test_what_has_not_begun_when_a_run_ends_is_given_up():
    begun, go_on, seen = threading.Event(), threading.Event(), []

    class Slow:
        def __call__(self, *given):
            raise AssertionError("nothing is computed")

        def lower(self, *given):
            seen.append(given[3]["source"].shape[-1])
            begun.set()
            go_on.wait(10)
            return self

        def compile(self):
            pass

    programs = Compiling(Slow(), (jnp.ones(1),) * 3, givens(*range(1, 40)))
    begun.wait(10)
    programs.close()
    go_on.set()
    assert len(seen) < 39


@pytest.mark.slow
def test_a_run_of_several_shapes_names_what_took_long(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("one_layer.training.compiling._SOON", 0.0)
    with caplog.at_level("INFO"):
        train(tiny.run({"data.buckets": 2, "train.updates": 8, "data.tests": ()}), tmp_path, [])
    assert sum(message.startswith("compiled the update of batches of ") for message in caplog.messages) == 2


def test_the_programs_of_a_policy_have_two_lines_in_the_log(caplog, monkeypatch):
    monkeypatch.setattr("one_layer.training.compiling._SOON", 0.0)
    (given,) = givens(5)
    both = [given, (*given[:-1], True)]
    with caplog.at_level("INFO"):
        compiling = Compiling(traced_step([]), (jnp.ones(3), jnp.ones(2), jnp.ones(3)), both)
        for each in both:
            compiling.wait(each)
    named = {message.partition(" in ")[0] for message in caplog.messages if message.startswith("compiled")}
    assert named == {f"compiled the update of batches of 2x5{more}" for more in ("", " that skips backward passes")}

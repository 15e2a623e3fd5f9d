"""A budget of minutes decides the updates of a run, and one of bytes its width; both are written down, and kept by a resumed run."""

import shutil
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from one_layer import tickets
from one_layer.data.corpus import Corpus
from one_layer.runs.folder import RunFolder
from one_layer.runs.settings import MOST_UPDATES, of_training
from one_layer.system.errors import UserError
from one_layer.tickets.content import to_bytes
from one_layer.training import time_budget
from one_layer.training.file_budget import file_bytes, with_width
from one_layer.training.time_budget import Speed, _speed, updates_for
from one_layer.training.train import train
from one_layer.training.trainer import Trainer
from tests import tiny, tiny_runs, user_error
from tests.tiny_tickets import trained

seconds = st.floats(1e-4, 100)


@given(
    seconds, seconds, seconds, st.floats(0, 30), st.floats(0, 1e6), st.integers(1, 1000), st.sampled_from([0, 1, 50])
)
def test_the_updates_end_in_time_and_one_more_would_not(
    update: float, evaluation: float, compiling: float, scored: float, left: float, epoch: int, every: int
) -> None:
    run, speed = tiny.run({"train.minutes": 5.0, "train.evaluate_every": every}), Speed(update, evaluation, compiling)

    def takes(updates: float) -> float:
        return compiling + updates * (update + evaluation / (every or epoch)) + scored * evaluation

    try:
        updates = updates_for(run, speed, scored, left, epoch)
    except UserError:
        assert takes(20) > left * (1 - 1e-9)
        return
    assert takes(updates) <= left * (1 + 1e-9)
    assert takes(updates + 1) > left * (1 - 1e-9) or updates == MOST_UPDATES


def test_what_the_run_still_compiles_is_told_from_what_the_measurement_has_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An update takes 1 s and an evaluation 3; a program takes 4 s to compile, the search 2. Two of four programs are met."""
    now, met = [0.0], set[int]()
    clock = SimpleNamespace(perf_counter=lambda: now[0])
    monkeypatch.setattr(time_budget, "time", clock)
    batches = ({"source": np.zeros((1, 2, length))} for length in [3, 5] * 50)
    monkeypatch.setattr(time_budget, "training_iterator", lambda *_: batches)

    def update(batch: dict[str, np.ndarray], number: int) -> None:
        length = batch["source"].shape[-1]
        now[0] += 1.0 if length in met else 5.0
        met.add(length)

    def evaluate(*_: object) -> None:
        now[0] += 3.0 if 0 in met else 5.0
        met.add(0)

    trainer = Mock(spec=Trainer, batches=None, sums={}, params={}, fixed={}, devices=Mock(batch=lambda batch: batch))
    trainer.update, trainer.new_validator, trainer.programs = update, lambda: evaluate, lambda: [None] * 4
    assert _speed(trainer, 1e6) == Speed(update=1.0, evaluation=3.0, compiling=2 * 5.0 + 5.0)


def test_processes_choose_together_also_where_one_has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one is so slow that it has time for 7 updates."""
    run, speed = tiny.run({"train.minutes": 5.0}), Speed(1.0, 0.0, 0.0)
    monkeypatch.setattr(time_budget.processes, "greatest", lambda value: max(value, -7))
    with user_error(r"train\.minutes=5 is too short"):
        updates_for(run, speed, 0.0, 300.0, 100)


@pytest.mark.slow
def test_a_run_of_minutes_is_the_run_of_its_updates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_budget, "_speed", lambda *_: Speed(2.0, 0.0, 0.0))
    limited = tiny.run({"train.minutes": 1.0})
    train(limited, tmp_path / "minutes" / "run", [])
    kept = RunFolder(tmp_path / "minutes" / "run").read_config()
    assert 20 <= kept.train.updates < 30 and kept.train.minutes == 1.0
    monkeypatch.setattr(time_budget, "_speed", lambda *_: Speed(1.0, 0.0, 0.0))
    again = train(limited, tmp_path / "minutes" / "run", [])
    assert again["steps"] == kept.train.updates, "a resumed run keeps its updates"
    train(tiny.run({"train.updates": kept.train.updates}), tmp_path / "updates" / "run", [])
    ours, theirs = (tiny_runs.metrics(tmp_path / name) for name in ("minutes", "updates"))
    assert ours == theirs


@pytest.mark.slow
def test_tables_that_no_seed_gives_are_numbers_while_the_speed_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trained_corpus: Corpus
) -> None:
    """They are not there yet. An update that is not finite is not applied, and takes less time. What a kill leaves behind is removed."""
    lines = [f"{token}{' 0.5' * 16}\n" for token in trained_corpus.source_vocabulary.tokens]
    (tmp_path / "vectors.txt").write_text(f"{len(lines)} 16\n{''.join(lines)}", "utf-8")
    left = []

    def measured(trainer: Trainer, deadline: float) -> Speed:
        assert all(np.isfinite(array).all() for array in jax.tree.leaves(trainer.fixed)) and trainer.fixed["frozen"]
        left.append(shutil.copytree(trainer.folder.path, trainer.folder.path.with_name(".trial.abcd1234.unfinished")))
        return Speed(2.0, 0.0, 0.0)

    monkeypatch.setattr(time_budget, "_speed", measured)
    tables = {"model.embedding": "frozen", "model.embedding_path": str(tmp_path / "vectors.txt")}
    train(tiny.run({**tables, "train.minutes": 1.0, "data.tests": ()}), tmp_path / "run", [])
    with RunFolder(tmp_path / "run").locked():
        assert left[0].parent == tmp_path / "run" and not left[0].exists()


def test_the_narrowest_model_is_tried_whatever_the_first_one_takes(trained_corpus: Corpus) -> None:
    changes = {"model.weights": "dense", "model.d_model": 256, "model.ffn": 512, "model.heads": 2}
    narrow = tiny.run({**changes, "model.d_model": 8, "model.ffn": 16})
    run, _ = with_width(tiny.run({**changes, "train.bytes": file_bytes(narrow, trained_corpus) + 1}), trained_corpus)
    assert run.model["d_model"] == 8


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_the_file_of_a_trained_model_is_as_large_as_was_said(trained_corpus: Corpus, precision: str) -> None:
    run = tiny.run({"model.norm": "affine", "model.bias": True, "model.vector_precision": precision})
    model = run.model_for(trained_corpus.vocabularies)
    settings = {"task": run.task, "data": run.data, "evaluation": run.evaluation, "training": of_training(run.raw)}
    ticket = tickets.make(model, run.seed, trained(model, run.seed), trained_corpus, **settings)
    assert len(to_bytes(ticket)[0]) == pytest.approx(file_bytes(run, trained_corpus), rel=0.01)


@pytest.mark.slow
def test_several_devices_measure_too(tmp_path: Path) -> None:
    tiny_runs.write_text(tmp_path, "translation")
    changes = {"train.minutes": 2.0, "train.epochs": 1, "mesh.data": 2}
    tiny_runs.run(tmp_path, "translation", changes, JAX_NUM_CPU_DEVICES="2")
    assert RunFolder(tmp_path / "run").read_config().train.minutes == 2.0


@pytest.mark.parametrize("weights", ["one_layer", "dense"])
def test_the_file_fits_and_a_wider_one_would_not(weights: str, trained_corpus: Corpus) -> None:
    budget = 30_000
    precision = {"model.trained_precision": "int4"} if weights == "dense" else {}
    run, lines = with_width(tiny.run({"model.weights": weights, "train.bytes": budget, **precision}), trained_corpus)
    width = run.model["d_model"]
    assert run.model["ffn"] == 2 * width and lines[0].startswith(f"chosen: model.d_model={width}")
    wider = tiny.run({"model.weights": weights, "model.d_model": width + 8, "model.ffn": 2 * width + 16, **precision})
    assert file_bytes(run, trained_corpus) <= budget < file_bytes(wider, trained_corpus)


@pytest.mark.slow
def test_the_width_is_written_down_and_the_file_of_the_run_fits(tmp_path: Path) -> None:
    run = tiny.run({"train.bytes": 14_000, "data.tests": ()})
    result = train(run, tmp_path / "run", [])
    assert result["config"]["model"]["d_model"] > 16 and result["bytes"]["ticket_file"] <= 14_000
    assert train(run, tmp_path / "run", [])["config"] == result["config"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"train.minutes": -1.0}, "train.minutes is -1.0; it must be at least 0"),
        ({"train.bytes": -5}, "train.bytes is -5; it must be at least 0"),
        ({"train.minutes": 1e-4}, "train.minutes=0.0001 is too short"),
        ({"train.minutes": 1e-4, "train.updates": 0, "train.epochs": 0}, "train.minutes=0.0001 is too short"),
        ({"train.bytes": 300}, "train.bytes=300 is too few: the narrowest model"),
        ({"train.bytes": 10**12}, "model.d_model"),
        ({"train.bytes": 300, "train.init_from": "runs/other"}, "train.init_from=runs/other has one"),
    ],
)
def test_a_budget_that_allows_no_run_is_refused_and_leaves_nothing(
    tmp_path: Path, changes: dict[str, float], words: str
) -> None:
    with user_error(words):
        train(tiny.run(changes), tmp_path / "run", [])
    assert not (tmp_path / "run" / "config.json").exists()


@pytest.fixture(scope="module")
def trained_corpus() -> Corpus:
    run = tiny.run()
    return run.task.corpus(run.data)

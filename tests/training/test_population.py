"""Populations: runs that one program trains end as if each had been trained alone."""

import json
import signal

import jax
import numpy as np
import pytest

from one_layer.runs.checkpoints import Checkpoints
from one_layer.runs.restore import restore_run
from one_layer.supermask import topk_mask
from one_layer.training import population, programs, results
from one_layer.training.beginning import opened
from one_layer.training.course import _Course
from one_layer.training.interruption import Interrupted, Interruption
from one_layer.training.meter import Clock
from one_layer.training.metrics import read_metrics
from one_layer.training.population import Entry, Member, train_together
from one_layer.training.stacked import Stack
from one_layer.training.train import train
from tests import tiny, user_error

ALL = {"train.patience": 1, "optim.weight_decay": 0.01, "data.tests": ()}
MEMBERS = {
    "one": {"model.keep": 0.5, "seed": 1},
    "two": {"model.keep": 0.3, "seed": 2, "optim.warmup": 3, "optim.weight_decay": 0.02, "optim.label_smoothing": 0.05},
    "still": {"optim.lr": 0.0, "model.init_scheme": "kaiming_uniform"},  # never gets better than at first
    "wild": {
        "optim.lr": 1e18,
        "optim.warmup_init_lr": 1e18,
        "optim.weight_decay": 1e18,
        "optim.b1": 0.8,
        "optim.eps": 1e-6,
    },
}
TOLERANCE = 1e-3  # of losses, relative; the programs add floats in another order
COMMON = 0.99  # the least share of mask bits in common
COSTS = {"seconds", "train/tokens_per_second", "mask/flips"}


def entries(folder, *names):
    return [Entry(name, tiny.run(ALL | MEMBERS[name]), folder / name, []) for name in names or MEMBERS]


def result(folder):
    return json.loads((folder / "result.json").read_text())


def masks(folder):
    """The masks of the best checkpoint, as one row of bits."""
    model = restore_run(folder)
    leaves = jax.tree_util.tree_leaves_with_path(model.variables["params"])
    scores = [leaf for path, leaf in leaves if path[-1].key == "scores"]
    chosen = [topk_mask(layer, model.config.keep) for each in scores for layer in each.reshape(-1, *each.shape[-2:])]
    return np.concatenate([np.ravel(mask) for mask in chosen])


def assert_same_run(folder, other):
    """Losses and scores within TOLERANCE, at the same updates, and masks that have at least the share COMMON of their bits in common."""
    lines, others = (read_metrics(each / "metrics.jsonl") for each in (folder, other))
    assert [(line["step"], line.keys()) for line in lines] == [(line["step"], line.keys()) for line in others]
    for line, same in zip(lines, others, strict=True):
        for name in line.keys() - COSTS:
            np.testing.assert_allclose(line[name], same[name], rtol=TOLERANCE, err_msg=f"{name} at {line['step']}")
    ended, same = result(folder), result(other)
    for name in ("config", "steps", "train_tokens", "train_flops", "data"):
        assert ended[name] == same[name]
    assert ended["valid"]["step"] == same["valid"]["step"]
    np.testing.assert_allclose(ended["valid"]["score"], same["valid"]["score"], rtol=TOLERANCE)
    assert (masks(folder) == masks(other)).mean() >= COMMON
    files = [{path.name for path in each.iterdir()} for each in (folder, other)]
    assert files[0] == files[1]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The runs, each trained by itself."""
    folder = tmp_path_factory.mktemp("alone")
    for entry in entries(folder, "one", "two", "still"):
        train(entry.run, entry.workdir, [])
    return folder


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """The same runs and one that diverges, trained in one program, and what went wrong."""
    folder = tmp_path_factory.mktemp("together")
    return folder, train_together(entries(folder), Interruption())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one", "two", "still"])
def test_a_member_equals_its_single_run(alone, together, name):
    assert_same_run(together[0] / name, alone / name)
    assert result(together[0] / name)["members"] == 4 and result(alone / name)["members"] == 1


@pytest.mark.slow
def test_a_member_that_diverges_or_gets_no_better_stops_nobody_else(together):
    folder, failed = together
    assert failed.keys() == {"wild"} and "training has diverged" in failed["wild"]
    assert not (folder / "wild" / "result.json").exists()
    assert (folder / "wild" / "checkpoints").is_dir()
    steps = {name: result(folder / name)["steps"] for name in ("one", "two", "still")}
    assert steps["still"] == 2 * tiny.EVERY and max(steps.values()) == tiny.UPDATES


@pytest.mark.slow
def test_runs_that_were_interrupted_go_on_alone_and_together(alone, tmp_path, monkeypatch):
    names, interruption, done, update = ("one", "two", "still"), Interruption(), [], Stack.update

    def counted(stack, requests, clock):
        done.append(len(requests))
        if len(done) == 6:
            interruption.signal = signal.SIGTERM
        return update(stack, requests, clock)

    monkeypatch.setattr(Stack, "update", counted)
    with pytest.raises(Interrupted):
        train_together(entries(tmp_path, *names), interruption)
    train(entries(tmp_path, "one")[0].run, tmp_path / "one", [])
    assert not train_together(entries(tmp_path, *names), Interruption())
    for name in names:
        assert_same_run(tmp_path / name, alone / name)
    shared = [result(tmp_path / name)["members"] for name in names]
    assert shared == ["3 from update 0, 1 from update 6", 3, 3]


def test_members_share_one_text_unless_one_began_with_another(tmp_path):
    def text(name, known=None):
        with opened(tiny.run(MEMBERS["one"]), tmp_path / name, known=known) as ready:
            return ready.corpus

    first = text("first")
    assert text("second", first) is text("second", first) is first  # new, and going on
    with opened(tiny.run({"data.toy_train": 50}), tmp_path / "other") as ready:
        other = ready.corpus
    assert other.source_vocabulary != first.source_vocabulary
    assert text("first", other).fingerprints() == first.fingerprints()


@pytest.mark.slow
def test_a_signal_before_the_first_update_ends_it_before_anything_is_compiled(tmp_path, monkeypatch):
    interruption, opened = Interruption(), []

    def course(member, interruption):
        opened.append(member)
        interruption.signal = signal.SIGTERM
        yield {}, 0

    monkeypatch.setattr(population, "course", course)
    monkeypatch.setattr(Stack, "update", None)
    with pytest.raises(Interrupted):
        train_together(entries(tmp_path, "one", "two"), interruption)
    assert len(opened) == 1 and not (tmp_path / "two").exists()


@pytest.mark.slow
def test_a_signal_while_a_member_is_scored_is_not_lost_if_another_is_unfinished(tmp_path, monkeypatch):
    interruption = Interruption()

    def course(member, interruption):
        yield from ()

    def write_results(member, *given):
        interruption.signal = signal.SIGTERM

    monkeypatch.setattr(population, "course", course)
    monkeypatch.setattr(results, "write", write_results)
    with pytest.raises(Interrupted) as caught:
        train_together(entries(tmp_path, "one", "two"), interruption)
    assert caught.value.number == signal.SIGTERM and not (tmp_path / "two").exists()
    interruption.signal = None
    assert not train_together(entries(tmp_path, "one"), interruption), "all have finished"


def test_whatever_ends_a_program_every_member_is_closed_at_once(tmp_path, monkeypatch):
    """When Python ends, it is too late: Orbax would wait for ever."""
    closed = []

    def course(member, interruption):
        try:
            yield {}, 0
        finally:
            closed.append(member)

    def fail(members):
        raise RuntimeError("RESOURCE_EXHAUSTED")

    monkeypatch.setattr(population, "course", course)
    monkeypatch.setattr(population, "Stack", fail)
    monkeypatch.setattr(Member, "leave_device", lambda member: None)
    with pytest.raises(RuntimeError, match="RESOURCE_EXHAUSTED"):
        train_together(entries(tmp_path, "one", "two"), Interruption())
    assert len(closed) == 2


@pytest.mark.slow
def test_seconds_are_those_of_the_shared_updates(tmp_path, monkeypatch):
    """On a clock on which an update takes a second, and whatever a member does by itself 1,000 seconds."""
    now = [0.0]

    def taking(seconds, function):
        def slow(*arguments, **named):
            now[0] += seconds
            return function(*arguments, **named)

        return slow

    monkeypatch.setattr(population, "Clock", lambda: Clock(lambda: now[0]))
    monkeypatch.setattr(Stack, "update", taking(1, Stack.update))
    monkeypatch.setattr(jax.stages.Lowered, "compile", taking(1000, jax.stages.Lowered.compile))
    monkeypatch.setattr(Member, "begun", taking(1000, Member.begun))
    monkeypatch.setattr(results, "write", taking(1000, results.write))
    monkeypatch.setattr(Checkpoints, "close", taking(1000, Checkpoints.close))
    monkeypatch.setattr(_Course, "evaluate_and_save", taking(1000, _Course.evaluate_and_save))
    assert not train_together(entries(tmp_path, "one", "two", "still"), Interruption())
    one, still = (result(tmp_path / name) for name in ("one", "still"))
    assert one["steps"] > still["steps"], "the first goes on after the second has been scored"
    for ended in (one, still):
        assert ended["train_seconds"] == ended["steps"]
        assert ended["tokens_per_second"] == ended["train_tokens"] / ended["steps"]


def mark(changes):
    return programs.mark(tiny.run(changes).raw)


def test_numbers_do_not_change_the_program():
    same = [{"model.keep": 0.3}, {"seed": 2}, {"optim.lr": 0.1}, {"optim.warmup": 2}, {"optim.b1": 0.5}]
    same += [{"optim.label_smoothing": 0.0}, {"model.init_scheme": "xavier_normal"}]
    assert {mark(changes) for changes in same} == {mark({})}
    signs = {"model.selection": "sign", "model.keep": 1.0}
    soft = [signs | {"optim.softness": softness} for softness in (0.0, 1.0, 2.0)]
    assert mark(soft[0]) != mark(soft[1]) == mark(soft[2])
    assert mark({"train.bytes": 9000, "model.keep": 0.3}) != mark({"train.bytes": 9000})  # another width fits


@pytest.mark.parametrize(
    "changes",
    [
        {"model.keep": 1 / 3},
        {"model.weights": "multi_layer"},
        {"model.ffn": 64},
        {"model.dropout": 0.2},
        {"optim.clip": 1.0},
        {"optim.weight_decay": 0.1},
        {"optim.b1": 0.0},
        {"optim.schedule": "cosine"},
        {"train.updates": 20},
        {"data.toy_train": 61},
        {"train.bytes": 100_000},
    ],
)
def test_runs_of_other_programs_are_named_before_anything_is_trained(tmp_path, changes):
    (name,) = changes
    pair = [Entry(str(number), tiny.run(each), tmp_path / str(number), []) for number, each in enumerate([{}, changes])]
    with user_error(f"because they differ in .*{name}"):
        train_together(pair, Interruption())
    assert not list(tmp_path.iterdir())


TEXT = {"data.source": "plain", "data.train": "text.txt", "data.held_out": 0.1, "data.unit": "bytes", "data.block": 16}


@pytest.mark.parametrize(
    "changes",
    [
        {"task": "translation"},
        {"task": "causal_lm", "model.encoder_layers": 0, "evaluation.stride": 16, **TEXT},
        {"task": "masked_lm", "model.decoder_layers": 0, **TEXT},
    ],
    ids=lambda changes: changes["task"],
)
def test_seeds_share_a_program_where_all_updates_have_one_shape(tmp_path, changes):
    (tmp_path / "text.txt").write_text("one two three\n" * 40, "utf-8")
    given = {**changes, "data.buckets": 3} | ({"data.directory": str(tmp_path)} if "data.source" in changes else {})
    one, other = (tiny.run({**given, "seed": seed}) for seed in (1, 2))
    batches = one.task.batches(one.task.corpus(one.data), one.data, 1, 1)
    shapes = {batches[number]["source"].shape for number in range(batches.batches_per_epoch)}
    assert (programs.mark(one.raw) == programs.mark(other.raw)) == (len(shapes) == 1)


@pytest.mark.parametrize(("key", "value"), [("mesh.model", 2), ("mesh.data", 8)])
def test_runs_on_several_devices_each_are_refused(tmp_path, key, value):
    run = tiny.run({key: value})
    with user_error(f"{key} is {value}, but --vmap trains all runs on one device"):
        train_together([Entry("one", run, tmp_path / "one", [])], Interruption())


def test_a_mesh_of_other_devices_is_refused_at_once(tmp_path, monkeypatch):
    """At their end, runs are scored on their mesh."""
    monkeypatch.setattr(jax, "devices", lambda: 2 * jax.local_devices())
    with user_error(r"mesh\.data=1 and mesh\.model=1 do not arrange the 2 devices"):
        train_together([Entry("one", tiny.run({"mesh.data": 1}), tmp_path / "one", [])], Interruption())
    assert not list(tmp_path.iterdir())

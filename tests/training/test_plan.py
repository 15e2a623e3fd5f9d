"""What a config leaves open follows from the size of the corpus, is written down, and stays what it was when a run is resumed."""

import math

import pytest

from configs import labelled, text
from one_layer.runs.folder import RunFolder
from one_layer.runs.settings import OPEN, RunConfig, resolve
from one_layer.training.plan import check_warmup, keeps_loops, planned, total_updates
from tests import tiny, user_error

LANGUAGES = {"data.source_language": "en", "data.target_language": "fr"}


def a_run(arg: str = "one_layer_mini", changes: dict | None = None) -> RunConfig:
    config = text.get_config(arg)
    config.update_from_flattened_dict({"data.directory": "somewhere", **LANGUAGES, **(changes or {})})
    return resolve(config.to_dict())


@pytest.mark.parametrize("epoch_updates", [1, 2, 3, 7, 40, 59, 100, 333, 5000, 10**6])
def test_every_corpus_gives_a_run_with_a_warm_up_and_evaluations(epoch_updates: int) -> None:
    run, lines = planned(a_run(), epoch_updates)
    updates = total_updates(run.train, epoch_updates)
    assert updates == min(4000, 40 * epoch_updates)
    assert run.optim.warmup and run.train.evaluate_every and run.optim.lr
    assert 0 < run.optim.warmup <= max(1, updates / 20)
    assert 10 <= math.ceil(updates / run.train.evaluate_every) <= 20
    assert run.raw["optim"]["warmup"] == run.optim.warmup and lines[0].startswith(f"{updates:,} updates")
    assert [line.split("=")[0] for line in lines[1:]] == [f"chosen: {name}" for name in OPEN]


def test_what_is_given_is_not_chosen() -> None:
    given = {"optim.lr": 0.5, "optim.warmup": 7, "train.evaluate_every": 11}
    run, lines = planned(a_run(changes=given), 100)
    assert (run.optim.lr, run.optim.warmup, run.train.evaluate_every) == (0.5, 7, 11) and len(lines) == 1


def test_the_rate_falls_with_the_width() -> None:
    for weights in ("one_layer", "dense"):
        rates = [
            planned(a_run(f"{weights}_{size}"), 100)[0].optim.lr or 0.0 for size in ("mini", "cpu", "small", "wide")
        ]
        assert rates == sorted(rates, reverse=True) and rates[0] > rates[-1] > 0


def test_the_line_names_the_keys_that_end_the_run() -> None:
    assert "(train.epochs=40 or train.updates=4000)" in planned(a_run(), 10)[1][0]
    assert "(train.updates=12)" in planned(tiny.run(), 5)[1][0]


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "cosine", "linear"])
def test_a_run_that_ends_before_its_warm_up_is_refused(schedule: str) -> None:
    changes = {"optim.warmup": 4000, "optim.schedule": schedule, "train.updates": 2580}
    with user_error(r"optim.warmup is 4,000, but the run ends after 2,580 updates, .* for instance 129"):
        check_warmup(tiny.run(changes), 129)
    check_warmup(tiny.run(changes | {"optim.warmup": 2580}), 129)
    with user_error(r"or more train\.minutes or train\.epochs$"):
        check_warmup(tiny.run(changes | {"train.minutes": 3.0}), 129)


def test_a_resumed_run_has_what_it_began_with(tmp_path) -> None:
    folder, run = RunFolder(tmp_path), a_run()
    folder.write_config(planned(run, 40)[0])
    assert folder.claim(run)
    resumed = planned(folder.filled(run), 40)[0]
    assert resumed == planned(run, 40)[0] != planned(run, 41)[0] == planned(a_run(), 41)[0]
    # What is in the folder counts, not a rule that gives something else.
    assert planned(folder.filled(run), 41)[0] == resumed
    with user_error(r"optim.lr: 0.002 there, 0.5 here"):
        folder.claim(a_run(changes={"optim.lr": 0.5}))


def test_own_labels_have_a_config() -> None:
    config = labelled.get_config()
    config.data.directory, config.data.columns = "somewhere", "text,label"
    run, _ = planned(resolve(config.to_dict()), 100)
    assert run.data.labels == "from_train" and run.optim.lr == 1e-3 and run.optim.warmup == 100


@pytest.mark.parametrize(
    ("unroll", "short", "long"), [("auto", True, False), ("yes", False, False), ("no", True, True)]
)
def test_short_runs_keep_their_loops_unless_the_config_says_otherwise(unroll, short, long):
    train = a_run(changes={"train.unroll": unroll}).train
    assert (keeps_loops(train, 1999), keeps_loops(train, 2000)) == (short, long)


def test_other_words_for_loops_are_refused():
    with user_error(r"train\.unroll is 'never'; give auto, yes or no"):
        a_run(changes={"train.unroll": "never"})

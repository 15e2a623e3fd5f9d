"""When two points of a report differ, and when they are about equal."""

import pytest

from one_layer.report.verdicts import Judged, Verdict, above, all_of, difference, equal, no_worse
from tests.report.made_runs import found, write_curve, write_run

HOLDS, FAILS, UNDECIDED = Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED


def two_points(folder, ours, theirs, measure="bleu_tokenized"):
    """Two points with these values, by seed."""
    for rate, values in ((0.1, ours), (0.2, theirs)):
        for seed, value in values.items():
            changes = {"optim.lr": rate, "seed": seed}
            write_run(folder / f"{rate},{seed}", changes, 0.0, test={"test": {measure: value}})
    one, other = sorted(found(folder), key=lambda point: point.config["optim.lr"])
    return one, other


# What one model has above the other for each of three seeds, and the verdicts on "better", "about equal" and "no worse".
DIFFERENCES = [
    ((2.0, 3.0, 4.0), HOLDS, FAILS, HOLDS),
    ((-2.0, -3.0, -4.0), FAILS, FAILS, FAILS),
    ((0.5, -0.5, 0.9), UNDECIDED, HOLDS, HOLDS),
    ((-0.5, 0.5, -0.9), UNDECIDED, HOLDS, HOLDS),
    ((9.0, 0.0, 3.0), UNDECIDED, UNDECIDED, HOLDS),  # a mean of 4 and a deviation of 4.6: neither clear nor small
    ((-9.0, 0.0, -3.0), UNDECIDED, UNDECIDED, UNDECIDED),
]


@pytest.mark.parametrize(("differences", "better", "same", "worse_at_most"), DIFFERENCES)
def test_seeds_that_move_both_models_alike_hide_no_difference(tmp_path, differences, better, same, worse_at_most):
    shared = dict(enumerate((50.0, 20.0, 80.0), 1))
    ours = {seed: value + differences[seed - 1] for seed, value in shared.items()}
    one, other = two_points(tmp_path, ours, shared)
    assert (above(one, other), equal(one, other), no_worse(one, other)) == (better, same, worse_at_most)


@pytest.mark.parametrize("measure", ["bleu_tokenized", "accuracy"])
def test_single_runs_are_judged_by_the_tolerance_of_their_measure(tmp_path, measure):
    unit = 1.0 if measure.startswith("bleu") else 0.01
    for times, better, same in ((0.9, UNDECIDED, HOLDS), (1.1, HOLDS, FAILS)):
        one, other = two_points(tmp_path / str(times), {1: 40 * unit + times * unit}, {1: 40 * unit}, measure)
        assert (above(one, other), equal(one, other)) == (better, same)
        assert above(other, one) is (FAILS if better is HOLDS else UNDECIDED)


def test_seeds_that_only_one_of_two_models_has_hide_no_difference(tmp_path):
    """As in a sweep that goes on: some runs of one model are still to come."""
    ours, theirs = {1: 52.0, 2: 23.0, 3: 84.0}, {1: 50.0, 2: 20.0}
    one, other = two_points(tmp_path, ours, theirs)
    assert (above(one, other), above(other, one), equal(one, other)) == (HOLDS, FAILS, FAILS)


def test_runs_of_one_seed_are_compared_with_each_other():
    ours, theirs = {1: 10.0, 2: 20.0, 3: 30.0}, {1: 9.0, 2: 18.0, 3: 27.0}
    assert difference(ours, theirs) == (20.0, 18.0, 1.0) and difference(ours, theirs).mean == 2.0
    assert difference(theirs, ours) == (18.0, 20.0, 1.0)
    assert difference(ours, dict(reversed(theirs.items()))) == (20.0, 18.0, 1.0)  # seeds are compared, not places
    assert difference(ours | {4: 90.0}, theirs | {5: -90.0}) == (20.0, 18.0, 1.0)


def test_without_two_common_seeds_the_values_are_independent():
    ours, theirs = {1: 10.0, 2: 20.0, 3: 30.0}, {3: 9.0, 4: 19.0, 5: 29.0}
    assert difference(ours, theirs) == pytest.approx((20.0, 19.0, 200**0.5))
    assert difference(ours, {1: 9.0}) == pytest.approx(
        (20.0, 9.0, 200**0.5)
    )  # the one value is taken to vary as the others
    assert difference({1: 10.0}, {1: 9.0}) == difference({1: 10.0}, {2: 9.0}) == (10.0, 9.0, 0.0)


def test_all_hold_only_if_none_fails_or_is_undecided():
    assert all_of([HOLDS, HOLDS]) is HOLDS
    assert all_of([HOLDS, UNDECIDED]) is UNDECIDED
    assert all_of([UNDECIDED, FAILS, HOLDS]) is FAILS


@pytest.mark.parametrize(
    ("seeds", "more", "late", "reason"),
    [
        ((1, 2), {}, 2.0, ""),
        ((1,), {}, 2.0, "fewer than 2 seeds"),
        ((1, 2), {"steps": 249}, 2.0, "fewer than 250 updates"),
        ((1, 2), {}, 1.7, "scores still rise at the end of a run"),
        ((1, 2), {"steps": 0}, 2.0, ""),  # imported
    ],
)
def test_too_few_seeds_too_short_runs_and_rising_scores_decide_nothing(tmp_path, seeds, more, late, reason):
    """Validation losses of 3 and 2 at updates 50 and 150, and then `late` at 200."""
    for seed in seeds:
        folder = write_run(tmp_path / f"{seed}", {"seed": seed}, 50.0, **more)
        write_curve(folder, {50: 3.0, 150: 2.0, 200: late})
    judged = Judged("A", "claim", "models", Verdict.FAILS, "seen").if_enough(found(tmp_path))
    assert judged.verdict is (UNDECIDED if reason else FAILS)
    assert judged.seen == "; ".join(filter(None, ["seen", reason]))

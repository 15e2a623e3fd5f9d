"""The command that trains a part of a sweep: a file of the sweep that cannot be used is said in a sentence, not in a traceback."""

import json

import pytest

from one_layer.commands import population
from tests import tiny, user_error

GOOD = {"config": tiny.config(), "words": ["--config.seed=2"]}


@pytest.mark.parametrize(
    ("plan", "message"),
    [(None, "sweep.json cannot be read"), ({"runs": {"b": GOOD}}, "sweep.json has no run a; it has b")],
)
def test_a_sweep_that_cannot_be_read_is_said(tmp_path, plan, message):
    if plan is not None:
        (tmp_path / "sweep.json").write_text(json.dumps(plan))
    with user_error(message):
        population._entries(tmp_path, ["a"])


def test_a_run_is_read_with_its_words(tmp_path):
    (tmp_path / "sweep.json").write_text(json.dumps({"runs": {"a": GOOD}}))
    (entry,) = population._entries(tmp_path, ["a"])
    assert (entry.name, entry.workdir, entry.overrides) == ("a", tmp_path / "a", ["config.seed=2"])

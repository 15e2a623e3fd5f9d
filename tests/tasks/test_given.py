"""What a trained model of any task takes: texts, in anything that can be iterated over."""

from __future__ import annotations

import jaxtyping
import pytest

from one_layer.system.errors import UserError
from one_layer.tasks import TASKS, VERBS

NO_LISTS = [
    ("two dogs", "'two dogs' is no list of texts"),
    (b"two dogs", "b'two dogs' is no list of texts"),
    (None, "None is no list of texts"),
    (["two dogs", None], "text 2 of the list is None, which is no text"),
    ([3], "text 1 of the list is 3, which is no text"),
    ([b"two dogs"], "text 1 of the list is b'two dogs', which is no text"),
]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(("given", "message"), NO_LISTS)
def test_what_is_no_list_of_texts_is_refused_before_anything_else(monkeypatch, task, given, message):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # a user's program checks no type hints
    model = object.__new__(TASKS[task].model)  # it has no variables to compute with
    for method in {model.verb, "lines"}:
        with pytest.raises(
            UserError, match=rf'{message}; give a list of texts, for instance {model.verb}\(\["two dogs"\]\)$'
        ):
            getattr(model, method)(given)


def test_half_of_a_surrogate_pair_is_no_character():
    model = object.__new__(TASKS["translation"].model)
    with pytest.raises(UserError, match=r"text 2 of the list has half of a surrogate pair, '\\ud800'"):
        model.given(["\U0001f600", "a \ud800"])


def test_verbs_are_known_before_a_task_is_imported():
    assert (
        tuple(TASKS[name].model.verb for name in ("translation", "classification", "causal_lm", "masked_lm")) == VERBS
    )

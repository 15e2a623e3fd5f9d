"""What a trained model of any task takes: texts, in anything that can be iterated over."""

from __future__ import annotations

import jaxtyping
import pytest

from one_layer.system.errors import UserError
from one_layer.tasks import TASKS
from one_layer.tasks.known import VERBS

NO_LISTS = [
    ("two dogs", "'two dogs' is no list of texts"),
    ([("a", 3)], r"text 1 of the list is \('a', 3\), which is no text"),
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


@pytest.mark.parametrize("task", TASKS)
def test_a_model_says_what_it_does_where_it_is_asked_for_what_others_do(task):
    model = object.__new__(TASKS[task].model)
    for verb in set(VERBS) - {model.verb}:
        with pytest.raises(UserError, match=rf"^this is a {task} model, which does not {verb}; call {model.verb}\("):
            getattr(model, verb)
        assert not hasattr(model, verb)
    with pytest.raises(AttributeError, match="has no attribute 'translat'"):
        _ = model.translat


def test_masks_are_given_by_role(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    model = object.__new__(TASKS["translation"].model)
    with pytest.raises(UserError, match=r"^\[1\] gives no masks by role; give them as a dict"):
        model.with_masks([1])


def test_verbs_are_known_before_a_task_is_imported():
    assert (
        tuple(TASKS[name].model.verb for name in ("translation", "classification", "causal_lm", "masked_lm")) == VERBS
    )

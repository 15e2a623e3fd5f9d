"""What `one_layer.load` returns: it says what it is, takes texts, shows its parts by role, and computes with other masks."""

import jaxtyping
import numpy as np
import pytest

import one_layer
from one_layer.supermask import Supermask
from one_layer.tasks import TASKS
from one_layer.tasks.known import VERBS
from tests import tiny, user_error

LINES = ["wen besucht sie jetzt ?", "", "sie hat einem mann die zeitung gezeigt ."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.trained(tmp_path_factory)


@pytest.fixture(scope="module", params=["run", "ticket", "packed"])
def model(request, folder):
    path = folder if request.param == "run" else folder / "ticket.safetensors"
    return one_layer.load(path, packed=request.param == "packed")


def test_it_says_what_it_is(model, folder):
    ticket = folder / "ticket.safetensors"
    shape = "<TranslationModel: translation model of 1+1 layers, de to en; width 16, feed-forward width 32, 2 heads; one_layer, keep 0.5; "
    size = (
        f"{ticket.stat().st_size:,} bytes; {ticket}, update "
        if model.file_bytes
        else "bytes in a ticket; best, update "
    )
    assert repr(model).startswith(shape) and size in repr(model) and repr(model).endswith(f"{model.step}>")


def test_only_a_run_has_scores_and_they_give_the_masks(model):
    if model.file_bytes is not None:
        with user_error(r"ticket\.safetensors has no scores, because .* load the folder of the run"):
            _ = model.scores
        return
    for role, scores in model.scores.items():
        layers = zip(
            scores.reshape(-1, *scores.shape[-2:]), model.masks[role].reshape(-1, *scores.shape[-2:]), strict=True
        )
        for layer, mask in layers:
            np.testing.assert_array_equal(Supermask(0.5)(layer), mask)
    with user_error("best with other masks has no scores"):
        _ = model.with_masks({}).scores


def test_its_own_masks_translate_as_it_does_and_others_do_not(model):
    before = model.lines(LINES)
    dice = np.random.default_rng(0)
    flipped = {role: 1 - mask for role, mask in model.masks.items()}
    drawn = {role: dice.permuted(mask, axis=-1) for role, mask in model.masks.items()}
    same, one = model.with_masks(model.masks), model.with_masks({"encoder/ffn/in": flipped["encoder/ffn/in"]})
    assert same.lines(LINES) == before and (same.packed, same.file_bytes) == (model.packed, None)
    others = [tuple(model.with_masks(each).lines(LINES)) for each in (flipped, drawn)]
    assert len({*others, tuple(before)}) == 3
    for role, mask in one.masks.items():
        np.testing.assert_array_equal(mask, (flipped if role == "encoder/ffn/in" else model.masks)[role])
    assert model.lines(LINES) == before


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
        with user_error(rf'{message}; give a list of texts, for instance {model.verb}\(\["two dogs"\]\)$'):
            getattr(model, method)(given)


def test_half_of_a_surrogate_pair_is_no_character():
    model = object.__new__(TASKS["translation"].model)
    with user_error(r"text 2 of the list has half of a surrogate pair, '\\ud800'"):
        model.given(["\U0001f600", "a \ud800"])


@pytest.mark.parametrize("task", TASKS)
def test_a_model_says_what_it_does_where_it_is_asked_for_what_others_do(task):
    model = object.__new__(TASKS[task].model)
    for verb in set(VERBS) - {model.verb}:
        with user_error(rf"^this is a {task} model, which does not {verb}; call {model.verb}\("):
            getattr(model, verb)
        assert not hasattr(model, verb)
    with pytest.raises(AttributeError, match="has no attribute 'translat'"):
        _ = model.translat


def test_masks_are_given_by_role(monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    model = object.__new__(TASKS["translation"].model)
    with user_error(r"^\[1\] gives no masks by role; give them as a dict"):
        model.with_masks([1])


def test_verbs_are_known_before_a_task_is_imported():
    assert (
        tuple(TASKS[name].model.verb for name in ("translation", "classification", "causal_lm", "masked_lm")) == VERBS
    )

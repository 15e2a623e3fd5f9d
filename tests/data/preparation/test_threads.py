"""Calls at the same time: results keep their order, and an error ends them."""

import threading

import pytest

from one_layer.data.preparation.parallel import in_threads


@pytest.mark.parametrize("at_once", [1, 2, 3, 9])
def test_results_keep_their_order(at_once):
    before = []
    found = list(in_threads(lambda item: item * item, range(7), at_once, lambda: before.append(None)))
    assert found == [item * item for item in range(7)] and len(before) == 7


def test_two_run_at_the_same_time_and_no_more():
    """Each waits for another one, which would never come if they ran one after the other."""
    both, running, most = threading.Barrier(2), [], []

    def function(item):
        running.append(item)
        both.wait(timeout=60)
        most.append(len(running))
        running.remove(item)

    list(in_threads(function, range(6), 2, lambda: None))
    assert max(most) <= 2


@pytest.mark.parametrize("at_once", [1, 2])
def test_an_error_ends_them(at_once):
    seen = []

    def function(item):
        seen.append(item)
        if item == 2:
            raise ValueError(item)
        return item

    with pytest.raises(ValueError, match="2"):
        list(in_threads(function, range(50), at_once, lambda: None))
    assert max(seen) <= 2 + at_once

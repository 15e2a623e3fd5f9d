"""Signals during training: the first one is only noted, and then the usual handlers are back, except for SLURM's USR2."""

import signal

import pytest

from one_layer.training.interruption import Interruption

ALL = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2)


@pytest.mark.parametrize("number", ALL)
def test_the_first_signal_is_noted_and_usr2_may_follow(number):
    before = [signal.getsignal(each) for each in ALL]
    with Interruption() as interruption:
        assert interruption.signal is None
        signal.raise_signal(number)
        assert interruption.signal == number
        assert [signal.getsignal(each) for each in ALL[:2]] == before[:2], "a second one acts as usual"
        for _ in range(2):
            signal.raise_signal(signal.SIGUSR2)
        assert interruption.signal == number
    assert [signal.getsignal(each) for each in ALL] == before


def test_without_a_signal_all_handlers_come_back():
    before = [signal.getsignal(each) for each in ALL]
    with Interruption():
        assert [signal.getsignal(each) for each in ALL] != before
    assert [signal.getsignal(each) for each in ALL] == before

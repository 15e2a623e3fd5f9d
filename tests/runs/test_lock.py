"""The lock of a folder: one process at a time, gone with the work, and no obstacle where a file system has no locks."""

import errno
import fcntl

import pytest

from one_layer.runs.lock import locked
from tests import user_error


def test_a_second_one_is_told_who_works_there(tmp_path):
    with locked(tmp_path / "run", "trains in it"):
        second = locked(tmp_path / "run", "trains in it")
        with user_error(r"is in use: process \d+ on .* trains in it; wait for it, stop it"):
            second.__enter__()
    assert not (tmp_path / "run").exists()  # it was made for the lock, and is empty


def test_without_locks_the_user_is_told_and_works_on(tmp_path, monkeypatch, caplog):
    def flock(file, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with locked(tmp_path, "trains in it"):
        assert "this file system has no locks; make sure that no other process trains in it" in caplog.text


def test_another_fault_of_the_file_system_is_not_hidden(tmp_path, monkeypatch):
    def flock(file, how):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(OSError, match="Input/output error"), locked(tmp_path, "trains in it"):
        pass

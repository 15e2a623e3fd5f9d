"""Traced programs that are kept: a second process reads what the first has traced, and nothing but a whole file of the same program."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer.system import program_cache
from one_layer.tasks import kept_traces
from one_layer.tasks.kept_traces import KeptTraces

X = {"x": np.arange(3, dtype=np.float32)}


class Counted:
    """A function that counts how often it is traced. A new one is what another process has."""

    def __init__(self, about="a function", factor=2.0):
        self.traced = 0

        def function(tree, shift):
            self.traced += 1
            return tree["x"] * factor + shift, {"sum": jnp.sum(tree["x"])}

        self.call = KeptTraces(jax.jit(function), about)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(program_cache, "_kept", True)
    monkeypatch.setattr(jax, "device_count", lambda: 1)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    return tmp_path / "one_layer_traces"


def check(function, x=X):
    """Calls `function`, compares its result, and returns how often it was traced."""
    found, total = function.call(x, np.float32(1))
    assert np.array_equal(found, x["x"] * 2 + 1) and total["sum"] == x["x"].sum()
    return function.traced


def test_a_second_process_does_not_trace(folder):
    first = Counted()
    assert [check(first), check(first)] == [1, 1]
    assert check(Counted()) == 0
    assert check(Counted(), {"x": np.arange(5, dtype=np.float32)}) == 1
    assert check(Counted("another one")) == 1


def test_what_is_no_whole_file_of_the_program_is_made_again(folder):
    check(Counted())
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    for damaged in (b"", whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1]), b"\0" * len(whole)):
        path.write_bytes(damaged)
        assert check(Counted()) == 1
        assert check(Counted()) == 0


def test_another_code_makes_its_own(folder, monkeypatch):
    check(Counted())
    monkeypatch.setattr(kept_traces, "_code", lambda: "another version")
    assert check(Counted()) == 1
    assert len(list(folder.iterdir())) == 2


def test_the_oldest_make_room(folder, monkeypatch):
    monkeypatch.setattr(kept_traces, "_MOST", 2)
    for about in "abc":
        check(Counted(about))
    assert len(list(folder.iterdir())) == 2
    assert [check(Counted("c")), check(Counted("a"))] == [0, 1]


def test_a_folder_that_cannot_be_written_changes_nothing(folder):
    folder.write_text("a file in the way")
    assert [check(Counted()), check(Counted())] == [1, 1]


@pytest.mark.parametrize("named", ["", "gs://bucket/programs"])
def test_where_nothing_is_kept_the_function_is_called_as_it_is(folder, monkeypatch, named):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", named)
    assert [check(Counted()), check(Counted())] == [1, 1]
    assert not folder.exists()

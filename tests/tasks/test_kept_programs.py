"""Compiled programs that are kept: a second process reads what the first has compiled, and nothing but a whole file of the same program."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer.system import program_cache
from one_layer.tasks import kept_programs
from one_layer.tasks.kept_programs import KeptProgram

X = {"x": np.arange(3, dtype=np.float32), "unread": np.zeros(2, np.float32)}


class Counted:
    """A function that counts how often it is traced. A new one is what another process has."""

    def __init__(self, about="a function", factor=2.0):
        self.traced = 0

        def function(tree, shift):
            self.traced += 1
            return tree["x"] * factor + shift, {"sum": jnp.sum(tree["x"])}

        self.call = KeptProgram(lambda: function, about)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(program_cache, "_kept", True)
    monkeypatch.setattr(jax, "device_count", lambda: 1)
    one = jax.devices()[:1]
    monkeypatch.setattr(jax, "devices", lambda: one)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path))
    return tmp_path / "one_layer_programs"


def check(function, x=X):
    """Calls `function`, compares its result, and returns how often it was traced."""
    found, total = function.call(x, np.float32(1))
    assert np.array_equal(found, x["x"] * 2 + 1) and total["sum"] == x["x"].sum()
    return function.traced


def test_inside_another_program_it_is_a_part_of_it(folder):
    function = Counted()
    found, _ = jax.eval_shape(function.call, X, np.float32(1))
    assert found.shape == X["x"].shape and not folder.exists()


def test_no_program_of_an_accelerator_is_kept(folder, monkeypatch):
    """They are left to JAX's own cache, because nothing was measured there."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert check(Counted()) == 1 and not folder.exists()


def test_a_second_process_does_not_trace(folder):
    first = Counted()
    assert [check(first), check(first)] == [1, 1]
    assert check(Counted()) == 0
    assert check(Counted(), {"x": np.arange(5, dtype=np.float32)}) == 1
    assert check(Counted("another one")) == 1


def test_threads_that_compile_at_the_same_time_keep_all_programs_and_the_cache(folder, monkeypatch):
    """The cache of JAX is off while one of them compiles, and another one must not take this for the user's wish."""
    functions, anew, compiling = (
        [Counted(), Counted("another one", 3.0)],
        kept_programs._compiling_anew,
        threading.Event(),
    )

    @contextmanager
    def slow():
        with anew():
            compiling.set()
            time.sleep(0.1)  # the others come
            yield

    monkeypatch.setattr(kept_programs, "_compiling_anew", slow)

    def call(place):
        if place:
            compiling.wait(10)
        return functions[place % 2].call({"x": np.arange(3 + place, dtype=np.float32)}, np.float32(1))

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(call, range(4)))
    assert all(np.array_equal(found[n][0], np.arange(3 + n) * (2 + n % 2) + 1) for n in range(4))
    assert len([*folder.glob("*.program")]) == len([*folder.glob("*.call")]) == 4
    assert jax.config.jax_enable_compilation_cache


@pytest.mark.parametrize("kind", ["call", "program"])
def test_what_is_no_whole_file_of_the_program_is_made_again(folder, kind):
    check(Counted())
    (path,) = folder.glob(f"*.{kind}")
    whole = path.read_bytes()
    for damaged in (b"", whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1]), b"\0" * len(whole)):
        path.write_bytes(damaged)
        assert check(Counted()) == 1
        assert check(Counted()) == 0


def test_a_program_that_this_processor_cannot_load_is_made_again(folder):
    check(Counted())
    (path,) = folder.glob("*.program")
    kept_programs._write(path, kept_programs.zstandard.compress(b"of another processor"))
    assert [check(Counted()), check(Counted())] == [1, 0]


def test_a_program_that_does_not_run_is_made_again(folder, monkeypatch):
    check(Counted())
    running, runs = kept_programs._running, []

    def broken_at_first(executable, tree):
        def run(leaves):
            if not runs:
                runs.append("broken")
                raise jax.errors.JaxRuntimeError("INTERNAL: Function concatenate.4_kernel not found")
            return running(executable, tree)(leaves)

        return run

    monkeypatch.setattr(kept_programs, "_running", broken_at_first)
    assert [check(Counted()), check(Counted())] == [1, 0] and runs


def test_what_this_process_has_read_from_the_cache_of_jax_is_not_kept(folder, monkeypatch):
    """JAX gives the same program again, which lacks its functions when it is written."""
    shared = Counted()
    monkeypatch.setattr(program_cache, "_kept", False)
    check(shared)
    monkeypatch.setattr(program_cache, "_kept", True)

    class Read:
        def __init__(self, executable):
            self.execute_sharded = executable.execute_sharded

        def serialize(self):
            raise jax.errors.JaxRuntimeError("UNIMPLEMENTED: `LessThan` is not serializable.")

    compiled = jax.stages.Compiled.runtime_executable
    monkeypatch.setattr(jax.stages.Compiled, "runtime_executable", lambda self: Read(compiled(self)))
    assert check(shared) == 1
    assert not folder.exists()


def test_another_code_traces_and_compiles_only_what_differs(folder, monkeypatch):
    check(Counted())
    (program,) = folder.glob("*.program")
    monkeypatch.setattr(kept_programs, "_code", lambda: "another version")
    monkeypatch.setattr(kept_programs, "_compiling_anew", None)  # nothing is compiled
    assert [check(Counted()), check(Counted())] == [1, 0]
    assert [*folder.glob("*.program")] == [program] and len([*folder.glob("*.call")]) == 2


@pytest.mark.parametrize(("seconds", "files"), [(-1, 2), (1, 0)])
def test_sources_that_changed_after_their_import_name_no_file(folder, monkeypatch, tmp_path, seconds, files):
    source = tmp_path / "source.py"
    source.touch()
    os.utime(source, (0, kept_programs._IMPORTED + seconds))
    monkeypatch.setattr(kept_programs, "_PACKAGE", tmp_path)
    monkeypatch.setattr(kept_programs, "_code", kept_programs._code.__wrapped__)  # without its memory
    assert check(Counted()) == 1
    assert len([*folder.glob("*")]) == files


def test_the_oldest_make_room(folder, monkeypatch):
    check(Counted("a"))
    size = sum(file.stat().st_size for file in folder.iterdir())
    monkeypatch.setattr(kept_programs, "_MOST", size * 5 // 2)
    for about, factor in zip("bcd", (3.0, 4.0, 5.0), strict=True):
        Counted(about, factor).call(X, np.float32(1))
    assert sum(file.stat().st_size for file in folder.iterdir()) <= size * 5 // 2
    last = Counted("d", 5.0)
    last.call(X, np.float32(1))
    assert [last.traced, check(Counted("a"))] == [0, 1]


def test_a_folder_that_cannot_be_written_changes_nothing(folder):
    folder.write_text("a file in the way")
    assert [check(Counted()), check(Counted())] == [1, 1]


@pytest.mark.parametrize("named", ["", "gs://bucket/programs"])
def test_where_nothing_is_kept_the_function_is_called_as_it_is(folder, monkeypatch, named):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", named)
    assert [check(Counted()), check(Counted())] == [1, 1]
    assert not folder.exists()


def test_who_wants_no_compiled_programs_gets_none_of_these(folder):
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        assert [check(Counted()), check(Counted())] == [1, 1]
    finally:
        jax.config.update("jax_enable_compilation_cache", True)
    assert not folder.exists()

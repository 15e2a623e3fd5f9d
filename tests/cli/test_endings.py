"""How the command ends: on Ctrl-C, without memory, and by a mistake of the program."""

import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer.cli.command import _unraisable, ended


@pytest.mark.parametrize("module", ["orbax.checkpoint", "own"])
def test_only_readers_that_orbax_leaves_open_end_in_silence(monkeypatch, capsys, module):
    monkeypatch.setattr(sys, "unraisablehook", _unraisable)
    names = {"__name__": module}
    exec("def reader():\n try: yield\n except BaseException: raise Exception('not read')", names)
    reader = names["reader"]()
    next(reader)
    del reader
    assert ("not read" in capsys.readouterr().err) == (module == "own")


@pytest.mark.parametrize("size", [np.zeros, lambda shape: jax.jit(lambda x: jnp.zeros(shape) + x)(1.0)])
def test_too_little_memory_is_one_sentence(capsys, size):
    with pytest.raises(SystemExit) as caught:
        ended(lambda: size((10**7, 10**7)))
    sentence, end = capsys.readouterr().err.split("\n")
    assert caught.value.code == 1 and end == ""
    assert re.match(
        r"error: there is too little memory \(.*allocat.*\); where .*, lower .* evaluation.beam .* data.max_tokens",
        sentence,
    )


def test_an_error_of_the_program_keeps_its_traceback(capsys):
    def failing():
        raise RuntimeError("a mistake of the program")

    with pytest.raises(RuntimeError, match="a mistake"):
        ended(failing)
    assert capsys.readouterr().err == ""

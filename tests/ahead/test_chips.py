"""Targets by their names, and what is said where one is unknown or its packages are missing."""

import importlib.util

import pytest

from one_layer.ahead.chips import CHIPS, Target
from one_layer.system.errors import UserError


@pytest.mark.parametrize(("name", "number"), [("h100", 1), ("h100x64", 64), ("v5e-8", 8)])
def test_a_name_says_the_chip_and_how_many(name, number):
    target = Target.of(name)
    assert (
        target.number == number
        and target.chip is CHIPS[name[: len(name) - len(str(number)) - 1] if number > 1 else name]
    )


@pytest.mark.parametrize(
    "name", ["", "h100x", "h100x0", "h100x7", "h100x12", "h100-8", "v5e-3", "v5ex8", "gpu", "h100x8x8"]
)
def test_an_unknown_name_is_refused_with_the_known_ones(name):
    with pytest.raises(UserError, match=r"is unknown; give one of a100, h100, h200 .* v5e, v6e .* such as v5e-8"):
        Target.of(name)


@pytest.mark.parametrize(("name", "package"), [("h100", "jax-cuda12-plugin"), ("v5e-8", "libtpu")])
def test_a_missing_package_is_said_with_the_command(name, package, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        UserError, match=rf"needs the package {package}; pip install -r requirements-ahead.txt installs it"
    ):
        Target.of(name).devices()

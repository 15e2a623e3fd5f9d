"""How precisely the tests multiply: in float32 also on accelerators, if nobody asks for something else."""

from __future__ import annotations

import jax
import pytest

from tests.compiling import multiply_in_float32


def never():
    raise AssertionError("JAX was asked for its devices")


@pytest.mark.parametrize(
    ("platforms", "device", "environment", "expected"),
    [
        ("", "gpu", None, ["highest"]),
        (None, "gpu", None, ["highest"]),
        ("cuda,cpu", "gpu", None, ["highest"]),
        ("", "cpu", None, []),
        ("cpu", None, None, []),
        ("", None, "highest", []),  # JAX reads the environment by itself
        ("", None, "default", []),
    ],
)
def test_products_are_in_float32_on_accelerators(platforms, device, environment, expected, monkeypatch):
    for name, value in {"JAX_PLATFORMS": platforms, "JAX_DEFAULT_MATMUL_PRECISION": environment}.items():
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    asked = []
    monkeypatch.setattr(jax, "default_backend", (lambda: device) if device else never)
    monkeypatch.setattr(
        jax.config,
        "update",
        lambda name, value: asked.append(value if name == "jax_default_matmul_precision" else name),
    )
    multiply_in_float32()
    assert asked == expected

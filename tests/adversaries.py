"""Scores that are hard to select from."""

import numpy as np


def adversaries(size: int, seed: int) -> dict[str, np.ndarray]:
    """Scores on which a search by interpolation does badly, and scores at the ends of what float32 holds."""
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal(size)
    with np.errstate(over="ignore"):
        found = {
            "all zero": np.zeros(size),
            "zeros of both signs": rng.choice([0.0, -0.0], size),
            "one value": np.full(size, -0.3),
            "one denormal": np.full(size, 3e-42),
            "two values": rng.choice([1.0, -2.0], size),
            "neighbouring floats": 1.0 + rng.integers(0, 3, size) * 2.0**-23,
            "neighbouring denormals": rng.integers(0, 4, size) * 2.0**-149,
            "eighty decades": 10.0 ** rng.uniform(-44, 38, size) * np.sign(normal),
            "geometric": 2.0 ** (120.0 - np.arange(size) % 260),
            "two clusters": np.where(rng.random(size) < 0.1, normal * 1e37, normal * 1e-40),
            "heavy tails": rng.standard_cauchy(size) ** 9,
            "extremes": rng.choice([2.0**-149, 3.4028235e38, 0.0, -np.inf], size),
            "infinities": rng.choice([np.inf, -np.inf, 1.0, 0.0], size),
            "one infinity among tiny ones": np.r_[np.full(size - 1, 1e-38), np.inf],
            "largest finite": 3.4028235e38 * rng.choice([1.0, -0.5], size),
        }
        return {name: values.astype(np.float32) for name, values in found.items()}

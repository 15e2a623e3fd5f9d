"""Tickets small enough for tests: one of every kind of model, as training could leave it."""

import jax
import jax.numpy as jnp
import numpy as np

from one_layer import tickets
from one_layer.models import ModelConfig, initialize
from tests.fuzz_tickets import assets

# Few shapes, so that there is little to compile; 36 bits do not fill their bytes.
TINY = ModelConfig(12, 6, d_model=6, ffn=12, heads=2, encoder_layers=2, decoder_layers=3)
SEED = 7
CASES = {
    "default": {},
    "reference": {"init_preset": "reference", "shared_embedding": True, "source_vocab": 6},
    "signs": {"selection": "signed_threshold", "threshold": 0.1, "init_scheme": "kaiming_normal"},
    "signs alone": {
        "selection": "sign",
        "keep": 1.0,
        "init_scheme": "unsigned_constant",
        "init_attention": "xavier_constant",
    },
    "scaled": {
        "dynamic_scale": True,
        "keep": 0.1,
        "init_scheme": "signed_constant",
        "gains": "columns",
        "vector_precision": "int4",
    },
    "one trained layer": {
        "weights": "dense",
        "sharing": "weights",
        "gains": "columns",
        "adapter_rank": 2,
        "trained_precision": "int4",
    },
    "one mask": {
        "weights": "multi_layer",
        "sharing": "masks",
        "selection": "sigmoid_threshold",
        "threshold": 0.5,
        "gains": "columns",
        "adapter_rank": 2,
        "trained_precision": "int4",
        "keep": 1.0,  # ignored: a threshold leaves weights out nevertheless
    },
    "own weights": {"weights": "multi_layer", "selection": "score", "keep": 0.9, "init_scheme": "unsigned_constant"},
    "shared table": {"keep": 0.45, "shared_embedding": True, "source_vocab": 6},
    "trained besides": {"norm": "affine", "bias": True, "share_norm_scale": True, "embedding": "trained"},
    "frozen": {"norm": "frozen", "embedding": "frozen", "init_scheme": "xavier_normal"},
    "from elsewhere": {"embedding_path": "vectors.txt"},
    "no mask": {"keep": 1.0, "norm": "affine"},
    "dense": {"weights": "dense", "embedding": None, "norm": None, "bias": None},
}
QUICK = ("default", "scaled", "trained besides", "mixed")  # those of `make test`


def trained(config: ModelConfig, seed: int = SEED) -> dict:
    """Variables as training could leave them: nothing of `params` is what it was, and tables from elsewhere are numbers."""
    dice = np.random.default_rng(0)
    made = initialize(config, seed)
    made["params"] = jax.tree.map(lambda a: a + jnp.asarray(dice.normal(0, 0.05, a.shape), jnp.float32), made["params"])
    if "frozen" in made:
        made["frozen"] = jax.tree.map(lambda a: jnp.asarray(dice.normal(size=a.shape), jnp.float32), made["frozen"])
    return made


def shaken(variables: dict) -> dict:
    """`variables` with noise in biases and norms, whose zeros and ones would hide that they are left out."""
    noise = np.random.default_rng(1)
    return jax.tree_util.tree_map_with_path(
        lambda path, a: a + np.float32(noise.normal(0, 0.3, a.shape)) * (path[-1].key in ("bias", "scale")), variables
    )


def ticket_of(config: ModelConfig, seed: int = SEED, variables: dict | None = None) -> tickets.Ticket:
    return tickets.make(config, seed, variables or trained(config, seed), assets(config))


def flat(tree) -> dict[str, np.ndarray]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {"/".join(key.key for key in path): np.asarray(leaf) for path, leaf in leaves}


def same_numbers(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> None:
    assert ours.keys() == theirs.keys()
    for name in ours:
        assert ours[name].dtype == theirs[name].dtype == np.float32, name
        # A mask's 0 may be a -0 where it comes from a negative score: no number of a network depends on it.
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)

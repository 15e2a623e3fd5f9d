"""A ticket is the whole model: every weight comes out that went in, for the package and for a reader of its own."""

import dataclasses
import hashlib
import operator
import os
import subprocess
import sys
from dataclasses import astuple
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer import tickets
from one_layer.data.text.preprocess import Preprocessing
from one_layer.layers.materializing import materialize
from one_layer.layers.quantization import quantized
from one_layer.models import build, recipes, weights
from tests import fuzz_tickets, mostly_slow, numpy_transformer
from tests.compiling import jit
from tests.fuzz_tickets import assets
from tests.ticket_reader import TicketReader
from tests.tiny_tickets import CASES, QUICK, SEED, TINY, flat, same_numbers, ticket_of, trained

SOURCE = np.array([[5, 6, 7, 2], [8, 2, 1, 1]], np.int32)
TARGET = np.array([[2, 5, 4], [2, 4, 1]], np.int32)


@pytest.fixture(scope="module", params=mostly_slow(CASES, QUICK))
def case(request, tmp_path_factory):
    """A model's config and variables, and the file of its ticket."""
    config = TINY.replace(**CASES[request.param])
    variables = trained(config)
    path = tmp_path_factory.mktemp("tickets") / "ticket.safetensors"
    tickets.save(path, ticket_of(config, variables=variables))
    return config, quantized(variables, config.precisions), path


def without_scores(variables):
    """What no mask is made of."""
    return {name: leaf for name, leaf in flat(variables).items() if not name.endswith("/scores")}


def test_the_network_has_from_its_ticket_what_it_had(case):
    """Products are compared with what another program reads, and that with the model's own weights and scores (below)."""
    config, variables, path = case
    loaded = tickets.load(path)
    assert (loaded.config, loaded.seed, loaded.assets) == (config, SEED, assets(config))
    reader, scale = TicketReader(path), config.supermask.scaled
    expected = without_scores(variables)
    for module, recipe in recipes(config).items():
        if (mask := reader.masks.get(recipe.role)) is not None:
            path = "/".join((*module, "kernel"))
            weights = expected.pop(f"frozen/{path}" if f"frozen/{path}" in expected else f"random/{path}")
            axis = 0 if module[-1].endswith("embedding") else -1
            layers = [np.asarray(scale(jnp.asarray(m), axis)) for m in mask.reshape(-1, *mask.shape[-2:])]
            expected[f"materialized/{path}"] = weights * np.stack(layers).reshape(mask.shape)
    for name in [each for each in expected if each.endswith("column_gain")]:
        kernel = f"{name.removeprefix('params/').removesuffix('column_gain')}kernel"
        product, shared = f"materialized/{kernel}", f"params/{kernel}"  # one trained matrix for all depths has no mask
        expected[product] = expected.pop(shared if shared in expected else product) * expected.pop(name)[..., None, :]
    found = flat(tickets.variables(loaded))
    for name in [each for each in expected if each.endswith("adapter_in")]:
        module = name.removeprefix("params/").removesuffix("adapter_in")
        added = np.einsum("...ri,...ro->...io", expected.pop(name), expected.pop(f"params/{module}adapter_out"))
        product = f"materialized/{module}kernel"
        np.testing.assert_allclose(found.pop(product), expected.pop(product) + added, rtol=1e-5, atol=1e-6)
    same_numbers(found, expected)


def test_packed_it_holds_a_bit_for_every_masked_weight_and_no_product(case):
    config, variables, path = case
    found = flat(tickets.variables(tickets.load(path), packed=True))
    bits = {name.removeprefix("packed/"): found.pop(name) for name in list(found) if name.startswith("packed/")}
    scores = {name.removeprefix("params/"): leaf for name, leaf in flat(variables).items() if name.endswith("/scores")}
    same_numbers(found, without_scores(variables))
    kinds = {"signed_threshold": ("mask", "sign"), "sign": ("sign",)}.get(config.selection, ("mask",))
    assert bits.keys() == {name.replace("scores", kind) for name in scores for kind in kinds}
    for name, packed in bits.items():
        layers = {"encoder": (2,), "decoder": (3,)}.get(name.split("/")[0], ())
        rows, columns = scores[name.rpartition("/")[0] + "/scores"].shape[-2:]
        assert packed.dtype == np.uint8 and packed.shape == (*layers, -(-rows * columns // 8))


def test_another_program_reads_every_weight_mask_array_and_word(case):
    config, variables, path = case
    reader = TicketReader(path)
    roles = {module: recipe.role for module, recipe in recipes(config).items()}
    drawn, masks, joined = 0, 0, {"vectors": {}, "adapters": {}}
    for name, leaf in flat(variables).items():
        collection, *module, kind = name.split("/")
        role = roles.get(tuple(module)) or f"{module[0]}/{module[2].removesuffix('_norm')}/norm"
        if kind == "scores":
            layers = leaf.reshape(-1, *leaf.shape[-2:]).astype(np.float64)
            expected = np.stack([numpy_transformer.mask_of(config, layer) for layer in layers]).reshape(leaf.shape)
            np.testing.assert_array_equal(reader.masks[role], expected)
            masks += 1
        elif kind == "kernel" and collection != "params":
            np.testing.assert_array_equal(reader.weights[role], leaf)
            drawn += 1
        elif kind != "kernel" and config.precisions.of(kind, leaf.shape) != "float32":
            joined["adapters" if "adapter" in kind else "vectors"][f"{collection}/{role}/{kind}"] = leaf
        else:
            np.testing.assert_array_equal(reader.arrays[f"{collection}/{role}/{kind}"], leaf)
    for (joint, leaves), codec in zip(joined.items(), reversed(astuple(config.precisions)), strict=True):
        for name, array in reader.joined(joint, codec, {name: leaf.shape for name, leaf in leaves.items()}).items():
            np.testing.assert_array_equal(array, leaves[name], err_msg=name)
    assert (len(reader.masks), len(reader.weights)) == (masks, drawn)
    assert bool(masks) == (config.masked and (config.keep < 1 or not config.supermask.exact))
    texts = assets(config)
    assert [tuple(reader.vocabularies[side]) for side in ("source", "target")] == [v.tokens for v in texts.vocabularies]
    assert reader.codes == {"source": fuzz_tickets.CODES, "target": fuzz_tickets.CODES}
    steps = {"tokenize": True, "normalize": True, "split_hyphens": False, "lowercase": True}
    steps |= {"bpe_kind": "subword-nmt", "pairs": False}
    assert reader.preprocessing["target"] == {"language": "en", **steps}
    model = dataclasses.asdict(config)
    for name in ("family", "backskip", "train_only", "freeze"):  # the task says the first; the others are for training
        del model[name]
    assert reader.model == model


@pytest.mark.parametrize(
    "changes",
    [
        {"weights": "dense", "encoder_layers": "LRL", "decoder_layers": "RLR", "reservoir": "gru", "bias": True},
        {"encoder_layers": "SRS", "decoder_layers": "SRLS", "reservoir": "conv"},
        {"encoder_layers": "SRRS", "decoder_layers": "SSR", "reservoir": "ffn", "norm": "affine"},
        {"norm_position": "pre", "norm": "affine", "encoder_layers": "SR"},
        {"norm_position": "pre", "block": "modern", "heads": 3},
    ],
    ids=lambda changes: changes.get("reservoir") or changes.get("block", "pre"),
)
def test_another_program_reads_reservoirs_and_layers_of_several_kinds(changes, tmp_path):
    """By the roles that docs/ticket-format.md gives: the main kind's without a word, the others' with the word of their kind."""
    config = TINY.replace(**({"embedding": None, "norm": None, "bias": None} | changes))
    variables = trained(config)
    tickets.save(tmp_path / "ticket.safetensors", ticket_of(config, variables=variables))
    reader = TicketReader(tmp_path / "ticket.safetensors")
    drawn = 0
    for module, recipe in recipes(config).items():
        if {"reservoir", "trained"} & set(module):
            assert recipe.role.startswith("/".join(module[:2]))
        if (weights := flat(variables).get("/".join(("random", *module, "kernel")))) is not None:
            np.testing.assert_array_equal(reader.weights[recipe.role], weights)
            drawn += 1
    assert drawn == len(reader.weights) > 0


@pytest.mark.parametrize("name", ["signs", "scaled"])
def test_logits_are_the_checkpoint_s_bit_for_bit(name, tmp_path):
    config = TINY.replace(**CASES[name])
    variables = trained(config)
    tickets.save(tmp_path / "t", ticket_of(config, variables=variables))
    loaded = tickets.load(tmp_path / "t")
    prepare, apply = jit(partial(materialize, mask=config.supermask)), jit(build(config).apply)
    logits = np.asarray(apply(prepare(quantized(variables, config.precisions)), SOURCE, TARGET))
    for packed in (False, True):
        found = np.asarray(apply(tickets.variables(loaded, packed), SOURCE, TARGET))
        np.testing.assert_array_equal(found.view(np.uint32), logits.view(np.uint32))


def test_a_renamed_module_finds_its_weights_by_their_role(tmp_path, monkeypatch):
    tickets.save(tmp_path / "t", ticket_of(TINY))
    before = flat(tickets.variables(tickets.load(tmp_path / "t")))
    names, matrices = {"query": "q", "ffn_out": "down"}, weights.matrices

    def renamed(config):
        for part in matrices(config):
            yield part._replace(path=(*part.path[:-1], names.get(part.path[-1], part.path[-1])))

    monkeypatch.setattr(weights, "matrices", renamed)
    monkeypatch.setattr(weights, "_parts", weights._parts.__wrapped__)  # which keeps what it has found
    after = flat(tickets.variables(tickets.load(tmp_path / "t")))
    assert after.keys() != before.keys()
    same_numbers(
        after, {"/".join(names.get(part, part) for part in name.split("/")): leaf for name, leaf in before.items()}
    )


ELSEWHERE = """
import hashlib, sys, jax, numpy as np
from one_layer import tickets
tree = tickets.variables(tickets.load(sys.argv[1]))
print(hashlib.blake2b(b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(tree))).hexdigest())
"""


@pytest.mark.slow
def test_another_process_with_other_seeds_of_jax_and_python_makes_the_same_weights(tmp_path):
    tickets.save(tmp_path / "t", ticket_of(TINY))
    leaves = jax.tree.leaves(tickets.variables(tickets.load(tmp_path / "t")))
    ours = hashlib.blake2b(b"".join(np.asarray(leaf).tobytes() for leaf in leaves)).hexdigest()
    other = {"JAX_DEFAULT_PRNG_IMPL": "rbg", "JAX_THREEFRY_PARTITIONABLE": "0", "PYTHONHASHSEED": "5"}
    arguments = [sys.executable, "-c", ELSEWHERE, str(tmp_path / "t")]
    done = subprocess.run(arguments, env={**os.environ, **other}, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ours


def test_tickets_on_one_random_layer_have_it_in_common(tmp_path):
    configs = {"a": TINY, "b": TINY.replace(source_vocab=17), "c": TINY, "d": TINY.replace(keep=0.2)}
    for (name, config), seed in zip(configs.items(), (SEED, SEED, SEED + 1, SEED), strict=True):
        tickets.save(tmp_path / name, ticket_of(config, seed))
    drawn = {}
    a, b, c, d = (
        tickets.variables(ticket, packed=True)["random"]
        for ticket in (tickets.load(tmp_path / name, drawn) for name in configs)
    )
    common = [
        (one is other, name) for name, one, other in zip(flat(a), jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    ]
    assert [name for shared, name in common if not shared] == ["source_embedding/kernel"], "its shape alone differs"
    for others in (c, d):  # another seed; wider draws
        assert not any(map(operator.is_, jax.tree.leaves(a), jax.tree.leaves(others)))


def test_byte_level_pieces_are_kept(tmp_path):
    codes = "Ġ h\ni s\n"
    sides = [Preprocessing(language, codes=codes, bpe_kind="byte-level") for language in ("de", "en")]
    texts = dataclasses.replace(assets(TINY), source_preprocessing=sides[0], target_preprocessing=sides[1])
    tickets.save(tmp_path / "bytes", dataclasses.replace(ticket_of(TINY), assets=texts))
    assert tickets.load(tmp_path / "bytes").assets == texts
    reader = TicketReader(tmp_path / "bytes")
    assert reader.preprocessing["source"]["bpe_kind"] == "byte-level" and reader.codes["target"] == codes

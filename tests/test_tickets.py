"""A ticket is the whole model: every weight of it, read by the package and by a reader of its own, and nothing of a bad file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import operator
import os
import random
import subprocess
import sys
import tracemalloc
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from configs.common import SIZES
from one_layer import ticket_content, ticket_file, tickets
from one_layer.data.config import DataConfig
from one_layer.data.preprocess import Preprocessing
from one_layer.errors import UserError
from one_layer.layers import materialize
from one_layer.models import ModelConfig, build, initialize, recipes, shapes, weights
from one_layer.restore import RestoredRun
from one_layer.settings import EvaluationConfig
from tests import fuzz_tickets, numpy_transformer, tiny
from tests.compiling import jit
from tests.fuzz_tickets import assets
from tests.ticket_reader import TicketReader

# Few shapes, so that there is little to compile; 36 bits do not fill their bytes.
TINY = ModelConfig(12, 6, d_model=6, ffn=12, heads=2, encoder_layers=2, decoder_layers=3)
SEED = 7
CASES = {
    "default": {},
    "reference": {"init_preset": "reference", "shared_embedding": True, "source_vocab": 6},
    "signs": {"selection": "signed_threshold", "threshold": 0.1, "init_scheme": "kaiming_normal"},
    "scaled": {"dynamic_scale": True, "keep": 0.1, "init_scheme": "signed_constant"},
    "one mask": {"weights": "multi_layer", "sharing": "masks", "selection": "sigmoid_threshold", "threshold": 0.5},
    "own weights": {"weights": "multi_layer", "selection": "score", "keep": 0.9, "init_scheme": "unsigned_constant"},
    "trained besides": {"norm": "affine", "bias": True, "share_bias": True, "embedding": "trained"},
    "frozen": {"norm": "frozen", "embedding": "frozen", "init_scheme": "xavier_normal"},
    "from elsewhere": {"embedding_path": "vectors.txt"},
    "no mask": {"keep": 1.0, "norm": "affine"},
    "dense": {"weights": "dense", "embedding": None, "norm": None, "bias": None},
}
SOURCE = np.array([[5, 6, 7, 2], [8, 2, 1, 1]], np.int32)
TARGET = np.array([[2, 5, 4], [2, 4, 1]], np.int32)


def trained(config: ModelConfig, seed: int = SEED) -> dict:
    """Variables as training could leave them: nothing of `params` is what it was, and tables from elsewhere are numbers."""
    dice = np.random.default_rng(0)
    made = initialize(config, seed)
    made["params"] = jax.tree.map(lambda a: a + jnp.asarray(dice.normal(0, 0.05, a.shape), jnp.float32), made["params"])
    if "frozen" in made:
        made["frozen"] = jax.tree.map(lambda a: jnp.asarray(dice.normal(size=a.shape), jnp.float32), made["frozen"])
    return made


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


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    """A model's config and variables, and the file of its ticket."""
    config = TINY.replace(**CASES[request.param])
    variables = trained(config)
    path = tmp_path_factory.mktemp("tickets") / "ticket.safetensors"
    tickets.save(path, ticket_of(config, variables=variables))
    return config, variables, path


def test_the_network_has_from_its_ticket_what_it_had(case):
    """Products are compared with what another program reads, and that with the model's own weights and scores (below)."""
    config, variables, path = case
    loaded = tickets.load(path)
    assert (loaded.config, loaded.seed, loaded.assets) == (config, SEED, assets(config))
    reader, scale = TicketReader(path), config.supermask.scaled
    expected = {name: leaf for name, leaf in flat(variables).items() if not name.endswith("/scores")}
    for module, recipe in recipes(config).items():
        if (mask := reader.masks.get(recipe.role)) is not None:
            path = "/".join((*module, "kernel"))
            weights = expected.pop(f"frozen/{path}" if f"frozen/{path}" in expected else f"random/{path}")
            axis = 0 if module[-1].endswith("embedding") else -1
            layers = [np.asarray(scale(jnp.asarray(m), axis)) for m in mask.reshape(-1, *mask.shape[-2:])]
            expected[f"materialized/{path}"] = weights * np.stack(layers).reshape(mask.shape)
    same_numbers(flat(tickets.variables(loaded)), expected)


def test_packed_it_holds_a_bit_for_every_masked_weight_and_no_product(case):
    config, variables, path = case
    found = flat(tickets.variables(tickets.load(path), packed=True))
    bits = {name.removeprefix("packed/"): found.pop(name) for name in list(found) if name.startswith("packed/")}
    scores = {name.removeprefix("params/"): leaf for name, leaf in flat(variables).items() if name.endswith("/scores")}
    same_numbers(found, {name: leaf for name, leaf in flat(variables).items() if not name.endswith("/scores")})
    kinds = ("mask", "sign") if config.selection == "signed_threshold" else ("mask",)
    assert bits.keys() == {name.replace("scores", kind) for name in scores for kind in kinds}
    for name, packed in bits.items():
        layers = {"encoder": (2,), "decoder": (3,)}.get(name.split("/")[0], ())
        rows, columns = scores[name.rpartition("/")[0] + "/scores"].shape[-2:]
        assert packed.dtype == np.uint8 and packed.shape == (*layers, -(-rows * columns // 8))


def test_another_program_reads_every_weight_mask_array_and_word(case):
    config, variables, path = case
    reader = TicketReader(path)
    roles = {module: recipe.role for module, recipe in recipes(config).items()}
    drawn, masks = 0, 0
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
        else:
            np.testing.assert_array_equal(reader.arrays[f"{collection}/{role}/{kind}"], leaf)
    assert (len(reader.masks), len(reader.weights)) == (masks, drawn)
    texts = assets(config)
    assert [tuple(reader.vocabularies[side]) for side in ("source", "target")] == [v.tokens for v in texts.vocabularies]
    assert reader.codes == {"source": fuzz_tickets.CODES, "target": fuzz_tickets.CODES}
    steps = {"tokenize": True, "normalize": True, "split_hyphens": False, "lowercase": True}
    steps |= {"bpe_kind": "subword-nmt", "pairs": False}
    assert reader.preprocessing["target"] == {"language": "en", **steps}
    assert reader.model == dataclasses.asdict(config)


@pytest.mark.parametrize("name", ["signs", "scaled"])
def test_logits_are_the_checkpoint_s_bit_for_bit(name, tmp_path):
    config = TINY.replace(**CASES[name])
    variables = trained(config)
    tickets.save(tmp_path / "t", ticket_of(config, variables=variables))
    loaded = tickets.load(tmp_path / "t")
    prepare, apply = jit(partial(materialize, mask=config.supermask)), jit(build(config).apply)
    logits = np.asarray(apply(prepare(variables), SOURCE, TARGET))
    for packed in (False, True):
        found = np.asarray(apply(tickets.variables(loaded, packed), SOURCE, TARGET))
        np.testing.assert_array_equal(found.view(np.uint32), logits.view(np.uint32))


def test_the_same_ticket_is_the_same_file_and_read_it_writes_itself(tmp_path):
    ticket = ticket_of(TINY)
    sizes = tickets.save(tmp_path / "a", ticket)
    tickets.save(tmp_path / "b", ticket_of(TINY))
    tickets.save(tmp_path / "c", tickets.load(tmp_path / "a"))
    content = (tmp_path / "a").read_bytes()
    assert content == (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()
    assert sizes.pop("total") == len(content) > sum(sizes.values())


def test_a_renamed_module_finds_its_weights_by_their_role(tmp_path, monkeypatch):
    tickets.save(tmp_path / "t", ticket_of(TINY))
    before = flat(tickets.variables(tickets.load(tmp_path / "t")))
    names, projections = {"query": "q", "ffn_out": "down"}, weights._projections

    def renamed(config):
        for path, role, shape in projections(config):
            yield (*path[:-1], names.get(path[-1], path[-1])), role, shape

    monkeypatch.setattr(weights, "_projections", renamed)
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


def test_another_process_with_other_seeds_of_jax_and_python_makes_the_same_weights(tmp_path):
    tickets.save(tmp_path / "t", ticket_of(TINY))
    leaves = jax.tree.leaves(tickets.variables(tickets.load(tmp_path / "t")))
    ours = hashlib.blake2b(b"".join(np.asarray(leaf).tobytes() for leaf in leaves)).hexdigest()
    other = {"JAX_DEFAULT_PRNG_IMPL": "rbg", "JAX_THREEFRY_PARTITIONABLE": "0", "PYTHONHASHSEED": "5"}
    arguments = [sys.executable, "-c", ELSEWHERE, str(tmp_path / "t")]
    done = subprocess.run(arguments, env={**os.environ, **other}, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ours


def test_a_run_s_ticket_knows_where_its_text_was_and_how_it_searched(tmp_path):
    run = tiny.run({"evaluation.beam": 3, "seed": 11})
    config = run.model_config(12, 6)
    restored = RestoredRun(run, config, assets(config), initialize(config, 11), 12, "best")
    tickets.save(tmp_path / "t", tickets.from_run(restored))
    loaded = tickets.load(tmp_path / "t")
    assert (loaded.data, loaded.evaluation, loaded.seed, loaded.step) == (run.data, run.evaluation, 11, 12)


def test_random_weights_of_no_seed_are_in_the_file(tmp_path):
    variables = trained(TINY)
    kernel = variables["random"]["encoder"]["layers"]["ffn_in"]["kernel"]
    variables["random"]["encoder"]["layers"]["ffn_in"]["kernel"] = kernel.at[0, 0].multiply(-1)
    sizes = tickets.save(tmp_path / "t", ticket_of(TINY, variables=variables))
    assert {name for name in sizes if name.startswith("random/")} == {"random/encoder/ffn/in/kernel"}
    found = tickets.variables(tickets.load(tmp_path / "t"), packed=True)
    same_numbers(flat(found["random"]), flat(variables["random"]))


def test_tickets_on_one_random_layer_have_it_in_common(tmp_path):
    configs = {"a": TINY, "b": TINY.replace(source_vocab=17), "c": TINY, "d": TINY.replace(keep=0.2)}
    for (name, config), seed in zip(configs.items(), (SEED, SEED, SEED + 1, SEED), strict=True):
        tickets.save(tmp_path / name, ticket_of(config, seed))
    a, b, c, d = (
        tickets.variables(ticket, packed=True)["random"]
        for ticket in tickets.load_many([tmp_path / name for name in configs])
    )
    common = [
        (one is other, name) for name, one, other in zip(flat(a), jax.tree.leaves(a), jax.tree.leaves(b), strict=True)
    ]
    assert [name for shared, name in common if not shared] == ["source_embedding/kernel"], "its shape alone differs"
    for others in (c, d):  # another seed; wider draws
        assert not any(map(operator.is_, jax.tree.leaves(a), jax.tree.leaves(others)))


IWSLT14, WMT14 = (8848, 6632), (41_000, 41_000)
PAPER = [("small", 4.9), ("wide", 17.7), ("deep", 8.9), ("base", 10.8), ("wider", 32.5), ("deeper", 16.3)]


@pytest.mark.parametrize(("size", "megabytes"), PAPER)
def test_the_paper_s_models_take_a_bit_a_weight(size, megabytes):
    """Half of random bits set, and a vocabulary and codes of about as many bytes as real ones."""
    d_model, ffn, heads, layers = SIZES[size]
    sizes = {"d_model": d_model, "ffn": ffn, "heads": heads, "encoder_layers": layers, "decoder_layers": layers}
    config = ModelConfig(*(WMT14 if size.startswith(("base", "wider", "deeper")) else IWSLT14), **sizes)
    masks, dice, bits = {}, np.random.default_rng(0), 0
    for path, shape in shapes(config).items():
        if path[-1] == "scores":
            halves = dice.integers(0, 256, (*shape[:-2], shape[-2] * shape[-1] // 16), np.uint8)
            masks[*path[1:-1], "mask"] = np.concatenate([halves, ~halves], axis=-1)
            bits += math.prod(shape)
    # Whoever has drawn a matrix need not draw it again: none is, here.
    drawn = {
        module: ticket_content.Drawn(recipe, "", np.zeros((1, 1), np.float32))
        for module, recipe in recipes(config).items()
    }
    texts = assets(config)
    if config.source_vocab == config.target_vocab:  # a joined dictionary, with a table a side
        texts = dataclasses.replace(texts, target_vocabulary=texts.source_vocabulary)
    made = tickets.Ticket(
        config, 1, 0, DataConfig(), EvaluationConfig(), assets=texts, masks=masks, drawn=drawn, arrays={}
    )
    content, found = ticket_content.to_bytes(made)
    text = sum(size for name, size in found.items() if name.startswith("text/"))
    assert bits / 8e6 == pytest.approx(megabytes, abs=0.06)
    assert len(content) - text < bits / 8 + 12_000
    assert len(content) <= 1.02 * (bits / 8 + 300_000)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": jnp.nan}, "the scores are not numbers"),
        ({"vocabulary": 13}, "text/source_vocabulary has 13 types.*its model's table 12 rows"),
        ({"beam": 5000}, "evaluation.beam is 5000; a ticket's is at most 1000"),
        ({"test": "../../.bashrc"}, "its data have the name '../../.bashrc'"),
    ],
    ids=str,
)
def test_what_could_not_be_loaded_is_not_written(tmp_path, change, message):
    (tmp_path / "t").write_bytes(b"the old one")
    variables = jax.tree.map(lambda leaf: leaf * change.get("scores", 1), trained(TINY))
    texts = assets(TINY.replace(source_vocab=change.get("vocabulary", 12)))
    data = DataConfig(source="text", directory="d", tests=(change.get("test", "test"),))
    evaluation = EvaluationConfig(beam=change.get("beam", 5))
    with pytest.raises(UserError, match=message):
        tickets.save(tmp_path / "t", tickets.make(TINY, SEED, variables, texts, data=data, evaluation=evaluation))
    assert (tmp_path / "t").read_bytes() == b"the old one"


# Files from strangers


@pytest.fixture(scope="module")
def good():
    return fuzz_tickets.good_ticket()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile") / "t.safetensors"


def refused(content: bytes, place, message: str | None = None) -> None:
    place.write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        tickets.load(place)
    assert str(caught.value).startswith(f"the ticket {place} cannot be used: ") and str(caught.value).isprintable()


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_file_cut_off_anywhere_is_refused(good, place, data):
    refused(good[: data.draw(st.integers(0, len(good) - 1))], place)


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_a_flipped_bit_anywhere_is_found(good, place, data):
    content = bytearray(good)
    content[data.draw(st.integers(0, len(good) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    refused(bytes(content), place)


def test_mutants_are_refused_or_the_same(place):
    counts = fuzz_tickets.fuzz(200, random.randrange(10**6), place, watch_memory=False)
    assert counts["damaged, refused"] > 60 and counts["forged, refused"] > 60


def container(header: str | bytes, data: bytes = b"") -> bytes:
    text = header.encode() if isinstance(header, str) else header
    return len(text).to_bytes(8, "little") + text + data


def tensor(name: str, shape: object, begin: int, end: int, dtype: str = "U8") -> str:
    return (
        f'{{"{name}":{{"dtype":"{dtype}","shape":{json.dumps(shape)},"data_offsets":[{begin},{end}]}},"__metadata__":'
        + ('{"format":"one_layer ticket","version":"1","codecs":"{}"}}')
    )


CONTAINERS = {
    "nothing": (b"", "ends within its header"),
    "no safetensors": (b"PK\x03\x04" * 100, "ends within its header"),
    "a header of 100 MB": ((10**8).to_bytes(8, "little") + b" " * 10**4, "ends within its header"),
    "a header of 2 MB": (container(b" " * 2**21), "header has 2,097,152 bytes; no ticket's has more than 1,048,576"),
    "a JSON bomb": (container("[" * 10**6), "its header is no JSON that can be read"),
    "a nested bomb": (container('{"a":' * 10**5 + "1" + "}" * 10**5), "its header is no JSON that can be read"),
    "a list": (container("[]"), "its header is no JSON object"),
    "bytes that are no text": (container(b'{"\xff":1}'), "its header is no JSON that can be read"),
    "duplicate names": (container('{"a":1,"b":2,"a":3}'), "has the name 'a' twice"),
    "no metadata": (container("{}"), "no metadata"),
    "another safetensors file": (container('{"__metadata__":{"format":"pt"}}'), "but no ticket"),
    "a later version": (
        container('{"__metadata__":{"format":"one_layer ticket","version":"2"}}'),
        "version '2'; this program reads version 1",
    ),
    "a path in a name": (
        container(tensor("mask/../../x", [1], 0, 1), b"a"),
        "its header names a tensor 'mask/../../x'",
    ),
    "an absolute path": (container(tensor("/etc/passwd", [1], 0, 1), b"a"), "names a tensor '/etc/passwd'"),
    "10^12 entries": (container(tensor("a", [10**12], 0, 10**12), b"a"), "it ends within a"),
    "entries of no bytes": (container(tensor("a", [10**6, 10**6], 0, 1), b"a"), "of the shape .* has 1 bytes"),
    "10^100 entries": (container(tensor("a", [10**100], 0, 1), b"a"), "no shape or no place"),
    "a negative shape": (container(tensor("a", [-1, -1], 0, 1), b"a"), "no shape or no place"),
    "a shape of fractions": (container(tensor("a", [1.0], 0, 1), b"a"), "no shape or no place"),
    "a gap": (container(tensor("a", [1], 1, 2), b"ab"), "starts at byte 1 of the data, where 0 is next"),
    "bytes of nobody": (container(tensor("a", [1], 0, 1), b"ab"), "1 bytes follow the last tensor"),
    "a pickle": (container(tensor("a", [1], 0, 1, "O"), b"a"), "of the dtype 'O'; a ticket's tensors are U8 and F32"),
    "no digest": (container(tensor("a", [1], 0, 1), b"a"), "its digest is not that of its content"),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_no_container_but_a_ticket_s_is_read(name, place):
    content, message = CONTAINERS[name]
    tracemalloc.start()
    refused(content, place, message)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * len(content) + 2**20, "more than the file itself gives reason for"


def value(name: str, *path: str | int, to: object):
    """Sets a value inside the JSON of the metadata `name`."""

    def change(metadata, tensors):
        branch = whole = json.loads(metadata[name])
        for key in path[:-1]:
            branch = branch[key]
        branch[path[-1]] = to
        metadata[name] = json.dumps(whole)

    return change


def content_of(name: str, make):
    """Puts another array in the place of a tensor."""
    return lambda metadata, tensors: tensors.update({name: make(tensors[name])})


def bomb(length: int):
    """A code of a few bytes that unfolds to `length`, in the place of a mask's."""

    def change(metadata, tensors):
        code = zstandard.ZstdCompressor().compress(bytes(length))
        tensors["mask/encoder/ffn/in"] = np.frombuffer(code, np.uint8)
        codecs = json.loads(metadata["codecs"])
        metadata["codecs"] = json.dumps({**codecs, "mask/encoder/ffn/in": {"codec": "zstd", "shape": [3, 24]}})

    return change


def wide(metadata, tensors):
    for key in ("d_model", "ffn"):
        value("model", key, to=10**6)(metadata, tensors)


def many_layers(metadata, tensors):
    value("model", "encoder_layers", to=10**12)(metadata, tensors)


FORGED = {
    "a trillion weights": (wide, "its model has [0-9,]+ weights"),
    "a trillion layers": (many_layers, "its model has [0-9,]+ weights"),
    "a vocabulary of a trillion": (value("model", "source_vocab", to=10**12), "its model has [0-9,]+ weights"),
    "a decompression bomb": (bomb(2**26), "mask/encoder/ffn/in: a code unfolds to 67,108,864 bytes where 72 belong"),
    "an unknown codec": (value("codecs", "mask/encoder/ffn/in", "codec", to="exec"), "the codec 'exec' is unknown"),
    "a code that is none": (content_of("mask/encoder/ffn/in", lambda code: code[:-1]), "not one whole zstd frame"),
    "an unknown scheme": (value("random", 0, "scheme", to="os.system"), "the scheme 'os.system'; known are kaiming"),
    "another seed": (value("seed", to=8), "another generator made this ticket"),
    "another checksum": (value("random", 1, "checksum", to="0" * 32), "another generator made this ticket"),
    "another scale": (value("random", 1, "scale", to=1.5), "another generator made this ticket"),
    "a recipe's shape": (value("random", 0, "shape", to=[8, 9]), "its recipe makes .* but its model has"),
    "a recipe of a trillion": (value("random", 0, "shape", to=[10**6, 10**6]), "its recipe makes .* but its model has"),
    "a recipe twice": (
        value("random", 0, "role", to="encoder/ffn/in"),
        "its recipe makes encoder/ffn/in .* but its model",
    ),
    "a recipe's role": (
        value("random", 0, "role", to="../x"),
        "'../x', of which its model has no more than one, or none",
    ),
    "more layers than masks": (
        value("model", "encoder_layers", to=4),
        r"is uint8 \[3, .*but its model's is uint8 \[4, ",
    ),
    "wider than its masks": (value("model", "ffn", to=32), "but its model"),
    "another keep": (value("model", "keep", to=0.2), "keeps .* weights where model.keep 0.2 keeps"),
    "an unknown field": (value("model", "callback", to="x"), "unknown key model.callback"),
    "a field's type": (value("model", "heads", to="2"), "model.heads is '2'; it takes a value of type int"),
    "a field's value": (value("model", "heads", to=3), "model.heads is 3, which does not divide"),
    "a huge number": (value("model", "ffn", to=10**300), "no flat JSON object of short values"),
    "a beam of a million": (value("evaluation", "beam", to=10**6), "evaluation.beam is 1000000"),
    "hours of toy sentences": (value("data", "toy_train", to=10**9), "data.toy_train is 1000000000"),
    "a test set elsewhere": (value("data", "tests", to=["x/../../y"]), "its data have the name 'x/../../y'"),
    "a test set anywhere": (value("data", "tests", to=["/x"]), "its data have the name '/x'"),
    "a language elsewhere": (value("data", "source_language", to="../x"), "the toy language has the sides"),
    "a path for a language": (value("text", "source", "language", to="../x"), "its language of the source is '../x'"),
    "text elsewhere": (value("text", "source", "codes", to="mask/encoder/ffn/in"), "which is no text of at most"),
    "fewer words": (content_of("text/source_vocabulary", lambda text: text[:-1]), "types, special ones included"),
    "a tensor too many": (
        lambda m, t: t.update({"params/x": np.zeros(1, np.uint8)}),
        "no place for the tensor params/x",
    ),
    "a tensor too few": (lambda m, t: t.pop("mask/decoder/ffn/in"), "(names|lacks the tensor) 'mask/decoder/ffn/in'"),
    "a missing array": (
        lambda m, t: t.pop("params/encoder/ffn/norm/bias"),
        "it lacks the tensor 'params/encoder/ffn/norm",
    ),
    "an array of bytes": (
        content_of("params/encoder/ffn/norm/bias", lambda array: array.view(np.uint8)),
        "is uint8 .* but its model's is float32",
    ),
    "unknown metadata": (lambda m, t: m.update({"loader": "x"}), "unknown name 'loader'"),
    "missing metadata": (lambda m, t: m.pop("evaluation"), "lacks the metadata 'evaluation'"),
    "no number": (lambda m, t: m.update({"seed": "NaN"}), "'seed' is no JSON that can be read"),
    "a seed beyond all": (value("seed", to=2**32), "seed is 4294967296"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_digest_that_fits_makes_nothing_good(name, good, place):
    change, message = FORGED[name]
    file = ticket_file.from_bytes(good)
    metadata, tensors = dict(file.metadata), dict(file.tensors)
    if name in ("another seed", "a seed beyond all"):
        metadata["seed"] = "8" if name == "another seed" else str(2**32)
    else:
        change(metadata, tensors)
    content = ticket_file.to_bytes(metadata, tensors)
    tracemalloc.start()
    refused(content, place, message)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**22, "memory for what the file only claims to have"


@pytest.mark.parametrize(
    ("name", "place_of", "message"),
    [
        ("mask/decoder/embedding", 4, "mask/decoder/embedding has bits beyond its last weight"),
        (
            "mask/decoder/self_attention/query",
            (2, 4),
            "mask/decoder/self_attention/query has bits beyond its last weight",
        ),
        ("sign/encoder/embedding", ..., "sign/encoder/embedding has bits where the mask is 0"),
    ],
)
def test_bits_that_mean_nothing_are_refused(name, place_of, message, place):
    config = TINY.replace(selection="signed_threshold", threshold=0.1)
    file = ticket_file.from_bytes(ticket_content.to_bytes(ticket_of(config))[0])
    bits = np.array(file.tensors[name])
    bits[place_of] = 0xFF
    refused(ticket_file.to_bytes(file.metadata, {**file.tensors, name: bits}), place, message)


def test_what_is_no_file_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(UserError, match="there is no such file"):
            tickets.load(path)


def test_byte_level_pieces_are_kept_and_tickets_without_their_field_are_of_words(tmp_path, monkeypatch):
    codes = "Ġ h\ni s\n"
    sides = [Preprocessing(language, codes=codes, bpe_kind="byte-level") for language in ("de", "en")]
    texts = dataclasses.replace(assets(TINY), source_preprocessing=sides[0], target_preprocessing=sides[1])
    words = ticket_of(TINY)
    tickets.save(tmp_path / "bytes", dataclasses.replace(words, assets=texts))
    assert tickets.load(tmp_path / "bytes").assets == texts
    reader = TicketReader(tmp_path / "bytes")
    assert reader.preprocessing["source"]["bpe_kind"] == "byte-level" and reader.codes["target"] == codes

    fields = Preprocessing.to_dict
    older = {"tokenize", "lowercase", "codes", "language"}
    monkeypatch.setattr(Preprocessing, "to_dict", lambda self: {k: v for k, v in fields(self).items() if k in older})
    tickets.save(tmp_path / "older", words)
    assert "bpe_kind" not in TicketReader(tmp_path / "older").preprocessing["source"]
    assert tickets.load(tmp_path / "older").assets == assets(TINY)

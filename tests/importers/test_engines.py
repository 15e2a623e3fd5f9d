"""Models in the formats of other engines: folders are whole or not there, and CTranslate2 scores and translates as here."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer import tickets
from one_layer.data.special_tokens import EOS, PAD
from one_layer.importers import ctranslate2, engines
from one_layer.models import ModelConfig, build
from one_layer.models.networks import embedded, positions
from one_layer.system.errors import UserError
from one_layer.tasks.model import prepared
from one_layer.tasks.translation.generate import search
from tests import ROOT, user_error
from tests.tiny_tickets import TINY, ticket_of


@pytest.fixture
def model(tmp_path):
    tickets.save(tmp_path / "t.safetensors", ticket_of(TINY))
    return tickets.restore_ticket(tmp_path / "t.safetensors")


def names(folder):
    return sorted(path.name for path in folder.rglob("*"))


def test_a_missing_package(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with user_error(r"needs the package ctranslate2, which is not installed; run .* requirements-engines.txt"):
        engines.check("ctranslate2", tmp_path / "out", "float32")


@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_something_in_the_way(tmp_path, kind):
    path = tmp_path / "out"
    {"file": path.touch, "folder": path.mkdir, "dangling link": lambda: path.symlink_to("nowhere")}[kind]()
    with user_error(r"--output=.*out is there already; give the name of a new folder"):
        engines.check("ctranslate2", path, "float32")


def test_a_precision_that_the_format_lacks(tmp_path):
    with user_error("--precision=int4 does not fit --format=ctranslate2, which has float32 and int8"):
        engines.check("ctranslate2", tmp_path / "out", "int4")


@pytest.mark.parametrize("error", [UserError("no"), KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_half_written_folder_does_not_stay(model, tmp_path, monkeypatch, error):
    def write(model, folder, precision):
        (folder / "model.bin").write_bytes(b"half")
        raise error

    monkeypatch.setattr(ctranslate2, "import_package", lambda: None)
    monkeypatch.setattr(ctranslate2, "write", write)
    with pytest.raises(UserError if isinstance(error, OSError) else type(error)):
        engines.export(model, "ctranslate2", tmp_path / "out")
    assert names(tmp_path) == ["t.safetensors"]


def test_a_killed_writer_leaves_nothing_for_good(model, tmp_path, monkeypatch):
    left = tmp_path / ".out.abcdefgh.unfinished"
    left.mkdir()
    (left / "model.bin").touch()
    monkeypatch.setattr(ctranslate2, "import_package", lambda: None)
    monkeypatch.setattr(ctranslate2, "write", lambda model, folder, precision: (folder / "model.bin").touch())
    engines.export(model, "ctranslate2", tmp_path / "out")
    assert names(tmp_path) == ["model.bin", "out", "t.safetensors"]


SIZES = {"d_model": 8, "ffn": 12, "heads": 2, "encoder_layers": 2, "decoder_layers": 3}
POST = ModelConfig(12, 14, **SIZES)
CONFIGS = {
    "post-norm": POST,
    "pre-norm, one table": POST.replace(norm_position="pre", shared_embedding=True, source_vocab=14),
    "biases, affine norms": POST.replace(norm="affine", bias=True, embedding="trained"),
    "a layer string": POST.replace(encoder_layers="LSRS", activation="gelu"),
    "dense": POST.replace(weights="dense", norm_position="pre"),
    "modern": POST.replace(block="modern", norm_position="pre", norm="rms", rotary_base=50.0, norm_epsilon=0.1),
    "one trained layer": POST.replace(weights="dense", sharing="weights", gains="columns"),
    "one mask": POST.replace(weights="multi_layer", sharing="masks"),
}
SOURCE = np.array([[5, 7, 6, EOS], [8, 4, EOS, PAD]], np.int32)
TARGET = np.array([[5, 9, 4, 13], [7, 6, 11, 12]], np.int32)
LINES = [
    "Two dogs run through the snow.",
    "A man in a blue shirt is standing on a ladder.",
    "A girl plays with a ball.",
]


def restored(config, folder):
    """The trained model in a ticket of random masks, and biases and norms that are not 0 and 1."""
    tickets.save(folder / "t.safetensors", ticket_of(config))
    return tickets.restore_ticket(folder / "t.safetensors")


def test_matrices_are_random_weights_under_their_masks(tmp_path):
    model = restored(POST, tmp_path)
    found = ctranslate2.arrays(model.config, model.variables)
    for stack, count in (("encoder", 2), ("decoder", 3)):
        for layer in range(count):

            def product(role, stack=stack, layer=layer):
                return (model.masks[f"{stack}/{role}"][layer] * model.random[f"{stack}/{role}"]).T

            fused = np.concatenate([product(f"self_attention/{name}") for name in ("query", "key", "value")])
            np.testing.assert_array_equal(found[f"{stack}/layer_{layer}/self_attention/linear_0/weight"], fused)
            np.testing.assert_array_equal(found[f"{stack}/layer_{layer}/ffn/linear_1/weight"], product("ffn/out"))
            if stack == "decoder":
                fused = np.concatenate([product(f"cross_attention/{name}") for name in ("key", "value")])
                np.testing.assert_array_equal(found[f"decoder/layer_{layer}/attention/linear_1/weight"], fused)
    table = model.masks["decoder/embedding"] * model.random["decoder/embedding"]
    np.testing.assert_array_equal(found["decoder/embeddings/weight"], table)
    assert found["decoder/projection/weight"] is found["decoder/embeddings/weight"]


def test_positions_are_counted_as_the_model_counts_them(tmp_path):
    found = ctranslate2.arrays(POST, restored(POST, tmp_path).variables)["encoder/position_encodings/encodings"]
    ours = embedded(jnp.zeros((12, 8)), SOURCE, positions(SOURCE), SOURCE.shape[1])
    np.testing.assert_array_equal(found[:4], ours[0])


@pytest.mark.parametrize("block", ["gru", "conv", "ffn"])
def test_what_the_engine_lacks_is_refused_by_name(block):
    config = POST.replace(encoder_layers="SRS", reservoir=block)
    with user_error(f"model.encoder_layers is 'SRS' with model.reservoir={block}, but the format ctranslate2"):
        ctranslate2.check(config)


def test_other_models_are_refused():
    mixed = POST.replace(block="modern", norm_position="pre", norm="plain", encoder_layers="LS")
    with user_error(r"norms of several kinds \(plain, rms\)"):
        ctranslate2.check(mixed)
    causal = ModelConfig(14, 14, **{**SIZES, "encoder_layers": 0}, family="decoder")
    with user_error("is a decoder of 3 layers, but --format=ctranslate2 is for translation models"):
        ctranslate2.check(causal)


@pytest.fixture(scope="module", params=CONFIGS)
def exported(request, tmp_path_factory):
    """The model, and the engine with its folder."""
    engine = pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed (requirements-engines.txt)")
    folder = tmp_path_factory.mktemp("exported")
    model = restored(CONFIGS[request.param], folder)
    engines.export(model, "ctranslate2", folder / "out")
    return model, engine.Translator(str(folder / "out")), folder / "out"


def tokens(vocabulary, rows):
    return [[vocabulary.tokens[token] for token in row if token not in (PAD, EOS)] for row in rows]


def test_the_engine_gives_tokens_the_same_probability(exported):
    model, engine, _ = exported
    variables = prepared(model.config, model.variables)
    end = np.full((2, 1), EOS, np.int32)
    logits = build(model.config).apply(variables, SOURCE, np.concatenate([end, TARGET], axis=1))
    wanted = np.concatenate([TARGET, end], axis=1)[..., None]
    ours = np.take_along_axis(np.asarray(jax.nn.log_softmax(logits)), wanted, axis=2)[..., 0]
    sides = zip(model.assets.vocabularies, (SOURCE, TARGET), strict=True)
    theirs = engine.score_batch(*(tokens(vocabulary, rows) for vocabulary, rows in sides))
    np.testing.assert_allclose([each.log_probs for each in theirs], ours, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("exported", ["post-norm", "modern"], indirect=True)
def test_the_engine_decodes_alike(exported):
    model, engine, _ = exported
    options = {"beam": 1, "max_length": 12, "length_penalty": 1.0}
    found = search(model.config, prepared(model.config, model.variables), jnp.asarray(SOURCE), **options)
    source, target = model.assets.vocabularies
    ours = [target.decode(np.asarray(row[0])).split() for row in found.tokens]
    # Our search never chooses a pad, which a model of random masks may prefer.
    options = {"beam_size": 1, "max_decoding_length": 12, "suppress_sequences": [["<pad>"]]}
    assert [each.hypotheses[0] for each in engine.translate_batch(tokens(source, SOURCE), **options)] == ours


@pytest.mark.slow
def test_a_shipped_ticket_translates_alike(tmp_path):
    engine = pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed (requirements-engines.txt)")
    model = tickets.restore_ticket(ROOT / "tickets" / "multi30k-en-de.safetensors")
    engines.export(model, "ctranslate2", tmp_path / "out")
    lines = model.assets.source_preprocessing.apply(LINES)
    found = engine.Translator(str(tmp_path / "out")).translate_batch(
        [line.split() for line in lines], beam_size=5, length_penalty=1.0
    )
    assert [" ".join(each.hypotheses[0]) for each in found] == model.lines_of_tokens(lines)


def test_eight_bits(tmp_path):
    """The engine computes with them, and a matrix takes a quarter of the bytes."""
    engine = pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed (requirements-engines.txt)")
    model, sizes = restored(POST, tmp_path), {}
    for precision in ("float32", "int8"):
        engines.export(model, "ctranslate2", tmp_path / precision, precision)
        sizes[precision] = (tmp_path / precision / "model.bin").stat().st_size
        found = engine.Translator(str(tmp_path / precision)).translate_batch(
            tokens(model.assets.source_vocabulary, SOURCE), max_decoding_length=3
        )
        assert len(found) == len(SOURCE)
    kernels = sum(array.size for name, array in ctranslate2.arrays(POST, model.variables).items() if "linear" in name)
    assert sizes["float32"] - sizes["int8"] > 2 * kernels

"""The page computes what the program computes: logits, searches, labels, fills and greedy continuations of tiny models of every kind."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer import tickets
from one_layer.data.config import DataConfig
from one_layer.data.special_tokens import BOS, EOS
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.byte_level import pieces
from one_layer.data.text.preprocess import LABEL, Preprocessing
from one_layer.data.text.units import MASK
from one_layer.data.text.vocabulary import SPECIALS, Vocabulary
from one_layer.models import ModelConfig, build
from one_layer.models.decoding import CausalDecoder
from one_layer.tasks import TASKS
from one_layer.tasks.causal_lm.model import LanguageModelSettings
from one_layer.tasks.causal_lm.sampling import sample
from one_layer.tasks.translation.generate import search
from one_layer.tasks.translation.settings import SearchSettings
from tests import mostly_slow
from tests.page.engine import run
from tests.page.node import evaluate
from tests.tiny_tickets import CASES, SEED, TINY, flat, trained

NO_SOURCE, NO_TARGET = {"decoder_layers": 0}, {"encoder_layers": 0}
BYTES = Vocabulary((*SPECIALS, *pieces("")))
WITH_MASK = Vocabulary((*BYTES.tokens, MASK))
TRANSLATORS = {
    **{name: TINY.replace(**changes) for name, changes in CASES.items()},
    "pre-norm": TINY.replace(norm_position="pre", norm="affine", activation="gelu", bias=True),
    "modern": TINY.replace(block="modern", norm_position="pre", weights="one_layer", d_model=8, heads=2),
    "reservoirs": TINY.replace(weights="dense", encoder_layers="LRL", decoder_layers="LRL", reservoir="ffn"),
    "mixed": TINY.replace(encoder_layers="SLRS", decoder_layers="LSS"),
}
QUICK = ("modern",)
OF_BYTES = {"source_vocab": len(BYTES.tokens), "target_vocab": len(BYTES.tokens), "d_model": 8, "family": "decoder"}
LANGUAGE_MODELS = {
    "as GPT-2": TINY.replace(
        **{**NO_TARGET, **OF_BYTES, "positions": "learned", "activation": "gelu_tanh", "norm_position": "pre"},
        **{"norm": "affine", "bias": True, "weights": "multi_layer"},
    ),
    "post-norm": TINY.replace(**NO_TARGET, **OF_BYTES),
    "modern": TINY.replace(
        **NO_TARGET, **OF_BYTES, block="modern", norm_position="pre", rotary_base=50.0, norm_epsilon=0.1
    ),
}
ENCODERS = {"plain": TINY.replace(**NO_SOURCE, target_vocab=7)}
ENCODERS["learned positions"] = ENCODERS["plain"].replace(
    positions="learned", embedding_norm=True, norm="affine", activation="gelu", norm_epsilon=0.1
)
SOURCES = [[5, 7, 9, 4, 11, EOS], [6, 6, 4, 4, 5, EOS], [10, 8, 5, 9, 7, EOS]]


def saved(config: ModelConfig, path: Any, assets: TextAssets | None = None, **settings: Any) -> dict[str, Any]:
    """Saves a ticket of a model as training could leave it, and returns its variables, masks applied."""
    texts = assets or words(config)
    ticket = tickets.make(config, SEED, trained(config), texts, **settings)
    tickets.save(path, ticket)
    return tickets.variables(tickets.load(path))


def words(config: ModelConfig) -> TextAssets:
    """Vocabularies of a model's sizes, of text that needs no steps."""
    sides = [
        Vocabulary.build([" ".join(f"w{number}" for number in range(types - 4))])
        for types in (config.source_vocab, config.target_vocab)
    ]
    source, target = sides
    return TextAssets(source, source if source == target else target, Preprocessing("de"), Preprocessing("en"))


TRANSLATE = """
    const { Decoder } = await import(`${page}/engine/decoder.js`);
    const model = opened(given.path);
    const found = given.sources.map((source) => {
        const decoder = new Decoder(model.network, model.network.encode(source).output);
        const logits = given.target.map((token, place) => [...decoder.step([token], place, [0]).logits]);
        return { logits, best: model.translations(source, { beam: 3 }) };
    });
    return found;
"""


@pytest.mark.parametrize("name", mostly_slow(TRANSLATORS, QUICK))
def test_translators_have_the_same_logits_and_the_same_search(name, tmp_path):
    config, target = TRANSLATORS[name], [EOS, 4, 5, 4, 3]
    settings = SearchSettings(max_length_a=0.5, max_length_b=4, length_penalty=0.8)
    variables = saved(config, tmp_path / "t", evaluation=settings)
    sources = [[token if token < config.source_vocab else 4 + token % 2 for token in each] for each in SOURCES]
    batch, most = jnp.array(sources), int(0.5 * len(sources[0]) + 4)
    logits = jax.jit(build(config).apply)(variables, batch, jnp.array([target] * len(sources)))
    theirs = jax.jit(partial(search, config, beam=3, max_length=most, length_penalty=0.8))(variables, batch)
    for simd in (True, False):
        found = run(TRANSLATE, simd=simd, path=str(tmp_path / "t"), sources=sources, target=target)
        for row, (source, ours) in enumerate(zip(sources, found, strict=True)):
            # Where all weights have one magnitude, sums cancel, and the program's float32 sums are off by more than the page's.
            np.testing.assert_allclose(ours["logits"], logits[row], rtol=1e-5, atol=3e-5)
            lengths = [length for length in theirs.lengths[row].tolist() if length]
            tokens = [theirs.tokens[row, k, :length].tolist() for k, length in enumerate(lengths)]
            assert [each["ids"] for each in ours["best"]] == tokens
            scores = theirs.scores[row, : len(lengths)]
            np.testing.assert_allclose([each["score"] for each in ours["best"]], scores, atol=1e-5)
            for each in ours["best"]:  # attention is a distribution over the source, for each token and depth
                weights = np.array(each["attentions"])
                assert weights.shape[0] == len(each["ids"]) and weights.shape[2] == len(source)
                np.testing.assert_allclose(weights.sum(axis=2), 1, atol=1e-5)


@pytest.mark.parametrize("name", mostly_slow(ENCODERS, ["plain"]))
def test_classifiers_give_the_same_probabilities(name, tmp_path):
    config, texts = ENCODERS[name], [[BOS, *source] for source in SOURCES]
    assets = words(config)
    labelled = TextAssets(*assets.vocabularies, assets.source_preprocessing, Preprocessing(LABEL))
    data = DataConfig(source="labelled", labels="mnli", directory="x", max_length=64)
    variables = saved(config, tmp_path / "t", labelled, task=TASKS["classification"], data=data)
    script = "const model = opened(given.path); return given.texts.map((ids) => model.answer(ids));"
    for ids, labels in zip(texts, run(script, path=str(tmp_path / "t"), texts=texts), strict=True):
        chances = jax.nn.softmax(build(config).apply(variables, jnp.array([ids]))[0])
        np.testing.assert_allclose([each["probability"] for each in labels], chances, atol=1e-5)
        assert [each["label"] for each in labels] == list(assets.target_vocabulary.tokens[4:])


@pytest.mark.parametrize("name", mostly_slow(ENCODERS, ["learned positions"]))
def test_masked_models_have_the_same_logits(name, tmp_path):
    types = len(WITH_MASK.tokens)
    config = ENCODERS[name].replace(source_vocab=types, target_vocab=types, family="masked_lm")
    data = DataConfig(source="plain", directory="x", block=64)
    assets = TextAssets(WITH_MASK, WITH_MASK, Preprocessing("text"), Preprocessing("text"))
    variables = saved(config, tmp_path / "t", assets, task=TASKS["masked_lm"], data=data)
    ids, places = [BOS, 70, 71, types - 1, 72, EOS], [3, 0]
    script = """
        const model = opened(given.path);
        const depths = model.depthWords("ab<mask>c");
        return { logits: [...model.maskLogits(given.ids, given.places)], fills: model.run("ab<mask>c<mask>"), depths };
    """
    found = run(script, path=str(tmp_path / "t"), ids=ids, places=places)
    logits = build(config).apply(variables, jnp.array([ids]), jnp.array([places]))[0]
    np.testing.assert_allclose(found["logits"], np.ravel(logits), rtol=1e-5, atol=1e-5)
    assert [len(fill) for fill in found["fills"]] == [5, 5]
    assert len(found["depths"]["pieces"]) == 6 and len(found["depths"]["depths"]) == config.depth("encoder")


@pytest.mark.parametrize("name", mostly_slow(LANGUAGE_MODELS, ["as GPT-2"]))
def test_models_of_bytes_have_the_same_logits_and_write_the_same_when_nothing_is_drawn(name, tmp_path):
    config, block, length = LANGUAGE_MODELS[name], 8, 20
    data = DataConfig(source="plain", directory="x", block=block)
    assets = TextAssets(BYTES, BYTES, Preprocessing("text"), Preprocessing("text"))
    settings = LanguageModelSettings(stride=4, sample_length=length, temperature=0.0)
    variables = saved(config, tmp_path / "t", assets, task=TASKS["causal_lm"], data=data, evaluation=settings)
    script = """
        const { Decoder } = await import(`${page}/engine/decoder.js`);
        const model = opened(given.path), decoder = new Decoder(model.network, null);
        const logits = given.ids.map((token, place) => [...decoder.step([token], place, [0]).logits]);
        const drawn = (seed) => [...model.continuation(given.ids, { temperature: 1, seed })];
        const text = [...model.generate("hi", { length: 3 })].length;
        return { logits, greedy: [...model.continuation(given.ids)], drawn: [drawn(1), drawn(1), drawn(2)], text };
    """
    ids = [EOS, 104, 105]
    found = run(script, path=str(tmp_path / "t"), ids=ids)
    logits = build(config).apply(variables, jnp.array([ids]))[0]
    np.testing.assert_allclose(found["logits"], logits, rtol=1e-5, atol=1e-5)

    decoder = CausalDecoder(config, variables)
    tokens = np.zeros((1, len(ids) + length), np.int32)
    tokens[0, : len(ids)] = ids
    step = lambda *arguments: decoder.step(*arguments, length=block)  # noqa: E731
    goal, keys = np.array([len(ids) + length]), jax.random.split(jax.random.key(0), 1)
    cache = decoder.start(1, block)
    whole = sample(step, cache, jnp.array(tokens), jnp.array([len(ids)]), jnp.array(goal), keys, block, 0.0)
    assert found["greedy"] == whole[0, len(ids) :].tolist(), "also after the context is full"
    one, again, other = found["drawn"]
    assert one == again != other and min(map(min, found["drawn"])) > 3 and found["text"] == 3


def test_drawn_tokens_have_the_chances_that_the_logits_give():
    script = """
        const { sampled } = await import(`${page}/engine/sampling.js`);
        const { Stream } = await import(`${page}/engine/philox.js`);
        const stream = new Stream(1, "sample"), counts = Array(9).fill(0);
        const draw = (settings) => sampled(Float32Array.of(9, 9, 9, 9, 0, 1, 2, -1, 0.5), settings, stream);
        for (let k = 0; k < 20000; k++) counts[draw({ temperature: 0.7 })]++;
        return counts;
    """
    counts = run(script)
    chances = np.exp(np.array([0, 1, 2, -1, 0.5]) / 0.7)
    np.testing.assert_allclose(np.array(counts[4:]) / 20000, chances / chances.sum(), atol=0.015)
    assert counts[:4] == [0] * 4


@pytest.mark.parametrize("kind", ["mask", "sign"])
def test_a_flip_changes_one_kind_of_bits_alone(kind, tmp_path):
    saved(TINY.replace(**({"selection": "sign", "keep": 1.0} if kind == "sign" else {})), tmp_path / "t")
    script = """
        const model = opened(given.path), flipped = model.flipped(0.5), all = (one) => [...one.network.matrices.values()];
        const bits = (one, kind) => all(one).map(({ mask }) => [...(mask?.[kind] ?? [])]).flat();
        return [...["mask", "sign"].map((kind) => [bits(model, kind), bits(flipped, kind)]), model.describe().masked];
    """
    *pairs, count = run(script, path=str(tmp_path / "t"))
    found = dict(zip(("mask", "sign"), pairs, strict=True))
    before, after = (np.array(each, np.uint8) for each in found.pop(kind))
    ((same, still),) = found.values()
    assert same == still
    assert abs(int(np.bitwise_count(before ^ after).sum()) / count - 0.5) < 0.05


def test_what_the_page_says_of_masks_is_true_of_each_model(tmp_path):
    changes = [
        {"keep": 0.1},
        {"selection": "sign", "keep": 1.0, "weights": "multi_layer"},
        {"keep": 1.0, "norm": "affine", "d_model": 6, "ffn": 9, "heads": 2},
    ]
    for number, each in enumerate(changes):
        saved(TINY.replace(**each), tmp_path / str(number))
    script = """
        return given.paths.map((path) => {
            const model = opened(path), all = model.matrices();
            const pictures = all.map(({ role, depths }) => depths.map((depth) => model.mask(role, depth).join()).join(";"));
            return { ...model.describe(), all, pictures };
        });
    """
    few, signs, bare = run(script, paths=[str(tmp_path / str(number)) for number in range(len(changes))])
    assert 0.09 < few["keep"] < 0.13
    assert all(each["signs"] for each in signs["all"]) and len(set(signs["pictures"])) == len(signs["pictures"])
    assert bare["masked"] == 0 and {each["chance"] for each in bare["all"]} == {1}


def test_masks_of_the_same_weights_are_compared_where_their_bits_say_the_same(tmp_path):
    """The weights of all three are the same; bits say which weights are negated in two of them, and which are kept in the third."""
    kinds = ({"selection": "sign", "keep": 1.0}, {"selection": "sign", "keep": 1.0}, {"selection": "threshold"})
    for number, kind in enumerate(kinds):
        saved(TINY.replace(scale_by_keep=False, **kind), tmp_path / str(number))
    script = """
        const { CALLS } = await import(`${page}/engine/worker.js`);
        [2, 1, 0].forEach((number) => CALLS.open(read(`${given.folder}/${number}`), given.tables));
        return [2, 1, 0].map((place) => CALLS.beside(place, "encoder/ffn/in")?.agree ?? null);
    """
    assert run(script, folder=str(tmp_path)) == [1, 1, None]


def test_the_largest_of_many_are_those_of_a_sort():
    values = np.random.default_rng(0).integers(0, 50, 500).tolist()
    script = """
        const { largest } = await import(`${page}/engine/functions.js`);
        return [1, 64, 65, 500].map((count) => largest(given.map((each) => (each ? each : -Infinity)), count));
    """
    order = sorted(range(500), key=lambda k: (-values[k], k))
    assert evaluate(script, values) == [order[:count] for count in (1, 64, 65, 500)]


def test_flips_and_other_seeds_change_what_they_say(tmp_path):
    """A flipped share of the bits is that share of all masks, other seeds give their own weights, and no change gives the same model."""
    saved(TINY, tmp_path / "t")
    script = """
        const { checksum, draw } = await import(`${page}/engine/random.js`);
        const model = opened(given.path), roles = model.matrices().map(({ role }) => role);
        const depths = (one, role) => Array.from({ length: one.network.matrix(role).depths }, (_, depth) => depth);
        const masks = (one, role) => depths(one, role).flatMap((depth) => [...one.mask(role, depth)]);
        const bits = (one) => roles.flatMap((role) => masks(one, role));
        const weights = (one) => roles.map((role) => checksum(one.network.matrix(role).values));
        const ids = given.source, answer = (one) => one.translations(ids).map(({ ids, score }) => [ids, score]);
        return {
            roles, whole: bits(model), some: bits(model.flipped(0.25, 3)), more: bits(model.flipped(0.5, 3)),
            own: weights(model), reseeded: weights(model.reseeded(8)), alone: roles.map((role) => checksum(model.weights(role, 8))),
            answers: [model, model.flipped(0, 3), model.reseeded(model.ticket.seed), model.flipped(0.4)].map(answer),
            overlap: model.overlap("encoder/ffn/in"), described: model.describe(),
        };
    """
    found = run(script, path=str(tmp_path / "t"), source=SOURCES[0])
    whole, some, more = (np.unpackbits(np.array(found[name], np.uint8)) for name in ("whole", "some", "more"))
    described = found["described"]
    assert abs((whole != some).sum() / described["masked"] - 0.25) < 0.05
    assert ((whole != some) <= (whole != more)).all() and (whole != more).sum() > (whole != some).sum()
    made = tickets.make(TINY, 8, trained(TINY, 8), words(TINY)).drawn.values()
    theirs = {each.recipe.role: each.checksum for each in made}
    assert found["reseeded"] == found["alone"] == [theirs[role] for role in found["roles"]] != found["own"]
    one, same, still, other = found["answers"]
    assert one == same == still != other
    assert np.array(found["overlap"]).shape == (2, 2) and found["overlap"][0][0] == 1
    masked = sum(leaf.size for name, leaf in flat(trained(TINY)).items() if name.endswith("scores"))
    assert described["masked"] == masked and described["trained"] == 0 and described["task"] == "translation"

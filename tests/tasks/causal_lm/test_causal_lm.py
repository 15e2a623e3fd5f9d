"""The task of causal language modelling: it trains, resumes, is scored by windows, and writes; from runs and from tickets."""

import dataclasses
import json
import logging
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer import tickets
from one_layer.data.special_tokens import EOS
from one_layer.data.stream import Stream
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.models import build
from one_layer.models.accounting import ticket_bytes
from one_layer.runs.evaluate import evaluate
from one_layer.runs.rescoring import rescored
from one_layer.tasks import TASKS
from one_layer.tasks.causal_lm.model import CausalLanguageModel
from one_layer.training.metrics import read_metrics
from tests import user_error
from tests.tasks.conftest import assert_ticket_is_checkpoint

pytestmark = pytest.mark.slow

BLOCK, STRIDE, LENGTH = 16, 6, 24
WORDS = ["un", "dos", "tres", "cat", "cinc"]
LINES = 120
CHANGES = {
    "task": "causal_lm",
    "model.encoder_layers": 0,
    "model.decoder_layers": 2,
    "data.block": BLOCK,
    "data.max_tokens": 128,
    "optim.lr": 0.03,
    "evaluation.stride": STRIDE,
    "evaluation.sample_length": LENGTH,
}


def changed(model, **settings):
    return rescored(model, {"evaluation": {**vars(model.settings), **settings}}, {})


def test_it_learns_and_says_what_it_measures(folder):
    lines = [line for line in read_metrics(folder.metrics_file) if "valid/nll" in line]
    assert lines[-1]["valid/nll"] < lines[0]["valid/nll"] < math.log(260)
    for line in lines:
        assert line["valid/bits_per_byte"] == pytest.approx(line["valid/nll"] / math.log(2))
        assert line["valid/perplexity"] == pytest.approx(math.exp(line["valid/nll"]))
    scores = json.loads(folder.result_file.read_text())["test"]["test"]
    assert scores["context"] == BLOCK and scores["stride"] == STRIDE and 0 < scores["bits_per_byte"] < 8


def test_a_text_that_is_only_scored_has_no_hypotheses(folder, model):
    evaluate(model, "valid", folder)
    assert json.loads(folder.evaluation_file("valid").read_text())["nll"] > 0
    assert not list(folder.path.glob("*hypotheses*"))


def test_the_score_is_that_of_each_token_after_the_context_of_its_window(folder, model):
    """Token by token, with a loop that knows nothing of batches."""
    corpus = TASKS[model.task].scored_corpus(model.data, model.assets, "test")
    ids = np.asarray(corpus.tests["test"].source.tokens, np.int32)
    log_p = jax.jit(lambda tokens: jax.nn.log_softmax(build(model.config).apply(model.variables, tokens)))
    before, total = np.concatenate([[EOS], ids]), 0.0
    for place, token in enumerate(ids):
        first = max(0, -(-(place + 1 - BLOCK) // STRIDE)) * STRIDE
        row = np.full((1, BLOCK), EOS, np.int32)
        row[0, : place + 1 - first] = before[first : place + 1]
        total -= float(log_p(row)[0, place - first, token])
    scores, _ = model.score(corpus.tests["test"], "test")
    assert scores["nll"] == pytest.approx(total / len(ids), rel=1e-5)
    assert scores["bits_per_byte"] == pytest.approx(total / math.log(2) / len(bytes((ids - 4).astype(np.uint8))))


def test_a_smaller_stride_is_another_score_with_its_own_file(folder, model):
    found = evaluate(changed(model, stride=1), "test", folder)["test"]
    assert found["stride"] == 1 and found["nll"] != evaluate(model, "test", None)["test"]["nll"]
    (path,) = folder.path.glob("evaluation-test*stride*1.json")
    assert json.loads(path.read_text())["bits_per_byte"] == found["bits_per_byte"]


def test_its_ticket_is_its_checkpoint_and_its_size_was_known(folder, model, tmp_path):
    assert_ticket_is_checkpoint(model, folder.ticket_file, tmp_path, ["un dos", "", "cat"], "nll")
    assert ticket_bytes(model.config) <= folder.ticket_file.stat().st_size


def test_the_most_probable_tokens_are_those_of_whole_sequences(model):
    """Temperature 0 continues with the most probable byte, of which specials are none, also after the context was cut in half."""
    context = BLOCK
    (said,) = changed(model, temperature=0.0).generate(["un do"])
    known = [EOS, *(byte + 4 for byte in b"un do")]
    first = 0
    apply = jax.jit(build(model.config).apply)
    for byte in said.encode():
        row = np.full((1, context), EOS, np.int32)
        row[0, : len(known) - first] = known[first:]
        logits = np.asarray(apply(model.variables, row))[0, len(known) - 1 - first]
        assert 4 + int(logits[4:].argmax()) == byte + 4
        known.append(byte + 4)
        first += (context - context // 2) * (len(known) - 1 - first == context)
    assert len(said) == LENGTH and first > 0


def test_a_sample_depends_on_its_seed_its_place_and_nothing_else(model):
    prompts = ["un dos", "c", "un dos", "tres cat cinc un"]
    said = model.generate(prompts)
    assert said == model.generate(prompts) and said[0] != said[2]
    assert model.generate(prompts[:2]) == said[:2]
    assert changed(model, max_tokens=16).generate(prompts) == said  # one prompt in each batch
    assert changed(model, sample_seed=2).generate(prompts) != said
    assert changed(model, temperature=1e-6).generate(prompts) == changed(model, temperature=0.0).generate(prompts)


def test_of_a_long_prompt_the_last_tokens_are_read_and_the_rest_is_named(model, caplog):
    long = "dos tres " * 5
    with caplog.at_level(logging.WARNING):
        (said,) = model.generate([long])
    assert f"prompt 1 has 45 tokens, but the context has {BLOCK}: only its last {BLOCK} are read" in caplog.text
    assert model.generate(["xxx" + long]) == [said] == model.generate([long[-BLOCK:]])


@pytest.mark.parametrize(
    ("length", "read", "warnings"), [(BLOCK - 1, BLOCK - 1, 0), (BLOCK, BLOCK, 0), (BLOCK + 1, BLOCK, 1)]
)
def test_a_prompt_that_fits_into_the_context_is_read_whole(model, caplog, length, read, warnings):
    """The eos before it is not of the prompt."""
    prompt = ("dos tres " * 5)[:length]
    with caplog.at_level(logging.WARNING):
        ids = model._prompt(1, prompt)
    assert model._unit.text(ids[ids != EOS]) == prompt[-read:] and len(caplog.messages) == warnings


def test_what_a_model_writes_is_one_line_and_moves_no_cursor(model, monkeypatch):
    every = "".join(map(chr, range(0x3000)))
    monkeypatch.setattr(CausalLanguageModel, "generate", lambda *_: [every, "a\r\nb\tc\x1b[2J"])
    everything, other = model.lines(["", "x\ny"])
    assert everything.splitlines() == [everything] and "\x1b" not in everything and "ä" in everything
    assert other == "x↵ya↵b\tc�[2J"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"evaluation.stride": BLOCK + 1}, r"evaluation\.stride is 17, but data\.block is 16"),
        ({"evaluation.sample_seed": 2**32}, r"evaluation\.sample_seed is 4294967296; it must be below 2\*\*32"),
        ({"evaluation.temperature": -1.0}, r"evaluation\.temperature is -1\.0"),
        (
            {"evaluation.temperature": 1e-30},
            r"evaluation\.temperature is 1e-30; it must be 0, .* or a number of at least 1e-06",
        ),
        (
            {"data.source": "toy", "data.directory": "", "data.held_out": 0.0},
            r"task=causal_lm, but data\.source='toy'; give data\.source=plain or enwik8",
        ),
        ({"task": "translation", "model.encoder_layers": 1}, r"data\.source='plain' is one text without translations"),
        ({"train.select": "bleu"}, r"train\.select is 'bleu', but the validation set is measured by nll"),
    ],
)
def test_settings_that_do_not_fit_are_refused(run_of, changes, message):
    with user_error(message):
        run_of(**changes)


def test_a_broken_model_writes_nothing(model):
    broken = jax.tree.map(lambda leaf: jnp.full_like(leaf, jnp.nan), model.variables)
    for temperature in (0.0, 1.0):
        with user_error("logits are not finite: this checkpoint cannot continue a text"):
            dataclasses.replace(changed(model, temperature=temperature), variables=broken).generate(["ab"])


def test_a_ticket_of_bytes_has_the_vocabulary_of_bytes(model, tmp_path):
    """Else its ids would be those of other tokens, or of none."""
    tokens = model.assets.target_vocabulary.tokens
    swapped = Vocabulary((*tokens[:5], tokens[6], tokens[5], *tokens[7:]))
    text = dataclasses.replace(model.assets, source_vocabulary=swapped, target_vocabulary=swapped)
    with user_error("reads text in bytes, but its vocabulary is not that of bytes"):
        tickets.save(tmp_path / "ticket", tickets.from_run(dataclasses.replace(model, assets=text)))
    assert not any(tmp_path.iterdir())


def test_the_validation_text_can_be_a_part(model):
    """With a limit, the score is that of the text cut there."""
    corpus = TASKS[model.task].scored_corpus(model.data, model.assets, "valid")
    task, data = TASKS[model.task], model.data
    cut = corpus.valid.source.tokens[:20]
    limited = task.validator(model.config, data, changed(model, valid_tokens=20).settings, corpus)
    object.__setattr__(corpus.valid, "source", Stream(cut, BLOCK))
    whole = task.validator(model.config, data, model.settings, corpus)
    fixed = {name: tree for name, tree in model.variables.items() if name != "params"}
    assert limited(model.variables["params"], fixed, lambda: None) == whole(
        model.variables["params"], fixed, lambda: None
    )

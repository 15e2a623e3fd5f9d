"""Hostile text goes through preparation, training, translation and BLEU: as many lines come out as went in."""

import logging
import random

import numpy as np
import pytest

from one_layer.data import loading
from one_layer.data.text.preprocess import Preprocessing
from one_layer.data.tokens import LONGEST
from one_layer.runs.evaluate import evaluate
from one_layer.runs.folder import RunFolder
from one_layer.runs.restore import restore_run
from one_layer.tasks import TASKS
from one_layer.tasks.translation import bleu
from one_layer.training.train import train
from tests import tiny

SHORT = [
    "",
    " ",
    "\t \u00a0",
    "\0",
    "a\0b\0\0",
    "\u2028",
    "one\u2028two\u2029three\u0085four",
    "\u202eright to left\u202c \u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd",
    "😀👩‍👩‍👧‍👦 🏳️‍🌈",
    "e\u0301\u0301\u0301" * 9,
    "\ufeffmark",
    "carriage\rreturn",
    "@@ a@@ @@",
    "<unk> <s> </s> <pad>",
    "&amp;amp; &#10; &lt;",
    "%s {} \\n \\x00",
    "." * 300,
    "\ud7ff\ue000\U0010ffff",
    "\x01\x02\x7f\x9f",
    "\u200b\u200d\u2060",
]
LONG = ["x" * 10**6, "ab " * 333_333, "." * 10**6, "😀" * 250_000]
TOO_LONG = [line[: 60 * LONGEST] for line in LONG[:2]]  # they are split into subwords over and over again


def hostile(seed: int, count: int) -> list[str]:
    """Lines of random characters, from all of Unicode but the line feed and surrogates."""
    dice, lines = random.Random(seed), []
    for _ in range(count):
        codes = [
            dice.choice([dice.randrange(128), dice.randrange(0x3000), dice.randrange(0x110000)])
            for _ in range(dice.randrange(30))
        ]
        lines.append("".join(chr(code) for code in codes if code != 10 and not 0xD800 <= code < 0xE000))
    return lines


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Pairs of the toy language with hostile lines between them; line ends of Windows, a byte order mark and no last line end."""
    folder = tmp_path_factory.mktemp("text")
    clean = tiny.run().task.corpus(tiny.run().data).tests["test"]
    for name, hostile_lines in {
        "train": [*SHORT, *hostile(1, 40), *TOO_LONG],
        "valid": SHORT,
        "test": [*SHORT, *TOO_LONG],
    }.items():
        for side, language in enumerate(("de", "en")):
            friendly = (clean.source_text, clean.reference)[side] * (6 if name == "train" else 1)
            lines = [line for pair in zip(friendly, friendly[::-1], strict=True) for line in pair] + hostile_lines[
                :: 1 - 2 * side
            ]
            lines.append(friendly[0])  # an empty last line without a line end would be no line
            lines = [line.replace("\n", " ").rstrip("\r") for line in lines]
            end = "\r\n" if name == "valid" else "\n"
            (folder / f"{name}.{language}").write_bytes(("\ufeff" + end.join(lines) + end * (name != "test")).encode())
    return folder


@pytest.fixture(scope="module")
def trained(text, tmp_path_factory):
    """A run that was trained on it, and scored on its test set."""
    folder = tmp_path_factory.mktemp("run") / "run"
    changes = {
        "data.source": "text",
        "data.directory": str(text),
        "data.tokenize": True,
        "data.bpe_merges": 50,
        "train.updates": 4,
    }
    train(tiny.run(changes), folder, [])
    return folder


def lines_of(path) -> int:
    return path.read_bytes().count(b"\n")


@pytest.mark.slow
def test_a_run_on_hostile_text_has_a_hypothesis_for_every_line(trained, text, caplog):
    wanted = lines_of(text / "test.de") + 1  # the file has no last line end
    assert lines_of(trained / "hypotheses-test.txt") == lines_of(trained / "hypotheses-test.tokenized.txt") == wanted
    with caplog.at_level(logging.INFO):
        scores = evaluate(restore_run(trained), "valid", RunFolder(trained))["valid"]
    assert scores["sentences"] == lines_of(text / "valid.de") == lines_of(trained / "hypotheses-valid.txt")
    assert 0 <= scores["bleu_tokenized"] <= 100 and 0 <= scores["bleu_sacre"] <= 100


@pytest.mark.slow
def test_lines_that_are_too_long_are_cut_and_counted(trained):
    model = restore_run(trained)
    corpus = TASKS[model.task].scored_corpus(model.data, model.assets, "test")
    test, count = corpus.tests["test"], 2 * len(TOO_LONG)
    assert max(test.source.lengths.max(), test.target.lengths.max()) == LONGEST
    cut = sum(int((side.lengths == LONGEST).sum()) for side in (test.source, test.target))
    assert any(
        f"{cut:,} lines have {LONGEST:,} tokens: if any was longer, it was cut to that" in line
        for line in corpus.report
    )
    assert 0 < cut <= count
    train_report = loading.load(model.data, model.assets.vocabularies, model.assets.codes).report
    assert any("with an empty side" in line and "with more than 175 tokens on a side" in line for line in train_report)


@pytest.mark.slow
def test_translations_are_as_many_as_lines(trained, caplog):
    model, lines = restore_run(trained), [*SHORT, TOO_LONG[1], *hostile(2, 30), ""]
    found = model.translate(lines)
    assert len(found) == len(lines) and not any("\n" in line for line in found)
    assert all(found[place] == "" for place, line in enumerate(lines) if not line.strip())
    assert f"1 of {len(lines)} lines have more than {LONGEST} tokens" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize("language", ["de", "en"])
def test_preparation_and_its_inverse_keep_the_number_of_lines(language):
    lines = [*SHORT, *LONG, *hostile(3, 300)]
    for steps in (Preprocessing(language), Preprocessing(language, tokenize=True, lowercase=True)):
        prepared = steps.apply(lines)
        assert len(prepared) == len(lines) and not any("\n" in line for line in prepared)
        assert len(steps.undo(prepared)) == len(steps.join(prepared)) == len(lines)


def test_bleu_takes_any_lines():
    lines = [*SHORT, *hostile(4, 200)]
    others = lines[::-1]
    for score in (
        bleu.bleu_tokenized(lines, others),
        bleu.bleu_sacre(lines, others)[0],
        bleu.bleu_compound_split(lines, others),
    ):
        assert np.isfinite(score) and 0 <= score <= 100

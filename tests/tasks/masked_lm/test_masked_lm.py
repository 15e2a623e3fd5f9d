"""The task of masked language modelling: it trains, resumes, is scored under fixed masks, and fills; from runs and from tickets."""

import dataclasses
import json
import math

import numpy as np
import pytest

from one_layer import tickets
from one_layer.data.text.units import MASK
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.importers.embeddings import Side, embedding_rows, run_tables
from one_layer.runs.evaluate import evaluate
from one_layer.tasks import TASKS
from one_layer.tasks.masked_lm.model import WHITE_AT_END
from one_layer.training.fine_tuning import source_of
from one_layer.training.metrics import read_metrics
from tests import user_error
from tests.tasks.conftest import assert_ticket_is_checkpoint

pytestmark = pytest.mark.slow

WORDS = ["uno", "due", "tre", "gatto", "cinque"]
LINES = 150
CHANGES = {
    "task": "masked_lm",
    "model.encoder_layers": 2,
    "model.decoder_layers": 0,
    "data.unit": "bpe",
    "data.bpe_kind": "byte-level",
    "data.bpe_merges": 20,
    "data.block": 16,
    "data.max_tokens": 256,
    "train.select": "accuracy",
    "optim.lr": 0.003,
}


def test_it_learns_and_says_what_it_measures(folder, model):
    lines = [line for line in read_metrics(folder.metrics_file) if "valid/nll" in line]
    assert lines[-1]["valid/nll"] < lines[0]["valid/nll"] < math.log(model.config.source_vocab)
    for line in lines:
        assert line["valid/perplexity"] == pytest.approx(math.exp(line["valid/nll"])) and line["valid/accuracy"] <= 1
    scores = json.loads(folder.result_file.read_text())["test"]["test"]
    assert scores["masked"] > 0 and 0 <= scores["accuracy"] <= 1


def test_a_text_of_which_no_token_is_masked_is_refused(folder, model):
    """It would have an nll of 0, better than any other."""
    few = dataclasses.replace(model, data=dataclasses.replace(model.data, mask_share=1e-9))
    with user_error("no token of valid is masked"):
        evaluate(few, "valid", None)


@pytest.mark.parametrize("part", ["valid", "test"])
def test_it_is_refused_before_training(folder, tmp_path, part):
    """And not at the end, where the scores of the test sets would be missing."""
    data = dataclasses.replace(folder.read_config().data, store="", directory=str(tmp_path))
    for name in ("train", "valid", "test"):
        (tmp_path / name).write_text("a\n" if name == part else "uno due tre gatto cinque\n" * 40, "utf-8")
    named = dataclasses.replace(data, train="train", valid="valid", tests=("test",), held_out=0.0)
    with user_error(f"no token of {part} is masked"):
        TASKS["masked_lm"].corpus(named)


def test_a_run_that_begins_with_it_reads_the_same_units(folder, run_of):
    other = {"data.unit": "bytes", "data.bpe_merges": 0, "train.init_from": str(folder.path)}
    with user_error(r"data\.unit is 'bytes', but it is 'bpe' there; give --config\.data\.unit=bpe"):
        source_of(run_of(**other))


def test_its_ticket_is_its_checkpoint(folder, model, tmp_path):
    assert_ticket_is_checkpoint(model, folder.ticket_file, tmp_path, ["uno <mask> tre", "", "<mask>"], "accuracy")


def test_a_mask_takes_the_white_space_before_it_that_tokenizers_takes():
    from tokenizers import AddedToken, Tokenizer, models

    theirs = Tokenizer(models.WordLevel({"<unk>": 0}, "<unk>"))
    theirs.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    for number in (*range(0x3001), 0xFEFF):
        taken = theirs.encode(f"a{chr(number)}<mask>").offsets[-1][0] == 1
        assert taken == (WHITE_AT_END.sub("", f"a{chr(number)}") == "a"), hex(number)


def test_every_mask_gets_candidates_by_falling_probability(model):
    lines = ["uno <mask> tre", "", "<mask> due<mask>"]
    found = model.fill(lines)
    assert [len(masks) for masks in found] == [1, 0, 2]
    for mask in (mask for masks in found for mask in masks):
        chances = [each.probability for each in mask]
        assert len(mask) == 5 and chances == sorted(chances, reverse=True) and 0 < sum(chances) <= 1
    alone = [model.fill([line])[0] for line in lines]
    for one, other in zip(found, alone, strict=True):
        for mask, same in zip(one, other, strict=True):
            assert [each.text for each in mask] == [each.text for each in same]
    text = model.lines(lines)
    assert text[1] == "" and text[2].count("\t") == 1 and text[0].count(",") == 4


def test_a_ticket_without_a_mask_in_its_vocabulary_is_refused(model, tmp_path):
    tokens = model.assets.target_vocabulary.tokens
    other = Vocabulary(tuple("mask" if token == MASK else token for token in tokens))
    text = dataclasses.replace(model.assets, source_vocabulary=other, target_vocabulary=other)
    with user_error("its vocabulary has no <mask>, which a masked language model needs"):
        tickets.save(tmp_path / "ticket", tickets.from_run(dataclasses.replace(model, assets=text)))


def test_a_line_without_a_mask_or_longer_than_the_context_is_refused(model):
    with user_error(r"line 2, 'uno due', has no <mask>; put one where a token is wanted"):
        model.fill(["<mask>", "uno due"])
    with user_error(r"line 1 has .* tokens .*, but the context has 16; give a shorter line"):
        model.fill(["gatto " * 30 + "<mask>"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data.mask_share": 0.0}, r"data\.mask_share=0\.0 is not a share"),
        (
            {"data.source": "toy", "data.directory": "", "data.held_out": 0.0},
            r"task=masked_lm, but data\.source='toy'; give data\.source=plain",
        ),
        (
            {"model.positions": "learned", "model.max_positions": 8},
            r"data\.block is 16, but model\.max_positions is 8; give a table with more positions",
        ),
        ({"data.block": 2}, r"data\.block is 2; a masked language model needs at least 3"),
        ({"model.decoder_layers": 1}, r"model\.decoder_layers is 1; a masked language model has no decoder: give 0"),
        ({"train.select": "bleu"}, r"is 'bleu', but the validation set is measured by nll and accuracy"),
    ],
)
def test_settings_that_do_not_fit_are_refused(run_of, changes, message):
    with user_error(message):
        run_of(**changes)


@pytest.mark.parametrize("languages", [("en",), ("de", "en")])
def test_its_table_serves_any_language(folder, model, languages):
    taking = dataclasses.replace(
        model.config, embedding="frozen", embedding_source="run", embedding_path=str(folder.path)
    )
    found = embedding_rows(taking, {"source_embedding": Side(model.assets.source_vocabulary, languages)})
    np.testing.assert_array_equal(found["source_embedding"], run_tables(model)[0])

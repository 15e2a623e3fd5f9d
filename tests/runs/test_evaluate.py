"""Scores of a trained run, whatever the batches, and its translations, line for line."""

import dataclasses
import json
import logging
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer import tickets
from one_layer.data import loading
from one_layer.data.sources.pairs import Toy
from one_layer.data.special_tokens import EOS, PAD
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.models import build
from one_layer.runs.evaluate import evaluate
from one_layer.runs.folder import RunFolder
from one_layer.runs.restore import restore_run
from one_layer.tasks.translation import bleu
from one_layer.tickets.inspection import describe as describe_ticket
from one_layer.tickets.inspection import inspect
from tests import tiny, user_error

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def workdir(tiny_run, tmp_path_factory):
    """A copy that may be written into."""
    folder = tmp_path_factory.mktemp("copy") / "run"
    shutil.copytree(tiny_run, folder)
    return folder


@pytest.fixture(scope="module")
def corpus():
    return loading.load(tiny.run().data)


@pytest.fixture(scope="module")
def last(workdir):
    return restore_run(workdir, "last")


def padded(sentences):
    width = max(map(len, sentences))
    return np.stack([np.pad(ids, (0, width - len(ids)), constant_values=PAD) for ids in sentences]).astype(np.int32)


@pytest.mark.parametrize("batches", [{"buckets": 1}, {"buckets": 3, "max_tokens": 40}])
def test_the_validation_loss_is_the_mean_over_tokens_of_the_whole_set(last, corpus, batches):
    """In one batch, by other code: padding and the filling of batches have no weight."""
    run = tiny.run({f"evaluation.{name}": value for name, value in batches.items()})
    validator = run.task.validator(last.config, run.data, run.evaluation, corpus)
    found = validator(last.variables["params"], {"random": last.variables["random"]})
    source, target = padded(corpus.valid.source), padded(corpus.valid.target)
    target_in = np.where(target == PAD, PAD, np.roll(target, 1, axis=1))
    target_in[:, 0] = EOS
    log_p = jax.nn.log_softmax(build(last.config).apply(last.variables, source, target_in))
    each = np.asarray(jnp.take_along_axis(log_p, target[..., None], axis=2))[..., 0]
    assert found == {"valid/nll": pytest.approx(-each[target != PAD].mean(), rel=1e-5)}


def test_the_validation_bleu_is_that_of_its_translations(workdir, last, corpus):
    run = tiny.run({"evaluation.valid_beam": 2})
    validator = run.task.validator(last.config, run.data, run.evaluation, corpus)
    found = validator(last.variables["params"], {"random": last.variables["random"]})
    scores = evaluate(restore_run(workdir, "last"), "valid", None)["valid"]
    assert found["valid/bleu"] == scores["bleu_tokenized"]


def test_scores_of_an_engine_have_files_of_their_own_wherever_they_lie(tmp_path, workdir):
    for folder in (RunFolder(tmp_path), RunFolder(workdir)):
        for scored in ("t.safetensors", "t.safetensors engine=ctranslate2-int8"):
            folder.write_scores("test", scored, {"scored": scored})
            folder.write_hypotheses("test", scored, {"plain": [scored]})
        name = "" if folder.path == tmp_path else "-t.safetensors"
        for end, scored in (
            ("", "t.safetensors"),
            ("-engine-ctranslate2-int8", "t.safetensors engine=ctranslate2-int8"),
        ):
            assert json.loads((folder.path / f"evaluation-test{name}{end}.json").read_text())["scored"] == scored
            assert (folder.path / f"hypotheses-test{name}{end}.txt").read_text().strip() == scored


def test_scores_of_texts_in_other_folders_have_files_of_their_own(tmp_path):
    folder = RunFolder(tmp_path)
    folder.config_file.touch()  # it holds a run
    settings = [f"directory={place}" for place in ("data/x", "data-x", "/data/x", "data x")]
    settings += ["length_penalty=-1.0", "length_penalty=1.0", "beam=1", "beam=1 valid=a,b", "beam=1 valid=a-b"]
    for said in settings:
        folder.write_scores("test", f"best {said}", {"said": said})
    assert {json.loads(file.read_text())["said"] for file in tmp_path.glob("evaluation-*.json")} == {*settings}
    assert (tmp_path / "evaluation-test-best-beam-1.json").exists()


def test_what_an_evaluation_leaves(workdir, corpus):
    scores = evaluate(restore_run(workdir, "last"), "test", RunFolder(workdir))["test"]
    assert json.loads((workdir / "evaluation-test-last.json").read_text("utf-8")) == scores
    hypotheses = (workdir / "hypotheses-test-last.txt").read_text("utf-8").split("\n")
    tokenized = (workdir / "hypotheses-test-last.tokenized.txt").read_text("utf-8").split("\n")[:-1]
    assert bleu.bleu_tokenized(tokenized, corpus.tests["test"].reference) == scores["bleu_tokenized"]
    assert hypotheses.pop() == "" and len(hypotheses) == scores["sentences"] == len(corpus.tests["test"])
    sacre, signature = bleu.bleu_sacre(hypotheses, corpus.tests["test"].reference_detokenized)
    assert (scores["bleu_sacre"], scores["signature"]) == (sacre, signature)
    assert (scores["checkpoint"], scores["step"], scores["beam"]) == ("last", tiny.UPDATES, 2)
    assert 0 <= scores["bleu_tokenized"] <= 100 and "BP" in scores["details_tokenized"]


def test_the_best_of_a_run_is_what_its_result_scored(tiny_run, workdir):
    scores = evaluate(restore_run(workdir, "best"), "test", RunFolder(workdir))["test"]
    result = json.loads((tiny_run / "result.json").read_text("utf-8"))
    assert {name: scores[name] for name in result["test"]["test"]} == result["test"]["test"]
    assert scores["step"] == result["valid"]["step"]


def test_scores_say_of_which_text_they_are(workdir, last):
    text = json.loads((workdir / "result.json").read_text("utf-8"))["data"]
    for split in ("valid", "test"):
        same, other = last, dataclasses.replace(last, data=dataclasses.replace(last.data, seed=last.data.seed + 1))
        scores = evaluate(same, split, None)[split]
        assert scores["fingerprint"] == text[split]
        assert evaluate(other, split, None)[split]["fingerprint"] != text[split]


@pytest.mark.parametrize("name", ["best", "model"])
def test_a_ticket_is_a_ticket_whatever_its_name_and_a_checkpoint_is_none(workdir, tmp_path, monkeypatch, name):
    """A file in the current folder may have the name of a checkpoint."""
    shutil.copyfile(workdir / "ticket.safetensors", tmp_path / name)
    monkeypatch.chdir(tmp_path)
    folder = RunFolder(tmp_path / "scores")
    scores = evaluate(tickets.restore_ticket(name), "test", folder)["test"]
    assert scores["file_bytes"] == (tmp_path / name).stat().st_size
    shutil.copytree(workdir, tmp_path / "run")
    before = tiny.contents(tmp_path / "run")
    evaluate(tickets.restore_ticket(name), "test", RunFolder(tmp_path / "run"))
    after = tiny.contents(tmp_path / "run")
    assert {file: after[file] for file in before} == before and len(after) > len(before)
    if name != "model":
        assert "file_bytes" not in evaluate(restore_run(workdir, name), "test", None)["test"]


def test_tickets_of_other_checkpoints_and_precisions_are_the_run_s_own(workdir, tmp_path, caplog):
    shutil.copytree(workdir, tmp_path / "run")
    before = tiny.contents(tmp_path / "run")
    caplog.set_level(logging.INFO)
    tickets.export(restore_run(workdir, "last"), tmp_path / "own", "int4")
    evaluate(tickets.restore_ticket(tmp_path / "own"), "test", RunFolder(tmp_path / "run"))
    assert f"itself has {(tmp_path / 'own').stat().st_size:,} bytes" in caplog.text
    assert len(tiny.contents(tmp_path / "run")) > len(before)


def trained_otherwise(section, **values):
    raw = tiny.run().raw
    return {"trained_with": {**raw, section: {**raw[section], **values}}}


def other_word(assets):
    words = assets.source_vocabulary.text.replace(assets.source_vocabulary.tokens[-1], "qwertz")
    return dataclasses.replace(assets, source_vocabulary=Vocabulary.parse(words.splitlines(), "words"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda run: {"seed": 2}, r"seed: 1 there, 2 here"),
        (lambda run: {"config": run.config.replace(keep=0.25)}, r"model\.keep: 0\.5 there, 0\.25 here"),
        (lambda run: {"data": dataclasses.replace(run.data, max_length=9)}, r"data\.max_length: \d+ there, 9 here"),
        (lambda run: trained_otherwise("optim", freeze="norms"), r"optim\.freeze: '' there, 'norms' here"),
        (lambda run: trained_otherwise("train", backskip="identity"), r"train\.backskip: 'off' there, 'identity' here"),
        (lambda run: trained_otherwise("train", select="bleu"), r"train\.select: 'nll' there, 'bleu' here"),
        (lambda run: {"assets": other_word(run.assets)}, r"source vocabulary: '\w+' there, '\w+' here"),
    ],
)
def test_a_ticket_of_another_model_is_scored_in_a_folder_of_its_own(workdir, tmp_path, change, message):
    """The report would show its scores as those of the run."""
    run = restore_run(workdir)
    tickets.export(dataclasses.replace(run, **change(run)), tmp_path / "other")
    other, before = tickets.restore_ticket(tmp_path / "other"), tiny.contents(workdir)
    with user_error(rf"{workdir} holds another run than that of the ticket .* \({message}\)"):
        evaluate(other, "test", RunFolder(workdir))
    assert tiny.contents(workdir) == before
    evaluate(other, "test", RunFolder(tmp_path / "new"))
    assert (tmp_path / "new" / "evaluation-test.json").exists()


def test_what_may_change_when_a_run_goes_on_makes_no_other_run(workdir, tmp_path):
    run = restore_run(workdir)
    longer = {**run.trained_with, "train": {**run.trained_with["train"], "updates": 9 * tiny.UPDATES}}
    longer["data"] = {**longer["data"], "directory": "x", "valid": "x", "store": "x"}
    longer["evaluation"] = {**longer["evaluation"], "beam": 7}
    assert "test" in evaluate(dataclasses.replace(run, trained_with=longer, file_bytes=1), "test", RunFolder(workdir))


def test_a_ticket_of_an_earlier_version_is_scored_in_its_own_run(workdir, tmp_path):
    ticket = tickets.load(workdir / "ticket.safetensors")
    assert ticket.training["optim"]["lr"] == tiny.CHANGES["optim.lr"]
    tickets.save(tmp_path / "old", dataclasses.replace(ticket, checkpoint="", training={}))
    old = tickets.restore_ticket(tmp_path / "old")
    assert "optim" not in old.trained_with
    assert "ticket_checkpoint" not in evaluate(old, "test", RunFolder(workdir))["test"]


@pytest.mark.parametrize("checkpoint", ["best", "last", "average:2", str(tiny.EVERY)])
def test_the_scores_of_a_ticket_say_which_checkpoint_it_is_of(workdir, tmp_path, checkpoint):
    tickets.export(restore_run(workdir, checkpoint), tmp_path / "t", "int8")
    scores = evaluate(tickets.restore_ticket(tmp_path / "t"), "test", None)["test"]
    assert (scores["checkpoint"], scores["ticket_checkpoint"]) == (str(tmp_path / "t"), checkpoint)
    held = {"average:2": f"the average of checkpoints up to update {tiny.UPDATES} (average:2)"}
    said = held.get(checkpoint) or f"update {scores['step']}{'' if checkpoint.isdecimal() else f' ({checkpoint})'}"
    assert describe_ticket(inspect(tmp_path / "t")).split("\n")[0].endswith(f"; seed 1, {said}")
    assert "ticket_checkpoint" not in evaluate(restore_run(workdir, checkpoint), "test", None)["test"]


def test_names_with_folders_make_files_in_the_folder_of_the_run(tmp_path):
    folder = RunFolder(tmp_path)
    names = ["a/test", "b/test", "a-test", "../a/test", "/a/test", "a\\test"]
    made = [make(name) for name in names for make in (folder.evaluation_file, folder.hypotheses_file)]
    assert len(set(made)) == len(made) and {path.parent for path in made} == {tmp_path}
    assert folder.evaluation_file("test.bpe10k").name == "evaluation-test.bpe10k.json"


def test_splits_that_are_not_there(last):
    with user_error("--split='tset' is unknown; this run has valid, test"):
        evaluate(last, "tset", None)
    without = dataclasses.replace(last, data=dataclasses.replace(last.data, tests=()))
    with user_error(r"--split='test' is unknown; .* valid, and no test set: data\.tests is empty"):
        evaluate(without, "test", None)


def test_only_the_split_that_is_asked_for_is_read(workdir, monkeypatch):
    read = []
    monkeypatch.setattr(Toy, "read", lambda self, name, of=Toy.read: read.append(name) or of(self, name))
    evaluate(restore_run(workdir, "last"), "valid", None)
    assert read == ["valid"]

"""Fine-tuning: what a run takes over from another one, what it refuses, and that it then stands by itself."""

import dataclasses
import json
import shutil
import signal

import numpy as np
import pytest
from flax.traverse_util import flatten_dict

from one_layer import tickets
from one_layer.data.sources.toy import grammar
from one_layer.models import initialize
from one_layer.runs.folder import RunFolder
from one_layer.runs.restore import restore_run
from one_layer.training import fine_tuning
from one_layer.training import trainer as training
from one_layer.training.fine_tuning import source_of, start
from one_layer.training.interruption import Interrupted
from one_layer.training.metrics import read_metrics
from one_layer.training.train import train
from tests import tiny, tiny_runs, user_error
from tests.training.test_train import disturbed, lines

pytestmark = pytest.mark.slow

CLASSIFIER = {name: value for name, value in tiny_runs.TASKS["classification"].items() if name != "data.store"}
CLASSIFIER |= {"data.source_language": "de", "data.tests": ("test.tsv",), "data.tokenize": False, "train.updates": 8}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """German sentences of the toy language with random labels."""
    folder, labels = tmp_path_factory.mktemp("text"), np.random.default_rng(1)
    for name, (german, _) in grammar.generate(1, train=60, valid=12, test=8).items():
        rows = "".join(f"{line}\t{labels.integers(2)}\n" for line in german)
        (folder / f"{name}.tsv").write_text(f"sentence\tlabel\n{rows}", "utf-8")
    return folder


def tuned(source, changes=None):
    return tiny.run({"train.init_from": str(source), **(changes or {})})


def classifier(source, text, changes=None):
    return tuned(source, {**CLASSIFIER, "data.directory": str(text), **(changes or {})})


def begun(run):
    model = source_of(run)
    corpus = run.task.corpus_in_vocabularies_of(model, run.data)
    return model, corpus, start(run, run.model_config(*map(len, corpus.vocabularies)), corpus, model, {})


def test_the_same_model_takes_everything_over(tiny_run):
    model, corpus, found = begun(tuned(tiny_run, {"data.seed": 5, "model.keep": 0.5, "optim.lr": 0.1}))
    theirs, taken = flatten_dict(model.variables["params"]), flatten_dict(found.params)
    assert taken.keys() == theirs.keys()
    for path, array in taken.items():
        np.testing.assert_array_equal(array, theirs[path])
    assert corpus.vocabularies == model.assets.vocabularies
    assert found.report[1] == "new: nothing" and found.fixed == {"frozen": {}}


def test_a_classifier_takes_over_encoder_and_embeddings(tiny_run, text):
    model, corpus, found = begun(classifier(tiny_run, text))
    assert corpus.source_vocabulary == model.assets.source_vocabulary
    assert {path[0] for path in flatten_dict(found.params)} == {"encoder", "source_embedding"}
    assert found.report[1] == "new: head_dense 2, head_output 2"
    assert found.report[2].startswith("not taken over: decoder/layers 10, target_embedding 1")


def test_layers_that_do_not_fit_are_refused_and_the_log_says_other_settings(tiny_run):
    with user_error(r"would be left behind by train\.init_from: model\.encoder_layers is 2 and 1 there; give"):
        begun(tuned(tiny_run, {"model.encoder_layers": 2}))
    free = {"model.selection": "score", "model.dropout": 0.3}
    _, _, found = begun(tuned(tiny_run, free))
    assert found.report[1:] == [
        "new: nothing",
        "settings by which the same arrays may compute other numbers: model.selection is 'score' and 'magnitude' there",
    ]


def test_adapters_of_another_rank_are_refused(tiny_run):
    model, corpus, _ = begun(tuned(tiny_run))
    config = model.config.replace(adapter_rank=2)
    adapted = dataclasses.replace(model, config=config, variables=initialize(config, model.seed))
    same, other = (tuned(tiny_run, {"model.adapter_rank": rank}) for rank in (2, 3))
    assert start(same, config, corpus, adapted, {}).report[1] == "new: nothing"
    with user_error(r"would be left behind by train\.init_from: model\.adapter_rank is 3 and 2 there; give"):
        start(other, other.model_for(corpus.vocabularies), corpus, adapted, {})


def test_the_log_says_that_merges_come_from_the_other_run(tmp_path):
    train(tiny.run({"data.bpe_merges": 20, "train.updates": 4, "data.tests": ()}), tmp_path, [])
    _, corpus, found = begun(tuned(tmp_path, {"data.bpe_merges": 7}))
    assert "data.bpe_merges has no effect" in found.report[-1]
    assert corpus.source_preprocessing.codes == RunFolder(tmp_path).assets().source_preprocessing.codes


def test_a_table_of_both_languages_becomes_the_table_of_the_texts(tiny_run, text, tmp_path):
    changes = {"model.weights": "dense", "data.joined_vocabulary": True, "model.shared_embedding": True}
    dense = {"model.weights": "dense"}
    train(tiny.run({**changes, "train.updates": 4, "data.tests": ()}), tmp_path, [])
    model, _, found = begun(classifier(tmp_path, text, dense))
    shared = model.variables["params"]["shared_embedding"]["kernel"]
    np.testing.assert_array_equal(found.params["source_embedding"]["kernel"], shared)


@pytest.fixture(scope="module")
def over_tables(tmp_path_factory):
    """Two dense runs, `first` and `second`, and `run`, whose scores are over the tables of the first."""
    folder = tmp_path_factory.mktemp("over_tables")
    for name, updates in (("first", 4), ("second", 8)):
        changes = {"train.updates": updates, "train.evaluate_every": updates, "data.tests": ()}
        train(tiny.run({"model.weights": "dense", **changes}), folder / name, [])
    train(tiny.run({**tables(folder / "first"), "train.updates": 4, "data.tests": ()}), folder / "run", [])
    return folder


def tables(path):
    return {"model.embedding_source": "run", "model.embedding_path": str(path)}


def test_scores_over_tables_are_taken_over_with_the_same_tables(over_tables, tmp_path):
    changes = {**tables(over_tables / "first"), "train.updates": 4, "data.tests": ()}
    train(tuned(over_tables / "run", changes), tmp_path, [])
    ours, theirs = (fine_tuning.read_frozen(RunFolder(each).frozen_file) for each in (tmp_path, over_tables / "run"))
    assert ours.keys() == theirs.keys() == {f"frozen/{side}_embedding/kernel" for side in ("source", "target")}
    for name, table in ours.items():
        np.testing.assert_array_equal(table, theirs[name])


def test_scores_are_refused_over_tables_if_they_belong_to_random_ones_or_the_other_way_round(tiny_run, over_tables):
    for run, here, there in (
        (tuned(over_tables / "run"), "''", "'.*first'"),
        (tuned(tiny_run, tables(over_tables / "first")), "'.*first'", "''"),
    ):
        with user_error(rf"source_embedding are others .*model\.embedding_path is {here} and {there} there"):
            source_of(run)


def test_scores_are_refused_over_other_tables_before_anything_is_written(over_tables, tmp_path):
    with user_error(r"_embedding of model\.embedding_path=.*second is not the one in .*that of .*first;"):
        train(tuned(over_tables / "run", tables(over_tables / "second")), tmp_path / "new", [])
    assert not RunFolder(tmp_path / "new").holds_run


def test_norms_whose_arrays_have_one_name_are_of_one_kind(tiny_run):
    model = source_of(tuned(tiny_run))
    affine = dataclasses.replace(model, config=model.config.replace(norm="affine"))
    with user_error(r"model\.norm is 'rms', but it is 'affine' there"):
        fine_tuning._check_keys(tuned(tiny_run, {"model.norm": "rms"}), affine)
    fine_tuning._check_keys(tuned(tiny_run, {"model.norm": "rms"}), model)  # plain norms have no arrays


def test_reservoirs_must_be_of_one_kind_only_if_both_models_have_them(tiny_run):
    model = source_of(tuned(tiny_run))
    mixed = tuned(tiny_run, {"model.encoder_layers": "SR", "model.reservoir": "ffn"})
    fine_tuning._check_keys(mixed, model)  # `model.reservoir` of the other run says nothing: it has no reservoir
    reservoirs = dataclasses.replace(model, config=model.config.replace(encoder_layers="SR"))
    with user_error(r"model\.reservoir is 'ffn', but it is 'transformer' there"):
        fine_tuning._check_keys(mixed, reservoirs)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train.model_of": "run"}, r"train\.model_of is run, whose settings were not read"),
        ({"train.init_from": "nowhere"}, r"train\.init_from is nowhere, where there is no run"),
        ({"model.d_model": 32}, r"model\.d_model is 32, but it is 16 there; "),
        ({"model.norm_position": "pre"}, r"model\.norm_position is 'pre', but it is 'post' there; "),
        ({"seed": 2}, r"the fixed weights .* are others .*seed is 2 and 1 there"),
        ({"model.keep": 0.3}, r"the fixed weights .* are others .*model\.keep is 0\.3 and 0\.5 there"),
        ({"model.weights": "multi_layer"}, r"are others .*model\.weights is 'multi_layer' and 'one_layer' there"),
        (
            {"model.weights": "dense"},
            r"nothing of .* fits: it is a translation model of 1\+1 layers with model\.weights=one_layer",
        ),
        ({"data.bpe_merges": 10}, r"data\.bpe_merges is 10 .* has no BPE"),
        (
            {"data.lowercase": True},
            r"data\.lowercase is True, but it is False there; give --config\.data\.lowercase=False$",
        ),
        (
            {"model.d_model": 32, "data.tokenize": True},
            r"d_model is 32, .*tokenize is True, .*give --config\.model\.d_model=16 --config\.data\.tokenize=False$",
        ),
        (
            {"data.source_language": "en", "data.target_language": "de"},
            r"but the run of train\.init_from has de and en",
        ),
    ],
)
def test_a_run_that_does_not_fit_is_refused(tiny_run, changes, message):
    with user_error(message):
        begun(tuned(tiny_run, changes))


def test_a_classifier_of_another_language_is_refused(tiny_run, text):
    message = r"data\.source_language is 'en', but the encoder of train\.init_from reads 'de'; give a run"
    with user_error(message):
        begun(classifier(tiny_run, text, {"data.source_language": "en"}))


def test_a_classifier_may_take_its_labels_from_its_training_text(tiny_run, text, tmp_path):
    for file in text.iterdir():
        named = file.read_text("utf-8").replace("\t0\n", "\tno\n").replace("\t1\n", "\tyes\n")
        (tmp_path / file.name).write_text(named, "utf-8")
    changes = {"data.columns": "sentence,label", "data.store": str(tmp_path / "store")}
    found, listed = (
        begun(classifier(tiny_run, tmp_path, {**changes, "data.labels": labels}))[1]
        for labels in ("from_train", "no,yes")
    )
    assert found.vocabularies == listed.vocabularies
    assert found.target_vocabulary.tokens[-2:] == ("no", "yes")
    assert found.fingerprints() == listed.fingerprints()


def test_other_bad_folders_are_refused(tiny_run, tmp_path):
    with user_error("is a file; give the folder of a run"):
        source_of(tuned(RunFolder(tiny_run).ticket_file))
    shutil.copytree(tiny_run, tmp_path / "copy", ignore=shutil.ignore_patterns("checkpoints"))
    with user_error(r"the run of train\.init_from cannot be used: "):
        source_of(tuned(tmp_path / "copy"))


@pytest.fixture(scope="module")
def finished(tiny_run, text, tmp_path_factory):
    """A classifier of which only the head was trained, from a folder that exists no longer."""
    copy, folder = tmp_path_factory.mktemp("source") / "run", tmp_path_factory.mktemp("tuned")
    shutil.copytree(tiny_run, copy)
    run = classifier(copy, text, {"optim.train_only": "head"})
    train(run, folder, [])
    shutil.rmtree(copy)
    return run, folder


def test_only_the_head_was_trained(tiny_run, finished):
    _, folder = finished
    before, after = (restore_run(each) for each in (tiny_run, folder))
    theirs, found = (flatten_dict(each.variables["params"]) for each in (before, after))
    for path, array in found.items():
        if path[0] in ("encoder", "source_embedding"):
            np.testing.assert_array_equal(array, theirs[path])
    assert np.any(found["head_output", "bias"])  # it was 0
    metrics = read_metrics(folder / "metrics.jsonl")
    assert [line["mask/flips"] for line in metrics if "mask/flips" in line] == [0.0, 0.0]
    ticket = tickets.restore_ticket(RunFolder(folder).ticket_file)
    assert ticket.lines(["das kind schläft ."]) == after.lines(["das kind schläft ."])


def test_an_interrupted_run_goes_on_without_the_other_folder(tiny_run, text, tmp_path, monkeypatch):
    """Stopped before its first evaluation: the masks that the first `mask/flips` compares with are those that it began with."""
    copy = tmp_path / "source"
    shutil.copytree(tiny_run, copy)
    run = classifier(copy, text, {"optim.freeze": "attention"})
    train(run, tmp_path / "whole", [])

    with monkeypatch.context() as patched:
        patched.setattr(training, "train_step", disturbed(lambda n: n == 1 and signal.raise_signal(signal.SIGINT)))
        with pytest.raises(Interrupted):
            train(run, tmp_path / "stopped", [])
    shutil.rmtree(copy)
    train(run, tmp_path / "stopped", [])
    assert lines(tmp_path / "whole") == lines(tmp_path / "stopped")
    results = [json.loads((tmp_path / name / "result.json").read_text("utf-8")) for name in ("whole", "stopped")]
    assert results[0]["test"] == results[1]["test"]
    (needs,) = results[1]["sources"]  # as it was known when the run began
    assert results[0]["sources"] == [needs] and needs["path"] == str(copy) and needs["train_seconds"] > 0
    params = [flatten_dict(restore_run(tmp_path / name, "last").variables["params"]) for name in ("whole", "stopped")]
    for path, array in params[0].items():
        np.testing.assert_array_equal(array, params[1][path])

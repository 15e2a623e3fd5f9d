"""Distillation by words: batches have the teacher's largest probabilities of their targets, wherever these come from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import one_layer
from one_layer.data.special_tokens import PAD
from one_layer.data.text.assets import TextAssets
from one_layer.models import build, initialize
from one_layer.runs.folder import RunFolder
from one_layer.runs.settings import RunConfig, with_values
from one_layer.system.errors import UserError
from one_layer.tasks.losses import TOP_K, Distil
from one_layer.training import distilling
from one_layer.training.beginning import opened
from one_layer.training.distilling import lessons_of
from one_layer.training.teacher import check_keys, teacher_of
from one_layer.training.train import train
from tests import mostly_slow, tiny, tiny_runs, user_error


def student(teacher: Path, changes: dict | None = None) -> RunConfig:
    """It learns from the references, and by words."""
    of = {"data.teacher": str(teacher), "data.teacher_mix": "references", "optim.accumulate": 2}
    return tiny.run({"train.distil": 0.5, **of, "optim.warmup": 1, "train.updates": 4, **(changes or {})})


def largest(model: one_layer.TrainedModel, batch: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The ids and the probabilities that the teacher gives to the targets of a batch, by definition."""
    logits = build(model.config).apply(model.prepared, batch["source"], batch["target_in"])
    log_p = np.asarray(jax.nn.log_softmax(logits), np.float64)
    ids = np.argsort(-log_p, axis=-1)[..., :TOP_K]
    return ids, np.exp(np.take_along_axis(log_p, ids, axis=-1)) * (batch["target"] != PAD)[..., None]


def test_batches_have_the_teachers_largest_probabilities_of_their_targets(tiny_run, tmp_path):
    run, model = student(tiny_run), one_layer.load(tiny_run)
    corpus = run.task.corpus(run.data, model.assets)
    batches = run.task.batches(corpus, run.data, 2, run.seed)
    taught = lessons_of(run, corpus, RunFolder(tmp_path), model).beside(batches)
    assert (taught.batches_per_epoch, taught.describe()) == (batches.batches_per_epoch, batches.describe())
    assert taught.of_each_shape(1) == batches.of_each_shape(1)
    for number in (0, batches.batches_per_epoch - 1, batches.batches_per_epoch):
        batch = taught[number]
        for name, array in batches[number].items():
            np.testing.assert_array_equal(batch.pop(name), array)
        parts = [largest(model, {name: array[part] for name, array in batches[number].items()}) for part in range(2)]
        ids, p = map(np.stack, zip(*parts, strict=True))
        np.testing.assert_allclose(batch["teacher_p"], p, atol=2e-3)  # they are kept in 16 bits
        there = batch["teacher_p"] > 0
        assert there.any() and not there.all()
        assert (batch["teacher_ids"] == ids)[there].mean() > 0.99  # but for ties


def test_an_interrupted_teacher_goes_on_where_it_stopped(tiny_run, tmp_path, monkeypatch):
    run, model = student(tiny_run, {"evaluation.max_tokens": 64}), one_layer.load(tiny_run)
    corpus = run.task.corpus(run.data, model.assets)
    lessons_of(run, corpus, RunFolder(tmp_path / "whole"), model)
    (whole,) = (tmp_path / "whole").iterdir()
    read, given = distilling._Reader.__call__, []

    def twice(reader: distilling._Reader, batch: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        if len(given) == 2:
            raise KeyboardInterrupt
        given.append(len(batch["source"]))
        return read(reader, batch)

    monkeypatch.setattr(distilling._Reader, "__call__", twice)
    folder = RunFolder(tmp_path / "interrupted")
    with pytest.raises(KeyboardInterrupt):
        lessons_of(run, corpus, folder, model)
    (unfinished,) = folder.path.iterdir()
    with unfinished.open("ab") as file:
        file.write(b"the record that a kill cut")
    given.clear()
    monkeypatch.setattr(distilling._Reader, "__call__", lambda reader, batch: given.append(0) or read(reader, batch))
    lessons_of(run, corpus, folder, model)
    (resumed,) = folder.path.iterdir()
    assert resumed.name == whole.name and resumed.read_bytes() == whole.read_bytes()
    batches = -(-60 // (64 // int(max(corpus.train.source.lengths.max(), corpus.train.target.lengths.max()))))
    assert len(given) <= batches - 2, "the first two batches were there"

    resumed.write_bytes(b"")
    with user_error(r"probabilities has 0 bytes, but .* take .*; delete it"):
        lessons_of(run, corpus, folder, model)


@pytest.mark.slow
def test_a_resumed_student_equals_an_uninterrupted_one(tiny_run, tmp_path):
    """It learns from translations and from probabilities of them, in the teacher's vocabularies."""
    translations = {"data.teacher_mix": "translations", "data.tests": ()}
    train(student(tiny_run, translations), tmp_path / "whole", [])
    for updates in (2, 4):
        result = train(student(tiny_run, {**translations, "train.updates": updates}), tmp_path / "resumed", [])
    assert [(source["key"], source["path"]) for source in result["sources"]] == [("data.teacher", str(tiny_run))]
    whole, resumed = (tiny.contents(tmp_path / name) for name in ("whole", "resumed"))
    same = [name for name in whole if name.startswith(("ticket", "teacher"))]
    assert len(same) == 3 and [resumed.get(name) for name in same] == [whole[name] for name in same]
    assert one_layer.load(tmp_path / "whole").assets.vocabularies == one_layer.load(tiny_run).assets.vocabularies
    alone = {"data.teacher": "", "train.distil": 0.0}
    with user_error(r"data\.teacher: .* there, '' here.*train\.distil: 0\.5 there, 0\.0 here"):
        train(student(tiny_run, {**translations, **alone}), tmp_path / "whole", [])


@pytest.mark.parametrize("task", mostly_slow(["classification", "causal_lm", "masked_lm"], ["causal_lm"]))
def test_the_other_tasks_have_the_teachers_probabilities_in_their_loss(task, tmp_path, monkeypatch):
    tiny_runs.write_text(tmp_path, task, train=40)
    monkeypatch.chdir(tmp_path)
    config = {**tiny_runs.TASKS[task], "data.store": "", "data.block": 10, "optim.accumulate": 2}
    config |= {"data.tests": ("test.tsv",)} if task == "classification" else {}
    monkeypatch.setattr(distilling, "TOP_K", 400)
    run = tiny.run(config | {"data.teacher": "elsewhere", "train.distil": 0.5})
    corpus = run.task.corpus(run.data)
    of = run.model_for(corpus.vocabularies)
    variables, assets = initialize(of, 3), TextAssets(*corpus.vocabularies, *corpus.steps)
    model = run.task.model(of, 3, 0, run.data, run.evaluation, assets, variables, "here", run.raw)
    batches = run.task.batches(corpus, run.data, 2, run.seed)
    taught, again = (lessons_of(run, corpus, RunFolder(tmp_path / "run"), model).beside(batches) for _ in range(2))
    number = batches.batches_per_epoch + 1
    batch = taught[number]
    taught[0]
    for name, array in again[number].items():
        np.testing.assert_array_equal(array, batch[name])
    assert batch.keys() - batches[number].keys() == {"teacher_ids", "teacher_p"}
    one = {name: jnp.asarray(array[1]) for name, array in batch.items()}
    logits = run.task.logits(build(of), model.prepared, one, {})
    assert one["teacher_ids"].shape == (*logits.shape[:-1], logits.shape[-1])
    sums = run.task.loss(build(of), model.prepared, one, 0.0, {}, Distil(1.0))
    # With all probabilities, cross entropy with itself is the entropy.
    log_p = np.asarray(jax.nn.log_softmax(logits))
    entropy = -(np.exp(log_p) * log_p).sum(axis=-1)[one["teacher_p"].any(axis=-1)].sum()
    assert int(one["teacher_p"].sum().round()) == int(sums["targets"]) > 0
    np.testing.assert_allclose(sums["loss"], entropy, rtol=1e-3)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"train.distil": 1.5}, ["train.distil is 1.5", "from 0 to 1"]),
        ({"train.distil": -0.5}, ["train.distil is -0.5", "from 0 to 1"]),
        ({"data.teacher": ""}, ["train.distil is 0.5", "no teacher", "data.teacher"]),
        ({"train.distil": 0.0}, ["data.teacher has no effect", "data.teacher_mix=references", "train.distil"]),
        ({"data.teacher": "nowhere"}, ["data.teacher cannot be used", "nowhere does not exist; train that run first"]),
        ({"data.source_language": "en", "data.target_language": "de"}, ["de to en", "en to de"]),
        ({"data.bpe_merges": 7}, ["the same pieces", "data.bpe_merges is 7", "--config.data.bpe_merges="]),
        ({"data.lowercase": True}, ["the same pieces", "data.lowercase is True", "--config.data.lowercase=False"]),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(tiny_run, tmp_path, changes, words):
    with pytest.raises(UserError) as error:
        teacher_of(student(tiny_run, changes), RunFolder(tmp_path))
    assert all(word in str(error.value) for word in words) and "\n" not in str(error.value), error.value


def test_a_teacher_of_other_merges_is_refused(tiny_run, tmp_path):
    codes = tmp_path / "codes"
    codes.write_text("#version: 0.2\ne n</w>\n")
    with user_error(r"the same pieces, and data\.bpe_codes=.*codes are not the merges of data\.teacher"):
        teacher_of(student(tiny_run, {"data.bpe_codes": str(codes)}), RunFolder(tmp_path))


def test_a_teacher_of_other_pieces_than_those_of_init_from_is_refused(tiny_run, tmp_path):
    """Two runs of equal keys may have learned other pieces."""
    run, model = student(tiny_run), one_layer.load(tiny_run)
    corpus = run.task.corpus(run.data, model.assets)
    other = replace(corpus.source_vocabulary, tokens=(*corpus.source_vocabulary.tokens, "more"), counts=())
    with user_error(r"the same pieces and labels, and data\.teacher=.* has others .*train\.init_from"):
        lessons_of(run, replace(corpus, source_vocabulary=other), RunFolder(tmp_path), model)


def test_keys_of_raw_text_do_not_matter_where_the_text_has_its_pieces_already(tiny_run, tmp_path, monkeypatch):
    model = one_layer.load(tiny_run)
    model = replace(model, data=replace(model.data, prepared=True))
    monkeypatch.setattr(one_layer, "load", lambda _: model)
    assert teacher_of(student(tiny_run, {"data.prepared": True, "data.lowercase": True}), RunFolder(tmp_path)) is model
    with user_error(r"data\.lowercase is True"):
        teacher_of(student(tiny_run, {"data.lowercase": True}), RunFolder(tmp_path))


def test_a_teacher_of_another_task_is_refused(tiny_run, tmp_path):
    labels = {"task": "classification", "model.decoder_layers": 0, "data.source": "labelled", "data.labels": "sst2"}
    run = student(tiny_run, {**labels, "data.teacher_mix": "translations", "data.directory": str(tmp_path)})
    with user_error(r"data\.teacher=.* is a translation model; give a classification model"):
        teacher_of(run, RunFolder(tmp_path))
    with user_error(r"no effect with task=classification and train\.distil=0"):
        check_keys(with_values(run, {"train.distil": 0.0}))
    with user_error(r"data\.teacher_mix=both is for translations, and task is classification"):
        check_keys(with_values(run, {"data.teacher_mix": "both"}))


def test_another_teacher_than_at_the_start_is_refused(tiny_run, tmp_path, monkeypatch):
    with opened(student(tiny_run), tmp_path) as ready:
        assert ready.folder.began()["teacher"] == ready.lessons.key
    monkeypatch.setattr(distilling, "digest", lambda tree: "of other arrays")
    with user_error(r"data\.teacher=.* is not the model that this run began with"), opened(student(tiny_run), tmp_path):
        pass

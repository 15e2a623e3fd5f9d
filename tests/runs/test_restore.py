"""Which checkpoints a name means, and what the average of several is: of scores, with the masks of the averaged scores."""

import dataclasses
import json
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest

from one_layer.data import loading
from one_layer.models import build, initialize
from one_layer.runs.folder import RunFolder
from one_layer.runs.restore import restore_run
from tests import numpy_transformer, tiny, user_error
from tests.compiling import jit
from tests.test_supermask import stable_sort
from tests.trees import same_bits

RUN = tiny.run()
VALIDATION = {4: 0.5, 8: 0.9, 12: 0.7, 16: 0.9, 20: 0.1}
VALIDATION_STEPS = tuple(VALIDATION)


@pytest.fixture(scope="module")
def corpus():
    return loading.load(RUN.data)


@pytest.fixture(scope="module")
def saved(corpus):
    """What each checkpoint holds: scores drawn for it."""
    drawn = initialize(RUN.model_config(*map(len, corpus.vocabularies)), RUN.seed)["params"]

    def scores(step):
        random = np.random.default_rng(step)
        return jax.tree.map(lambda leaf: jnp.asarray(random.uniform(-0.3, 0.3, leaf.shape), jnp.float32), drawn)

    return {step: scores(step) for step in VALIDATION}


def run_with(path, corpus, saved, scores, keep_last):
    """A run's folder, made without training, and the steps of the checkpoints that are kept of those with these scores."""
    folder = RunFolder(path)
    folder.begin(corpus, {}, {})
    folder.write_config(RUN)
    checkpoints = folder.checkpoints(dataclasses.replace(RUN.train, keep_last=keep_last))
    for place, (step, score) in enumerate(scores.items()):
        evaluated = [each for each in scores if each <= step and score is not None]
        progress = {**folder.identity(corpus), "evaluated": evaluated}
        params = saved[VALIDATION_STEPS[place % 5]]
        checkpoints.save(step, params, {"updates": jnp.zeros(1)}, progress, score)
    steps = checkpoints.steps()
    checkpoints.close()
    return folder.path, steps


@pytest.fixture(scope="module")
def workdir(corpus, saved, tmp_path_factory):
    """The folder of a run whose checkpoints are all there."""
    return run_with(tmp_path_factory.mktemp("run"), corpus, saved, VALIDATION, keep_last=5)[0]


def mean(trees):
    return jax.tree.map(lambda *leaves: np.float32(np.mean(np.float64(leaves), axis=0)), *trees)


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("8", [8]),
        ("last", [20]),
        ("best", [8]),
        ("average:1", [20]),
        ("average:2", [16, 20]),
        ("average:5", [4, 8, 12, 16, 20]),
    ],
)
def test_a_name_means_these_checkpoints_and_their_mean(workdir, saved, name, steps):
    """Of equal validation scores the first is the better, as the log says it."""
    restored = restore_run(workdir, name)
    assert restored.step == steps[-1]
    same_bits(restored.variables["params"], mean([saved[step] for step in steps]))
    same_bits(restored.variables["random"], initialize(restored.config, RUN.seed)["random"])


def test_masks_are_those_of_the_averaged_scores(workdir, saved):
    """And not the average of masks; seen in the logits, which another program makes in float64."""
    restored = restore_run(workdir, "average:3")
    config, variables = restored.config.replace(dropout=0.0), restored.variables
    source, target_in = np.array([[5, 6, 7, 2]], np.int32), np.array([[2, 8, 9]], np.int32)
    logits = jit(build(config).apply)(variables, source, target_in)
    trees = [saved[step] for step in (12, 16, 20)]
    recomputed = {**variables, "params": mean(trees)}
    np.testing.assert_allclose(logits, numpy_transformer.logits(config, recomputed, source, target_in), atol=1e-4)
    averaged = {"params": {}, "random": mean([masked(variables["random"], tree, config.keep) for tree in trees])}
    assert np.abs(logits - numpy_transformer.logits(config, averaged, source, target_in)).max() > 0.1


def masked(weights, scores, keep):
    """W ⊙ M for every W, a matrix of the layer axis too where the scores have one."""

    def product(kernel, of):
        return np.stack([product(kernel, layer) for layer in of]) if of.ndim > 2 else kernel * stable_sort(of, keep)

    return {
        name: {"kernel": product(np.asarray(value["kernel"]), np.asarray(scores[name]["scores"]))}
        if "kernel" in value
        else masked(value, scores[name], keep)
        for name, value in weights.items()
    }


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("newest", "--checkpoint='newest' is unknown; give best, last, average:N or a step"),
        ("average:x", "is unknown"),
        ("average:²", "is unknown"),
        ("average-worst:2", "is unknown"),
        ("average:0", "holds 5 checkpoints of the latest consecutive evaluations; give N from 1 to 5"),
        ("average:9", r"give N from 1 to 5, or train with train\.keep_last of at least N"),
        ("7", "there is no checkpoint of step 7 in .* available steps: 4, 8, 12, 16, 20"),
    ],
)
def test_checkpoints_that_are_not_there(workdir, name, message):
    with user_error(message):
        restore_run(workdir, name)


def test_the_last_checkpoint_stands_for_the_best_before_the_first_evaluation_and_says_so(
    corpus, saved, tmp_path, caplog
):
    run_with(tmp_path, corpus, saved, {4: None}, keep_last=1)
    with caplog.at_level("INFO"):
        restored = restore_run(tmp_path, "best")
    assert (restored.step, restored.source) == (4, "last")
    assert "no checkpoint has a validation score yet, so this is the last one, update 4" in caplog.messages
    caplog.clear()
    assert restore_run(tmp_path, "last").source == "last" and not caplog.messages
    with user_error(r"'average:1', but no evaluation has saved a checkpoint in .* yet; let the run go on"):
        restore_run(tmp_path, "average:1")


def test_a_mesh_that_is_not_here_is_used_only_if_it_is_asked_for(workdir, tmp_path, caplog):
    """A run of eight devices is scored on one."""
    shutil.copytree(workdir, tmp_path / "run")
    file = RunFolder(tmp_path / "run").config_file
    config = json.loads(file.read_text("utf-8"))
    file.write_text(json.dumps(config | {"mesh": {"data": 4, "model": 2}}), "utf-8")
    with caplog.at_level("INFO"):
        assert restore_run(tmp_path / "run").step == restore_run(workdir).step
    assert "the run's mesh is not used, because" in caplog.text
    with user_error("mesh"):
        restore_run(tmp_path / "run", mesh={"data": 4})


@pytest.mark.parametrize("looks", ["_load_checkpoint_infos", "restore"])
def test_one_that_is_removed_meanwhile_is_no_obstacle(workdir, tmp_path, monkeypatch, looks):
    """A run that still trains has a better one, and removes this one in the moment in which it is read."""
    folder, found = tmp_path / "run", getattr(ocp.CheckpointManager, looks)
    shutil.copytree(workdir, folder)

    def late(manager, *given, **named):
        if (best := folder / "checkpoints" / "8").exists():
            shutil.rmtree(best)
            raise FileNotFoundError(best)
        return found(manager, *given, **named)

    monkeypatch.setattr(ocp.CheckpointManager, looks, late)
    assert restore_run(folder).step == 16


def test_what_a_run_that_never_began_left_behind_is_no_part_of_the_next(corpus, tmp_path):
    """A process was killed before it wrote config.json; the next run in the folder takes nothing over."""
    folder, array = RunFolder(tmp_path), np.ones(3, np.float32)
    folder.begin(corpus, {"frozen": {"table": array}}, {}, start={"head": array})
    assert folder.start_file.exists() and folder.frozen_file.exists()
    folder.begin(corpus, {}, {})
    assert not folder.start_file.exists() and not folder.frozen_file.exists()


def test_an_average_is_of_evaluations_in_a_row(corpus, saved, tmp_path):
    """The best one is no part of it: between it and the last, checkpoints are missing."""
    scores = {step: -float(step) for step in range(4, 36, 4)}  # the first is the best
    folder, steps = run_with(tmp_path, corpus, saved, scores, keep_last=2)
    assert steps == [4, 28, 32] and restore_run(folder, "average:2").step == 32
    with user_error(r"holds 2 checkpoints of the latest consecutive evaluations; give N from 1 to 2"):
        restore_run(folder, "average:3")

"""A run is a function of its config: stopped and started again, it ends as if nothing had happened."""

import json
import shutil
from contextlib import closing

import jax
import jax.numpy as jnp
import pytest

from one_layer.data import loading
from one_layer.models import initialize
from one_layer.models.sharding import Devices
from one_layer.runs.checkpoints import Checkpoints
from one_layer.runs.folder import RunFolder
from one_layer.runs.restore import restore_run
from one_layer.runs.settings import RunConfig
from one_layer.tasks.translation.task import Translation
from one_layer.training import meter
from one_layer.training.course import course
from one_layer.training.interruption import Interruption
from one_layer.training.metrics import read_metrics
from one_layer.training.train import train
from one_layer.training.trainer import Ready, Trainer, train_step
from tests import tiny, tiny_runs, user_error
from tests.trees import same_bits

MEASURED = {"seconds", "train/tokens_per_second"}
RESULT_KEYS = {
    *("config", "overrides", "seed", "task", "test", "valid", "steps", "epochs", "train_seconds", "tokens_per_second"),
    *("parameters", "bytes", "peak_memory_bytes", "device", "jax", "commit", "started"),
}


def result(workdir):
    return json.loads((workdir / "result.json").read_text("utf-8"))


def checkpoint(workdir, step):
    """Everything that a checkpoint holds."""
    trainer = new_trainer(tiny.run(), workdir)
    items = trainer.checkpoints.restore(step, params=trainer.params, optimizer=trainer.moments)
    trainer.checkpoints.close()
    return items


def new_trainer(run: RunConfig, workdir):
    corpus = loading.load(run.data)
    model = run.model_config(*map(len, corpus.vocabularies))
    return Trainer(Ready(run, model, corpus, RunFolder(workdir), Devices.holding(())))


def lines(workdir):
    return [{name: v for name, v in line.items() if name not in MEASURED} for line in metrics(workdir)]


def metrics(workdir):
    return read_metrics(workdir / "metrics.jsonl")


def assert_same_run(workdir, other):
    assert lines(workdir) == lines(other)
    last = lines(workdir)[-1]["step"]
    same_bits(checkpoint(workdir, last), checkpoint(other, last))
    for key in ("config", "seed", "test", "valid", "steps", "epochs", "parameters", "bytes", "train_tokens"):
        assert result(workdir)[key] == result(other)[key], key
    hypotheses = [(folder / "hypotheses-test.txt").read_bytes() for folder in (workdir, other)]
    assert hypotheses[0] == hypotheses[1]


def test_what_a_run_leaves(tiny_run):
    found = result(tiny_run)
    assert found.keys() >= RESULT_KEYS
    assert found["config"] == json.loads(json.dumps(tiny.run().raw)) and found["overrides"] == []
    assert (found["seed"], found["task"], found["steps"]) == (1, "translation", tiny.UPDATES)
    assert found["test"]["test"].keys() >= {"bleu_tokenized", "bleu_sacre", "signature"}
    assert found["parameters"].keys() >= {"trained", "random", "kept"}
    assert 0 < found["parameters"]["kept"] < found["parameters"]["trained"]
    assert 0 < found["bytes"]["ticket"] < found["bytes"]["dense_float32"]
    assert min(found[name] for name in ("epochs", "train_seconds", "tokens_per_second", "peak_memory_bytes")) > 0
    masks = {each["role"]: each for each in found["masks"]}
    assert set(masks) == set(restore_run(tiny_run).masks)
    for each in masks.values():
        assert each["kept"] == pytest.approx([each["kept"][0]] * len(each["kept"]))
        assert not each["overlap"] or each["kept"][0] <= each["overlap"]["used"] <= 1
    assert found["jax"] == jax.__version__ and found["started"] and found["device"]
    assert len((tiny_run / "hypotheses-test.txt").read_text("utf-8").split("\n")) == tiny.CHANGES["data.toy_test"] + 1
    assert (tiny_run / "config.json").exists() and list((tiny_run / "tensorboard").iterdir())


def test_metrics_have_their_names(tiny_run):
    trained = [line for line in metrics(tiny_run) if "train/loss" in line]
    scored = [line for line in metrics(tiny_run) if "valid/nll" in line]
    assert [line["step"] for line in trained] == list(range(2, tiny.UPDATES + 1, 2))
    assert [line["step"] for line in scored] == list(range(tiny.EVERY, tiny.UPDATES + 1, tiny.EVERY))
    for line in trained:
        assert line.keys() >= {"seconds", "train/loss", "train/nll", "train/tokens_per_second", "train/learning_rate"}
    assert all(0 < line["mask/flips"] < 1 for line in scored)
    assert scored[-1]["valid/nll"] < scored[0]["valid/nll"]
    assert result(tiny_run)["valid"]["score"] == -min(line["valid/nll"] for line in scored)


def test_a_finished_run_does_not_train_again(tiny_run):
    before, checkpoints = result(tiny_run), tiny.contents(tiny_run / "checkpoints")
    metrics = (tiny_run / "metrics.jsonl").read_bytes()
    train(tiny.run(), tiny_run, [])
    after = result(tiny_run)
    assert (tiny_run / "metrics.jsonl").read_bytes() == metrics
    assert tiny.contents(tiny_run / "checkpoints") == checkpoints
    assert {**after, "peak_memory_bytes": 0} == {**before, "peak_memory_bytes": 0}


@pytest.fixture(scope="module")
def of_text(tmp_path_factory):
    """A run of text in files after its first updates, in a folder with the folder of the text."""
    folder = tmp_path_factory.mktemp("of_text")
    tiny_runs.write_text(folder, "translation", train=60)
    train(tiny.run(of_files(folder / "text", 1)), folder / "run", [])
    return folder


def of_files(text, evaluations):
    config = {"data.source": "text", "data.directory": str(text), "data.bpe_codes": "", "data.tests": ()}
    return config | {"train.updates": evaluations * tiny.EVERY}


@pytest.mark.slow
def test_the_folder_of_the_text_may_move(of_text, tmp_path):
    """Its content decides."""
    run, moved = shutil.copytree(of_text, tmp_path / "copy") / "run", tmp_path / "moved"
    shutil.move(tmp_path / "copy" / "text", moved)
    train(tiny.run(of_files(moved, 2)), run, [])
    assert result(run)["steps"] == 2 * tiny.EVERY


def disturbed(happens):
    """`train_step`, but update `count` is skipped with a loss that is not finite where `happens(count)` says so."""

    def made(*given):
        step = train_step(*given)

        def update(params, moments, fixed, batch, count, *more):
            if happens(count):
                sums = dict.fromkeys(("nll", "targets", "tokens", "norm"), jnp.float32(7))
                return params, moments, {**sums, "loss": jnp.float32(jnp.nan)}
            return step(params, moments, fixed, batch, count, *more)

        update.lower = step.lower
        return update

    return made


def kept_steps(folder):
    checkpoints = Checkpoints(folder / "checkpoints", read_only=True)
    steps = checkpoints.steps()
    checkpoints.close()
    return steps


@pytest.mark.slow
def test_every_update_is_in_a_line_of_metrics_and_the_log_says_how_the_run_goes(tmp_path, monkeypatch, caplog):
    """Also those between the last line and an evaluation."""
    monkeypatch.setattr(meter, "_SILENCE", 0.0)
    with caplog.at_level("INFO"):
        train(tiny.run({"train.log_every": 3, "data.tests": ()}), tmp_path, [])
    assert sum(message.startswith("update ") and message.endswith(" left") for message in caplog.messages) == 12
    trained = [line["step"] for line in metrics(tmp_path) if "train/loss" in line]
    assert trained == [3, 4, 6, 8, 9, 12]


@pytest.mark.slow
def test_without_a_checkpoint_that_cannot_be_read_the_run_goes_on_from_the_one_before(tiny_run, tmp_path):
    """It ends as if nothing had happened."""
    train(tiny.run({"train.updates": 2 * tiny.EVERY}), tmp_path, [])
    broken = tmp_path / "checkpoints" / str(2 * tiny.EVERY)
    (broken / "params" / "manifest.ocdbt").write_bytes(b"")
    with user_error(rf"{broken} cannot be restored .*: remove that folder to use another one"):
        train(tiny.run(), tmp_path, [])
    shutil.rmtree(broken)
    train(tiny.run(), tmp_path, [])
    assert_same_run(tmp_path, tiny_run)


@pytest.mark.slow
@pytest.mark.parametrize(("part", "checkpoint"), [("train", True), ("valid", True), ("train", False)])
def test_text_that_changed_is_noticed(of_text, tmp_path, part, checkpoint):
    """Also where the run was killed before its first checkpoint. Its config stays, else its scores would be those of other text."""
    folder = shutil.copytree(of_text, tmp_path / "copy")
    if not checkpoint:
        shutil.rmtree(folder / "run" / "checkpoints")
    changed = folder / "text" / f"{part}.en"
    changed.write_text("".join(reversed(changed.read_text("utf-8").splitlines(keepends=True))), "utf-8")
    before = (folder / "run" / "config.json").read_bytes()
    with user_error(rf"the {part} text {part} in .*text is not the text that this run began with"):
        train(tiny.run(of_files(folder / "text", 2)), folder / "run", [])
    assert (folder / "run" / "config.json").read_bytes() == before
    assert kept_steps(folder / "run") == [tiny.EVERY] * checkpoint


def test_a_run_that_becomes_longer_removes_what_its_end_wrote(tiny_run, tmp_path):
    folder = shutil.copytree(tiny_run, tmp_path / "run")
    written = [folder / "result.json", folder / "ticket.safetensors", *folder.glob("hypotheses-*.txt")]
    (folder / "ticket-int8.safetensors").touch()  # by hand, as evaluations
    assert len(written) == 4 and all(path.exists() for path in written)
    trainer = new_trainer(tiny.run({"train.updates": tiny.UPDATES + 1}), folder)
    with closing(trainer.checkpoints), Interruption() as interruption:
        trainer.restore()
        with closing(course(trainer, interruption)) as requests:
            next(requests)
    assert not any(path.exists() for path in written) and (folder / "ticket-int8.safetensors").exists()


def test_a_run_that_goes_on_removes_what_a_killed_process_had_still_to_remove(tiny_run, tmp_path):
    """A process that is killed right after it has written a checkpoint has not removed an earlier one."""
    shutil.copytree(tiny_run, tmp_path / "run")
    trainer = new_trainer(tiny.run({"train.keep_last": 1}), tmp_path / "run")
    assert len(trainer.checkpoints.steps()) == 3
    trainer.restore()
    assert set(trainer.checkpoints.steps()) == {trainer.checkpoints.best(), trainer.checkpoints.last()}
    trainer.checkpoints.close()


def test_only_params_change_and_random_is_never_written(tiny_run):
    trainer = new_trainer(tiny.run(), tiny_run)
    trainer.restore()
    trainer.checkpoints.close()
    drawn = initialize(trainer.model, trainer.run.seed)
    same_bits(trainer.fixed, {"random": drawn["random"]})
    assert jax.tree.structure(trainer.params) == jax.tree.structure(drawn["params"])
    for before, after in zip(jax.tree.leaves(drawn["params"]), jax.tree.leaves(trainer.params), strict=True):
        assert (before != after).any()
    for step in (tiny_run / "checkpoints").iterdir():
        assert {item.name for item in step.iterdir() if item.is_dir()} == {"params", "optimizer", "progress", "metrics"}
        assert b"kernel" not in (step / "params" / "_METADATA").read_bytes()


@pytest.mark.slow
def test_patience_ends_a_run_that_gets_no_better_and_the_log_says_so(tmp_path, monkeypatch, caplog):
    scores = iter([3.0, 2.0, 2.5, 2.0, 1.0])
    monkeypatch.setattr(Translation, "validator", lambda *_: lambda *_: {"valid/nll": next(scores)})
    with caplog.at_level("INFO"):
        train(tiny.run({"train.evaluate_every": 2, "train.patience": 2, "train.updates": 400}), tmp_path, [])
    assert result(tmp_path)["steps"] == 4 * 2
    assert result(tmp_path)["valid"]["score"] == -2.0
    assert "ends at update 8 of 400: the last 2 evaluations brought no better valid/nll" in caplog.text


@pytest.mark.slow
def test_nll_selects_where_bleu_cannot_measure_the_validation_text(tmp_path, monkeypatch, caplog):
    """Else every evaluation has BLEU 0, none is better than the first, and patience ends the run."""
    monkeypatch.setattr("one_layer.tasks.translation.bleu.can_measure", lambda *_: False)
    changes = {"train.select": "bleu", "evaluation.valid_beam": 1, "train.patience": 1, "data.tests": ()}
    train(tiny.run(changes), tmp_path, [])
    nll = [line["valid/nll"] for line in metrics(tmp_path) if "valid/nll" in line]
    assert result(tmp_path)["valid"] | {"step": 0} == {"select": "nll", "score": -min(nll), "step": 0}
    assert len(nll) == 3 and result(tmp_path)["convergence"] and "bleu" not in str(metrics(tmp_path))
    assert caplog.text.count("nll selects the best checkpoint") == 1

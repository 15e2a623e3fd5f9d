"""What is saved comes back bit for bit; the right ones stay."""

import logging
import os
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from one_layer.runs.checkpoints import Checkpoints
from one_layer.system.errors import UserError
from tests.runs.saved_checkpoints import SCORES, save, trees
from tests.trees import same_bits

# Where Orbax gives up, it leaves coroutines and threads behind that nobody waits for.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore:coroutine")


def test_a_folder_whose_name_is_not_utf_8_is_not_called_damaged(folder, tmp_path):
    path = tmp_path / os.fsdecode(b"r\xfcn")
    shutil.copytree(folder, path)
    with pytest.raises(UserError, match=r"r.udcfcn/checkpoints' is not in UTF-8; rename its folders$"):
        Checkpoints(path / "checkpoints", read_only=True)


def test_reading_warns_of_nothing(folder, caplog):
    caplog.set_level(logging.WARNING, "absl")  # a command that ran before in this process has silenced it
    Checkpoints(folder / "checkpoints", read_only=True).close()
    assert not caplog.records


def test_what_is_saved_comes_back_bit_for_bit(folder):
    checkpoints = Checkpoints(folder / "checkpoints", read_only=True)
    params, moments = trees()
    found = checkpoints.restore(7, params=jax.tree.map(jnp.zeros_like, params), optimizer=moments)
    same_bits(found["params"], params)
    same_bits(found["optimizer"], moments)
    same_bits(checkpoints.restore(7, params=params)["params"], params)
    assert checkpoints.progress(7) == {"step": 7, "score": 0.4}
    checkpoints.close()


def test_the_last_and_the_best_stay(folder):
    checkpoints = Checkpoints(folder / "checkpoints", keep_last=2)
    assert checkpoints.steps() == [2, 6, 7]
    assert checkpoints.last() == 7 and checkpoints.best() == 2, "of equal ones the first"
    checkpoints.close()


def test_one_without_a_score_stays_until_the_next(tmp_path):
    """It is what an interruption leaves, and takes no place among the last and the best."""
    for steps, left in (({3: None}, [1, 2, 3]), ({4: 0.3}, [1, 2, 4]), ({5: 0.2, 6: None}, [1, 4, 5, 6])):
        save(tmp_path, ({1: 0.9, 2: 0.1} if 3 in steps else {}) | steps, keep_last=2)
        checkpoints = Checkpoints(tmp_path / "checkpoints", read_only=True)
        assert checkpoints.steps() == (left if 3 not in steps else [1, 2, 3])
        assert checkpoints.best() == 1 and checkpoints.last() == left[-1]
        checkpoints.close()
        if 4 in steps:
            assert not (tmp_path / "checkpoints" / "3").exists()


def test_one_without_a_score_is_replaced_by_the_same_step_with_one(tmp_path):
    """An evaluation that was interrupted is done when the run goes on."""
    save(tmp_path, {1: 0.9, 2: None})
    save(tmp_path, {2: 1.5}, keep_last=2)
    checkpoints = Checkpoints(tmp_path / "checkpoints", read_only=True)
    assert checkpoints.scored() == [1, 2] and checkpoints.progress(2)["score"] == 1.5
    checkpoints.close()
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["1", "2"]


@pytest.mark.parametrize("complete", [True, False])
def test_until_one_of_the_same_step_is_complete_the_replaced_one_stays(tmp_path, complete):
    """A process that was killed leaves the replaced one, and perhaps not the new one."""
    save(tmp_path, {1: None})
    folder = tmp_path / "checkpoints"
    checkpoints = Checkpoints(folder)
    writing = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            checkpoints._manager, "save", lambda *args, **options: writing.append(sorted(folder.iterdir())) or True
        )
        checkpoints.save(1, *trees(), {"step": 1, "score": 0.5}, 0.5)
    assert [path.name for path in writing[0]] == ["1.replaced"]
    if complete:
        save(tmp_path / "other", {1: 0.5})
        (tmp_path / "other" / "checkpoints" / "1").rename(folder / "1")
    Checkpoints(folder, read_only=True).close()
    assert (folder / "1.replaced").exists(), "who only reads leaves this to the process that writes"
    checkpoints = Checkpoints(folder)
    assert checkpoints.steps() == [1] and checkpoints.scored() == [1] * complete
    assert checkpoints.progress(1)["score"] == (0.5 if complete else None)
    checkpoints.close()
    assert [path.name for path in folder.iterdir()] == ["1"]


def test_what_a_killed_process_had_still_to_remove_is_removed(tmp_path):
    save(tmp_path, SCORES | {4: None}, keep_last=7)
    checkpoints = Checkpoints(tmp_path / "checkpoints", keep_last=2)
    checkpoints.remove_superfluous()
    assert checkpoints.steps() == [2, 6, 7]
    checkpoints.close()
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["2", "6", "7"]


def test_a_checkpoint_holds_the_moment_of_saving(tmp_path):
    """Training goes on, into the same buffers, while a checkpoint is being written."""
    go_on = jax.jit(lambda tree: jax.tree.map(lambda x: x + 1, tree), donate_argnums=0)
    checkpoints = Checkpoints(tmp_path / "checkpoints", keep_last=9)
    moving, progress, kept = {"a": jnp.zeros(1 << 16)}, {"step": 0}, {}
    for step in range(1, 4):
        moving = go_on(moving)
        progress["step"] = step
        kept[step] = float(moving["a"][0])
        checkpoints.save(step, moving, moving, progress, 0.0)
        moving = go_on(go_on(moving))
        progress["step"] = -1
    checkpoints.close()
    checkpoints = Checkpoints(tmp_path / "checkpoints", read_only=True)
    for step, value in kept.items():
        found = checkpoints.restore(step, params=moving)["params"]["a"]
        assert (np.asarray(found) == value).all()
        assert checkpoints.progress(step) == {"step": step}
    checkpoints.close()


def test_a_missing_step_is_named_with_those_there_are(folder):
    checkpoints = Checkpoints(folder / "checkpoints", read_only=True)
    with pytest.raises(UserError, match=r"no checkpoint of step 5 in .*; available steps: 2, 6, 7"):
        checkpoints.restore(5, params=trees()[0])
    checkpoints.close()


def test_an_empty_folder(tmp_path):
    checkpoints = Checkpoints(tmp_path / "run" / "checkpoints", read_only=True)
    assert checkpoints.last() is None and checkpoints.best() is None and checkpoints.steps() == []
    assert not (tmp_path / "run").exists()
    checkpoints.close()


@pytest.mark.parametrize(
    "params",
    [
        {"stack": {"scores": jnp.zeros((3, 4, 9))}, "odd": {"scale": jnp.zeros(6)}},
        {"stack": {"scores": jnp.zeros((3, 4, 8))}},
    ],
)
def test_another_model_is_refused(folder, params):
    checkpoints = Checkpoints(folder / "checkpoints", read_only=True)
    with pytest.raises(UserError, match=r"cannot be restored .* damaged or of another model"):
        checkpoints.restore(7, params=params)
    checkpoints.close()


def test_a_write_that_was_killed_is_cleared_away(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "run")
    half = tmp_path / "run" / "checkpoints" / "8.orbax-checkpoint-tmp"
    shutil.copytree(tmp_path / "run" / "checkpoints" / "7" / "params", half / "params.orbax-checkpoint-tmp")
    reader = Checkpoints(tmp_path / "run" / "checkpoints", read_only=True)
    assert reader.last() == 7 and half.exists()
    reader.close()
    save(tmp_path / "run", {8: 0.0})
    checkpoints = Checkpoints(tmp_path / "run" / "checkpoints", read_only=True)
    assert checkpoints.last() == 8 and not half.exists()
    same_bits(checkpoints.restore(8, params=trees()[0])["params"], trees()[0])
    checkpoints.close()

"""A damaged checkpoint is said and left."""

import random
import shutil

import pytest

from one_layer.runs.checkpoints import Checkpoints
from one_layer.system.errors import UserError
from tests import tiny
from tests.runs.saved_checkpoints import save, trees
from tests.trees import same_bits

# Where Orbax gives up, it leaves coroutines and threads behind that nobody waits for.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore:coroutine")


def open_and_restore(folder, params, moments):
    checkpoints = Checkpoints(folder / "checkpoints", keep_last=2)
    try:
        if 7 in checkpoints.steps():
            assert checkpoints.progress(7)["step"] == 7
            found = checkpoints.restore(7, params=params, optimizer=moments)
            same_bits((found["params"], found["optimizer"]), (params, moments))
    finally:
        checkpoints.close()


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def biggest(folder):
    return max((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)


DAMAGE = {
    "the largest file of the params is cut": lambda folder: cut(biggest(folder / "params" / "d")),
    "the manifest of the params is cut": lambda folder: cut(folder / "params" / "manifest.ocdbt"),
    "a file of the params is gone": lambda folder: biggest(folder / "params" / "d").unlink(),
    "the params are gone": lambda folder: shutil.rmtree(folder / "params"),
    "the optimizer is gone": lambda folder: shutil.rmtree(folder / "optimizer"),
    "the progress is cut": lambda folder: cut(folder / "progress" / "metadata"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_checkpoint_is_said_and_left(folder, tmp_path, name):
    shutil.copytree(folder, tmp_path / "run")
    DAMAGE[name](tmp_path / "run" / "checkpoints" / "7")
    before = tiny.contents(tmp_path)
    params, moments = trees()
    with pytest.raises(UserError, match=r"checkpoints.* damaged.* remove th"):
        open_and_restore(tmp_path / "run", params, moments)
    assert tiny.contents(tmp_path) == before


@pytest.mark.parametrize("name", list(DAMAGE)[:3])
@pytest.mark.parametrize(
    ("scores", "mend"),
    [
        ({1: 0.5, 7: 0.4}, "damaged or of another model: remove that folder to use another one"),
        ({7: 0.4}, "and there is no other one: remove that folder to begin the training again"),
    ],
)
def test_a_damaged_checkpoint_is_explained_by_its_cause_and_can_be_mended(tmp_path, name, scores, mend):
    """TensorStore's messages begin with its drivers and end with pages of their settings. None is cut in its middle."""
    save(tmp_path, scores, keep_last=2)
    DAMAGE[name](tmp_path / "checkpoints" / "7")
    with pytest.raises(UserError) as caught:
        open_and_restore(tmp_path, *trees())
    assert mend in str(caught.value)
    reason = str(caught.value).partition(" cannot be restored (")[2].partition("); it is damaged")[0]
    assert reason.startswith("ValueError: Error ") and len(reason) < 300
    assert "driver" not in reason and "tensorstore" not in reason.lower()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))])
def test_a_flipped_or_missing_byte_in_any_file_is_noticed_or_harmless(tmp_path, seed):
    """What is restored has the saved bits, or the checkpoint is said to be damaged. Files without use may change."""
    save(tmp_path, {1: 0.5, 7: 0.4})
    params, moments = trees()
    newest, dice = tmp_path / "checkpoints" / "7", random.Random(seed)
    files, sentences = sorted(path for path in newest.rglob("*") if path.is_file()), []
    assert len(files) > 8
    for path in files:
        content = path.read_bytes()
        place = dice.randrange(max(1, len(content)))
        flipped = bytes([content[place] ^ (1 << dice.randrange(8))]) if content else b"x"
        path.write_bytes(content[:place] + (flipped + content[place + 1 :] if dice.random() < 0.7 else b""))
        try:
            open_and_restore(tmp_path, params, moments)
        except UserError as error:
            sentences.append(str(error))
        path.write_bytes(content)
    assert len(sentences) >= 5  # most files hold nothing that is read back
    assert all("damaged" in each and "\n" not in each for each in sentences)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_checkpoint_with_a_damaged_score_is_said(tmp_path, read_only):
    save(tmp_path, {1: 0.5, 2: 0.6}, keep_last=2)
    (tmp_path / "checkpoints" / "2" / "metrics" / "metrics").write_bytes(b'{"sc')
    with pytest.raises(UserError, match=r"metrics.* damaged .*; remove the folder of that checkpoint"):
        Checkpoints(tmp_path / "checkpoints", read_only=read_only)


@pytest.mark.parametrize(("part", "said"), [("metrics/metrics", "score"), ("progress/metadata", "progress")])
def test_another_score_or_progress_than_the_saved_one_is_noticed(tmp_path, part, said):
    save(tmp_path, {1: 0.5})
    path = tmp_path / "checkpoints" / "1" / part
    path.write_text(path.read_text().replace("0.5", "0.7"))
    checkpoints = Checkpoints(tmp_path / "checkpoints", read_only=True)
    with pytest.raises(UserError, match=f"its {said} is not what was saved"):
        checkpoints.progress(1)
    checkpoints.close()

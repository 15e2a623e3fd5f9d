"""However `frozen.npz` is damaged, one sentence says so, or it still holds the same arrays."""

import random
import zipfile

import numpy as np
import pytest

from one_layer.runs.frozen import with_frozen, write_frozen
from one_layer.system.errors import UserError
from tests import user_error

VARIABLES = {"frozen": {"a": {"kernel": np.arange(12, dtype=np.float32).reshape(3, 4)}, "b": np.ones(5, np.float32)}}
EMPTY = {"frozen": {"a": {"kernel": np.zeros((3, 4), np.float32)}, "b": np.zeros(5, np.float32)}}


def mutated(content: bytes, dice: random.Random) -> bytes:
    """Cut off, with bits or bytes changed, or with a piece exchanged for another of any length."""
    start = dice.randrange(len(content))
    kind = dice.choice(("cut", "bit", "byte", "piece"))
    if kind == "cut":
        return content[:start]
    if kind == "piece":
        end = start + dice.randrange(1, 40)
        return content[:start] + dice.randbytes(dice.choice((0, end - start, 9))) + content[end:]
    changed = content[start] ^ 1 << dice.randrange(8) if kind == "bit" else dice.choice((0, 1, 127, 255))
    return content[:start] + bytes([changed]) + content[start + 1 :]


def test_every_mutant_is_refused_or_the_same(tmp_path):
    path = tmp_path / "frozen.npz"
    write_frozen(path, VARIABLES)
    good, dice, refused = path.read_bytes(), random.Random(1), 0
    for _ in range(300):
        path.write_bytes(mutated(good, dice))
        try:
            found = with_frozen(path, EMPTY)["frozen"]
        except UserError as error:
            refused, sentence = refused + 1, str(error)
            assert sentence.startswith(f"{path} ") and sentence.isprintable() and len(sentence) < 1000
            continue
        np.testing.assert_array_equal(found["a"]["kernel"], VARIABLES["frozen"]["a"]["kernel"])
        np.testing.assert_array_equal(found["b"], VARIABLES["frozen"]["b"])
    assert refused > 200
    for other in (np.ones(6, np.float32), np.ones(5, np.int32)):
        write_frozen(path, {"frozen": {"b": other}})
        with user_error(r"as frozen/b, but the model of config\.json has float32 \[5\]; restore the run's own files"):
            with_frozen(path, EMPTY)


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY"])
def test_a_member_that_is_no_array_is_refused(tmp_path, content):
    with zipfile.ZipFile(tmp_path / "frozen.npz", "w") as file:
        file.writestr("frozen/b.npy", content)
    with user_error(r"frozen\.npz cannot be read"):
        with_frozen(tmp_path / "frozen.npz", EMPTY)

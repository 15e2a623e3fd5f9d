"""Sharded training: the same numbers on every mesh, scores in parts on all devices, and mask bits as the only large transfers."""

import math
import re
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from one_layer.data.batches import TrainingBatches
from one_layer.models.sharding import Devices
from one_layer.training.memory import _group_limits, memory_limit
from tests import tiny, tiny_runs, user_error

MESHES = ("data", "mixed")
MASKED = [("one_layer", mesh) for mesh in MESHES] + [("signs", "mixed")]
EVERY = [*MASKED, ("dense", "mixed")]
TRANSLATED = [case for case in EVERY if case[0] != "signs"]  # as the other masks; each search is compiled for itself
CLOSE = 1e-4  # of losses and norms: other devices add floats in another order


@pytest.fixture(scope="module")
def found():
    return tiny_runs.on_devices(8, "tests.training.mesh_program")


@pytest.mark.slow
@pytest.mark.parametrize(("model", "mesh"), [*EVERY, ("soft", "mixed")])
def test_training_is_the_same_on_every_mesh(found, model, mesh):
    """Dropout too: the parts of a batch draw what the whole batch draws."""
    alone, shared = found[f"{model} one device"], found[f"{model} {mesh}"]
    np.testing.assert_allclose(shared["losses"], alone["losses"], rtol=CLOSE)
    np.testing.assert_allclose(shared["norms"], alone["norms"], rtol=100 * CLOSE)
    assert len(set(alone["losses"])) > 1


@pytest.mark.slow
@pytest.mark.parametrize(("model", "mesh"), TRANSLATED)
def test_a_trained_model_translates_alike_on_every_mesh(found, model, mesh):
    """Few translations differ: two scores may be closer than the order of additions can tell."""
    alone, shared = found[f"{model} one device"]["translations"], found[f"{model} {mesh}"]["translations"]
    assert len(shared) == len(alone) == 11
    assert sum(one != other for one, other in zip(alone, shared, strict=True)) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("mesh", MESHES)
def test_masks_keep_the_same_number_on_every_mesh(found, mesh):
    assert found[f"one_layer {mesh}"]["kept"] == found["one_layer one device"]["kept"]


@pytest.mark.slow
@pytest.mark.parametrize(("model", "mesh"), EVERY)
def test_every_device_holds_its_part_of_scores_and_moments(found, model, mesh):
    assert found[f"{model} {mesh}"]["parts"] == {"params": 1 / 8, "moments": 1 / 8}


@pytest.mark.slow
@pytest.mark.parametrize(("model", "mesh"), MASKED)
def test_no_scores_are_gathered_but_mask_bits(found, model, mesh):
    """The masked matrices of two layers have 256 x 256 entries. Whatever else is gathered has no more numbers than one row of each.

    With `mesh.model`, devices have parts of the 103 tokens: the gradient of their table is gathered once in an update.
    """
    gathers = dict(found[f"{model} {mesh}"]["gathers"])
    assert any(shape.startswith("u8[") for shape in gathers)
    assert gathers.pop("f32[104,256]", 0) <= (mesh != "data")
    for shape in gathers:
        kind, sizes = re.fullmatch(r"(\w+)\[([\d,]*)\]", shape).groups()
        size = math.prod(int(each) for each in sizes.split(",") if each)
        assert kind == "u8" or size <= 2 * 256, shape


@pytest.mark.slow
def test_a_dense_model_gathers_its_weights(found):
    """The check above would see a gathered matrix if there were one."""
    assert any(shape.startswith("f32[2,256,") for shape in found["dense mixed"]["gathers"])


def lines(count: int) -> list[np.ndarray]:
    return [np.full(3 + number % 5, 7, np.int32) for number in range(count)]


@pytest.mark.parametrize("parts", [2, 3, 8])
def test_the_shares_of_a_batch_make_the_whole(parts):
    whole = TrainingBatches(lines(30), lines(30), max_tokens=60, accumulate=2, buckets=2, seed=3)
    for number in (0, 1, 5):
        readers = [whole.shared(parts, range(part, part + 1)) for part in range(parts)]
        shares = [reader[number] for reader in readers]
        assert {reader.rows_of(number) for reader in (whole, *readers)} == {whole[number]["source"][..., 0].size}
        for name, array in whole[number].items():
            joined = np.concatenate([share[name] for share in shares], axis=1)
            np.testing.assert_array_equal(joined[:, : array.shape[1]], array)
            assert {share[name].shape for share in shares} == {shares[0][name].shape}
            if name == "target":
                assert (joined[:, array.shape[1] :] == 1).all()


def test_a_run_may_take_the_memory_of_all_accelerators(monkeypatch):
    """A model that does not fit on one device must not be refused where it fits on eight."""
    accelerator = SimpleNamespace(memory_stats=lambda: {"bytes_limit": 100})
    monkeypatch.setattr(jax, "local_devices", lambda: [accelerator])
    assert memory_limit(8) == 800


@pytest.mark.parametrize(
    ("groups", "limits", "expected"),
    [
        ("0::/job/step\n", {"job/memory.max": "500", "job/step/memory.max": "max", "memory.max": "900"}, [500, 900]),
        ("0::/job/step\n", {"job/step/memory.max": "70"}, [70]),
        ("0::/host/path\n", {"memory.max": "900"}, [900]),  # in a container, which sees its own group alone
        ("4:cpu:/job\n2:memory:/job\n", {"memory/job/memory.limit_in_bytes": "60", "job/memory.max": "5"}, [60]),
        ("", {"memory.max": "900"}, [900]),
    ],
)
def test_the_limits_of_the_own_control_group_and_of_those_above_it_count(tmp_path, groups, limits, expected):
    for name, limit in limits.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{limit}\n")
    assert list(_group_limits(groups, tmp_path)) == expected


@pytest.mark.parametrize(("data", "model"), [(3, 1), (-1, 2)])
def test_a_mesh_of_other_devices_is_refused(data, model):
    with user_error(f"mesh.data={data} and mesh.model={model} do not arrange the 1 devices"):
        Devices.arranged(data, model)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"mesh.data": 0}, "mesh.data is 0; it must be at least 1, or -1"),
        ({"mesh.model": -2}, "mesh.model is -2; it must be at least 1, or -1"),
        ({"mesh.model": -1}, "mesh.data and mesh.model are both -1"),
    ],
)
def test_sizes_that_mean_nothing_are_refused(changes, sentence):
    with user_error(sentence):
        tiny.run(changes)

"""The folder of a run belongs to one config, and says which keys of another differ and may not."""

import json

import pytest

from one_layer.runs.folder import RunFolder
from one_layer.system.errors import UserError
from one_layer.system.removed import IDLE
from tests import tiny, user_error


def test_a_folder_is_free_then_taken(tmp_path):
    workdir = tmp_path / "run"
    assert not RunFolder(workdir).claim(tiny.run()) and not workdir.exists()
    RunFolder(workdir).write_config(tiny.run())
    assert RunFolder(workdir).claim(tiny.run())
    assert RunFolder(workdir).read_config() == tiny.run()


def test_the_keys_that_differ_are_named(tmp_path):
    RunFolder(tmp_path).write_config(tiny.run())
    before = tiny.contents(tmp_path)
    other = tiny.run({"model.keep": 0.25, "data.tests": (), "train.log_every": 9})
    with pytest.raises(UserError) as caught:
        RunFolder(tmp_path).claim(other)
    assert "model.keep: 0.5 there, 0.25 here" in str(caught.value)
    assert "data.tests: ['test'] there, [] here" in str(caught.value)
    assert "log_every" not in str(caught.value) and "lr" not in str(caught.value)
    assert tiny.contents(tmp_path) == before


def test_how_long_to_go_on_may_change_unless_the_schedule_hangs_on_it(tmp_path):
    longer = {"train.updates": 99, "train.epochs": 2}
    RunFolder(tmp_path / "endless").write_config(tiny.run())
    assert RunFolder(tmp_path / "endless").claim(tiny.run(longer))
    cosine = {"optim.schedule": "cosine"}
    soft = {"optim.softness": 1.0, "model.selection": "sign", "model.keep": 1.0, "train.patience": 0}
    for name, falling, said in (
        ("cosine", cosine, "optim.schedule=cosine falls to 0 at the end of its run"),
        ("soft", soft, "What optim.softness=1.0 gives falls to 0"),
    ):
        RunFolder(tmp_path / name).write_config(tiny.run(falling))
        with user_error(r"train\.epochs: 0 there, 2 here; train\.updates: 12 there, 99 here") as caught:
            RunFolder(tmp_path / name).claim(tiny.run(falling | longer))
        assert said in str(caught.value)
        assert "To train longer, start anew in another --workdir" in str(caught.value)
    with pytest.raises(UserError) as caught:
        RunFolder(tmp_path / "cosine").claim(tiny.run(cosine | longer | {"model.keep": 0.25}))
    assert "To train longer" not in str(caught.value)


def test_files_may_lie_elsewhere(tmp_path):
    text = {"data.source": "text", "data.directory": "here"}
    of_run = text | {"data.bpe_codes": "here/codes", "data.translations": "here/lines"}
    RunFolder(tmp_path).write_config(tiny.run(of_run))
    moved = {"data.bpe_codes": "there/codes", "data.directory": "there", "data.translations": "there/lines"}
    assert RunFolder(tmp_path).claim(tiny.run(text | moved))
    with user_error(r"data.bpe_codes: 'here/codes' there, '' here"):
        RunFolder(tmp_path).claim(tiny.run(text | {"data.translations": "here/lines"}))


@pytest.mark.parametrize("key", ["train.init_from", "data.teacher", "model.embedding_path"])
def test_a_run_that_this_one_needs_may_lie_elsewhere(tmp_path, monkeypatch, key):
    """As those of a sweep do, whose folder was moved or is named otherwise."""
    (tmp_path / "sweep" / "dense").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    RunFolder("run").write_config(tiny.run({key: "sweep/dense"}))
    assert RunFolder("run").claim(tiny.run({key: str(tmp_path / "sweep" / "dense")}))
    with user_error(rf"{key}: 'sweep/dense' there, 'other/dense' here"):
        RunFolder("run").claim(tiny.run({key: "other/dense"}))
    (tmp_path / "sweep").rename("other")
    assert RunFolder("run").claim(tiny.run({key: "other/dense"}))
    for other in ("other/sparse", "", "other/{language}"):
        with user_error("another config"):
            RunFolder("run").claim(tiny.run({key: other}))


def test_how_to_score_may_change(tmp_path):
    RunFolder(tmp_path).write_config(tiny.run())
    assert RunFolder(tmp_path).claim(tiny.run({"evaluation.beam": 9, "train.patience": 3, "train.log_every": 1}))


@pytest.mark.parametrize(
    ("key", "value"), [("valid_beam", 2), ("length_penalty", 0.5), ("max_length_a", 2.0), ("max_length_b", 9)]
)
def test_what_decides_the_validation_score_may_not_change(tmp_path, key, value):
    """For that score selects the best checkpoint."""
    RunFolder(tmp_path).write_config(tiny.run())
    with user_error(rf"evaluation\.{key}: .* there, {value} here"):
        RunFolder(tmp_path).claim(tiny.run({f"evaluation.{key}": value}))


def test_folders_that_cannot_be_used(tmp_path):
    (tmp_path / "old" / "checkpoints").mkdir(parents=True)
    with user_error(r"holds checkpoints but no config\.json"):
        RunFolder(tmp_path / "old").claim(tiny.run())
    (tmp_path / "file").write_text("")
    with user_error("is a file; give the name of a folder"):
        RunFolder(tmp_path / "file").claim(tiny.run())
    with user_error(r"file is a file; give the folder of a run, or a ticket as --ticket=.*file$"):
        RunFolder(tmp_path / "file").read_config()
    with user_error(r"holds no run: there is no config\.json"):
        RunFolder(tmp_path / "nowhere").read_config()


@pytest.mark.parametrize(("preset", "attention", "scaled"), [("paper", "scheme", True), ("reference", "xavier", False)])
def test_what_is_written_says_what_a_preset_means(tmp_path, preset, attention, scaled):
    run = tiny.run({"model.init_preset": preset})
    RunFolder(tmp_path).write_config(run)
    model = json.loads((tmp_path / "config.json").read_text())["model"]
    assert (model["init_attention"], model["scale_by_keep"]) == (attention, scaled)
    assert None not in model.values()
    assert RunFolder(tmp_path).read_config().raw["model"] == model


def rewritten(folder, older):
    (folder / "config.json").write_text(json.dumps(older))
    return RunFolder(folder)


def test_a_folder_written_before_a_key_was_there_is_the_same_run(tmp_path):
    run = tiny.run()
    RunFolder(tmp_path).write_config(run)
    older = json.loads((tmp_path / "config.json").read_text())
    for section, names in {
        "model": ("selection", "sharing", "scale_by_keep"),
        "data": ("labels", "bpe_kind", "vocabulary", "tests"),
        "train": ("check_memory",),
        "optim": ("weight_decay",),
    }.items():
        for name in names:
            del older[section][name]
    assert rewritten(tmp_path, older).claim(run)
    older["model"]["selection"] = "score"
    with user_error(r"model\.selection: 'score' there, 'magnitude' here"):
        rewritten(tmp_path, older).claim(run)


def test_a_folder_written_before_a_key_was_gone_is_the_same_run_where_the_key_did_nothing(tmp_path):
    run = tiny.run()
    RunFolder(tmp_path).write_config(run)
    older = json.loads((tmp_path / "config.json").read_text())
    for name, value in IDLE.items():
        section, _, key = name.partition(".")
        older[section][key] = value
    assert rewritten(tmp_path, older).claim(run)
    older["model"]["coats"] = 2
    with user_error(r"the key model\.coats is gone; version 0\.7\.0 is the last that reads it"):
        rewritten(tmp_path, older).read_config()

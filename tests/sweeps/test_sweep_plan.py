"""Plans of sweeps: which runs there are, how their folders are named, and what is refused before anything starts."""

from pathlib import Path

import pytest

from one_layer.cli.overrides import keys_given
from one_layer.commands import sweep
from one_layer.sweeps import plan as plans
from one_layer.sweeps.claim import claim
from one_layer.sweeps.plan import folder_name
from one_layer.system.errors import UserError


@pytest.mark.parametrize(
    ("name", "shared", "message"),
    [
        ("unknown", [], r"unknown key model\.kep in the config; did you mean model\.keep\?"),
        ("small", ["--config.model.kep=0.3"], r"unknown key model\.kep in the config"),
        ("small", ["--config.train.updates=many"], "many"),
        ("mistyped", [], "half"),
        ("missing", [], r"the config .*small\.py cannot be loaded: KeyError: 'missing'"),
        ("small", ["--config.seed=3"], "the sweep varies it; leave this option out"),
        ("small", ["--config.seed", "3"], "the sweep varies it; leave this option out"),
        ("small", ["-config.model.keep=0.1"], r"--config\.model\.keep is given for all runs"),
        ("small", ["-config.model.kep=0.1"], r"unknown key model\.kep in the config"),
        ("small", ["--confg=3"], "confg"),
        ("twice", [], "two runs of the sweep have the same folder"),
        ("empty", [], "has no runs"),
        ("unjoined", [], r"holds \[\{'seed': 1\}\], which is no run: .* chain of configs/sweeps.py"),
        ("one", [], r"holds 5, which is no run"),
        ("argument", [], r"gives config the value 1, which is no text; it is the argument of get_config"),
        ("yielding", [], "half"),
        ("raising", [], r"cannot be loaded: KeyError: 'absent'"),
        ("keyless", [], r"holds \{1: 2\}, which is no run"),
        (
            "mutual",
            [],
            "(default needs the run dense, which needs the run default|dense needs .* default, .* dense), so it could",
        ),
        ("nothing", [], r"the sweep gives model\.keep the value None, but the config has 0\.5"),
        ("misnamed", [], "sparse is unknown"),
    ],
)
def test_what_a_sweep_cannot_be(planned, tmp_path, name, shared, message):
    with pytest.raises(UserError, match=message):
        planned(name, *shared)
    assert not (tmp_path / "runs").exists()


def test_both_directions_read_the_same_text_with_its_sides_exchanged(tmp_path):
    given = [
        "source=tsv",
        "directory=x",
        "columns=1,2;en,fr;",
        "train=a.tsv,b.csv,c",
        "source_language=en",
        "target_language=fr",
    ]
    there, back = plans.make("configs/text.py", "both_ways", [f"--config.data.{each}" for each in given], tmp_path).runs
    assert (there.name, back.name) == ("en-fr", "fr-en")
    exchanged = {"source_language": "fr", "target_language": "en", "columns": "2,1;fr,en;"}
    assert back.config["data"] == there.config["data"] | exchanged
    assert {**back.config, "data": 0} == {**there.config, "data": 0}
    assert len(keys_given(back.words)) == len({*keys_given(back.words)})


@pytest.mark.parametrize("languages", [("", "en"), ("de", ""), ("de", "de")])
def test_both_directions_need_two_languages(tmp_path, languages):
    given = [
        f"--config.data.{side}_language={name}" for side, name in zip(("source", "target"), languages, strict=True)
    ]
    with pytest.raises(UserError, match=r"trains both directions, from data\.source_language=.*; give two languages"):
        plans.make("configs/text.py", "both_ways", given, tmp_path)


def test_numbers_of_numpy_and_open_keys_can_be_varied(planned):
    plan = planned("numpy")
    claim(plan)
    assert [(run.config["seed"], run.config["model"]["keep"]) for run in plan.runs] == [
        (seed, keep) for seed in (1, 2) for keep in (0.25, 0.5)
    ]
    assert [run.config["optim"]["warmup"] for run in planned("open").runs] == [None, 5]
    assert [run.config["seed"] for run in planned("generated").runs] == [1, 2]


def test_an_argument_is_given_once(config, tmp_path):
    plan = plans.make(f"{config}:dense", "small", [], tmp_path / "runs")
    assert all(run.config["model"]["weights"] == "dense" for run in plan.runs)
    with pytest.raises(UserError, match="leave :dense out"):
        plans.make(f"{config}:dense", "named", [], tmp_path / "runs")


def test_a_config_may_need_the_argument_that_each_run_gives(planned, config):
    config.write_text(config.read_text().replace('(arg="one_layer")', "(arg)"))
    plan = planned("named", "--config.train.updates=20")
    assert [run.config["model"]["weights"] for run in plan.runs] == ["one_layer", "dense"]
    assert plan.shared == {"train.updates": 20}


def test_names_do_not_depend_on_other_runs_and_can_be_folders():
    config = {"seed": 1, "data.seed": 1, "model.keep": 0.5, "model.embedding_path": "", "data.tests": ["test"]}
    assert folder_name({"model.keep": 0.3, "seed": 2}, config) == "keep=0.3,seed=2"
    assert folder_name({"seed": 2, "model.keep": 0.3, "data.seed": 1}, config) == "keep=0.3,seed=2"
    assert folder_name({"data.seed": 2}, config) == "data.seed=2"
    assert folder_name({"config": "dense", "seed": 1}, config) == "dense"
    assert folder_name({"seed": 1}, config) == "default"
    one, other = (folder_name({"model.embedding_path": path}, config) for path in ("a/b", "a b"))
    assert one != other and not {"/", " "} & set(one + other)
    assert all(len(folder_name({"data.tests": 110 * letter}, config).encode()) < 255 for letter in "x汉")


def test_a_value_out_of_range_is_said_before_anything_starts(tmp_path):
    words = ["--config=configs/toy.py", f"--workdir={tmp_path / 'runs'}", "--config.optim.lr=-1"]
    with pytest.raises(UserError, match=r"^one_layer,keep=0\.1: optim\.lr is -1"):
        sweep.main(words)
    assert not (tmp_path / "runs").exists()


def test_a_run_that_needs_itself_is_refused(planned, tmp_path):
    """As with --config.train.init_from=RUN for all runs, where RUN is one of them."""
    with pytest.raises(
        UserError, match=rf"the run default needs the run default, so .* outside of {tmp_path / 'runs'}$"
    ):
        planned("small", f"--config.model.embedding_path={tmp_path / 'runs' / 'default'}")
    with pytest.raises(UserError, match=r"^a sweep has no use for train\.model_of; give train\.init_from"):
        plans.make("configs/toy.py", "short", ["--config.train.model_of=elsewhere"], tmp_path)


@pytest.mark.parametrize(
    "path", ["runs/seed=2", "./runs/seed=2/", "runs/../runs/seed=2", "{absolute}/runs/seed=2/codes"]
)
def test_a_run_is_found_by_every_path_to_its_folder(config, tmp_path, monkeypatch, path):
    """Whether the folder of the sweep is given as a relative path or as an absolute one."""
    monkeypatch.chdir(tmp_path)
    runs = [{"seed": 2}, {"model.embedding_path": path.format(absolute=tmp_path)}]
    config.write_text(f"{config.read_text()}\ndef sweep():\n    return {runs}\n")
    for workdir in (Path("runs"), tmp_path / "runs"):
        plan = plans.make(str(config), "", [], workdir)
        assert [run.needs for run in plan.runs] == [(), ("seed=2",)]


def test_a_place_in_the_sweep_s_folder_is_that_of_a_run_or_there_already(config, tmp_path):
    runs = [{"seed": 2}, {"model.embedding_path": "{sweep}/seed=1"}]
    config.write_text(f"{config.read_text()}\ndef sweep():\n    return {runs}\n")
    with pytest.raises(
        UserError, match=r"the run default reads .*seed=1, but this sweep trains no run there, .* seed=2, default$"
    ):
        plans.make(str(config), "", [], tmp_path / "runs")
    vectors = config.read_text().replace("{sweep}/seed=1", "{sweep}/vectors.{language}.txt")
    config.write_text(vectors)  # a file for each language
    assert [run.needs for run in plans.make(str(config), "", [], tmp_path / "runs").runs] == [(), ()]
    config.write_text(vectors.replace("{sweep}/vectors.{language}.txt", "{sweep}/seed=1"))
    (tmp_path / "runs" / "seed=1").mkdir(parents=True)
    assert [run.needs for run in plans.make(str(config), "", [], tmp_path / "runs").runs] == [(), ()]


def test_runs_whose_resolved_configs_are_equal_are_refused(tmp_path):
    """A masked model has masked embeddings, whether the sweep says so or not."""
    config = tmp_path / "equal.py"
    config.write_text(
        "from configs import toy\nfrom configs.sweeps import chain, vary\nget_config = toy.get_config\n"
        "def sweep():\n    return chain([{}], vary('model.embedding', 'masked'))\n"
    )
    with pytest.raises(
        UserError, match=r"same config: \{\} and \{'model\.embedding': 'masked'\}; leave one of them out$"
    ):
        sweep.main([f"--config={config}", f"--workdir={tmp_path / 'runs'}", "--dry_run"])


def test_dense_runs_that_differ_only_in_their_masks_are_refused(tmp_path, capsys):
    """The sweep varies model.keep, which a dense model has no use for."""
    words = [f"--workdir={tmp_path / 'runs'}", "--config.data.directory=there", "--dry_run"]
    with pytest.raises(
        UserError, match=r"the same config, because a dense model has no masks: \{'model\.keep': 0\.3\} and"
    ):
        sweep.main(["--config=configs/lm.py:dense_mini", *words])
    assert sweep.main(["--config=configs/lm.py:one_layer_mini", *words]) == 0
    assert capsys.readouterr().out.count("main.py") == 3

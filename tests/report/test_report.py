"""The report: what is averaged, what is drawn, what is missing, and a page that needs nothing else."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import one_layer.report.writing as writing
from one_layer.errors import UserError
from one_layer.report import naming
from one_layer.report.claims import claims
from one_layer.report.curves import convergence
from one_layer.report.figures import comparisons
from one_layer.report.points import points
from one_layer.report.reading import read_runs
from one_layer.report.tables import all_points, areas, examples, methods, table_1
from tests import ROOT
from tests.report.made_runs import KEEPS, config, score, write_figures, write_run


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return write_figures(tmp_path_factory.mktemp("made") / "runs")


@pytest.fixture(scope="module")
def written(runs):
    """The folder of a report, and its page."""
    out = runs.parent / "report"
    writing.report(str(runs), out)
    return out


def found(folder, pattern="*"):
    return points(read_runs(str(folder / pattern)))


def test_a_point_is_the_mean_over_seeds_with_its_deviation(runs):
    point = next(p for p in found(runs, "one,*") if p.keep == 0.5)
    expected = [score(90.0, 0.5, seed) for seed in (1, 2, 3)]
    assert sorted(point.values) == pytest.approx(expected)
    assert point.mean == pytest.approx(statistics.fmean(expected))
    assert point.deviation == pytest.approx(statistics.stdev(expected))


def test_one_run_has_no_deviation(tmp_path):
    write_run(tmp_path / "a", {}, 30.0)
    (point,) = found(tmp_path)
    assert point.mean == 30.0 and point.deviation is None


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"optim.lr": 0.1}, {}),
        ({}, {"data": {"test": "another text"}}),
        ({"evaluation.beam": 1}, {}),
        ({}, {"test": {"test": {"bleu_tokenized": 1.0, "signature": "tok:zh|version:2.6.0"}}}),
        ({}, {"test": {"other": {"bleu_tokenized": 1.0}}}),
    ],
)
def test_what_differs_in_more_than_the_seed_shares_no_mean(tmp_path, changes, more):
    write_run(tmp_path / "a", {}, 1.0)
    write_run(tmp_path / "b", {"seed": 2}, 2.0)
    write_run(tmp_path / "c", {"seed": 3, **changes}, 9.0, **more)
    assert sorted(point.values for point in found(tmp_path))[-2:] in ([(1.0, 2.0), (9.0,)], [(1.0,), (1.0, 2.0)])


def test_what_changes_no_score_does_not_part_seeds(tmp_path):
    one = {"train.log_every": 10, "data.directory": "here", "optim.accumulate": 0, "data.store": "here", "mesh.data": 2}
    write_run(tmp_path / "a", {**one, "train.max_nonfinite": 5, "train.keep_best": 1}, 1.0)
    two = {"data.directory": "there", "train.checkpoint_minutes": 2.0, "train.keep_best": 3, "train.keep_every": 2}
    write_run(tmp_path / "b", {**two, "seed": 2}, 2.0)
    (point,) = found(tmp_path)
    assert point.values == (1.0, 2.0)


def test_other_checkpoints_are_points_of_their_own(tmp_path):
    folder = write_run(tmp_path / "a", {}, 30.0)
    values = {"split": "test", "beam": 5, "length_penalty": 1.0, "max_length_a": 1.2, "max_length_b": 10}
    values |= {"signature": "tok:13a|version:2.6.0"}
    for name, checkpoint, value in (("", "best", 30.0), ("-average-5", "average:5", 31.0)):
        content = {**values, "checkpoint": checkpoint, "bleu_tokenized": value}
        (folder / f"evaluation-test{name}.json").write_text(json.dumps(content))
    assert {(p.checkpoint, p.values) for p in found(tmp_path)} == {("best", (30.0,)), ("average:5", (31.0,))}


SEARCH = {"beam": 5, "length_penalty": 1.0, "max_length_a": 1.2, "max_length_b": 10}


@pytest.mark.parametrize("older", [False, True], ids=["recorded", "in the names of files alone"])
def test_scores_without_some_layers_or_of_another_text_are_not_the_whole_model_s(tmp_path, older):
    """The test set of the run is `cccc3333`."""
    folder = write_run(tmp_path / "a", {}, 30.0)
    for split, name, layers, text, value in (
        ("test", "", {}, "cccc3333", 30.0),
        ("test", "-best-encoder-1.3-decoder-2", {"encoder": "1.3", "decoder": "2"}, "cccc3333", 13.0),
        ("test", "-best-directory-data-decoder-2", {}, "dddd", 14.0),
        ("test", "-best-valid-newer", {}, "cccc3333", 30.0),
        ("valid", "", {}, "bbbb2222", 70.0),
        ("valid", "-best-encoder-1.3-valid_beam-2", {"encoder": "1.3"}, "bbbb2222", 33.0),
        ("valid", "-best-valid-newer", {}, "eeee", 50.0),
        ("valid", "-ticket-encoder-2.safetensors-encoder-2", {"encoder": "2"}, "bbbb2222", 22.0),
    ):
        known = {} if older else {"layers": layers, "fingerprint": text}
        checkpoint = "ticket-encoder-2.safetensors" if "ticket" in name else "best"
        values = {"split": split, "checkpoint": checkpoint, **SEARCH, **known, "bleu_tokenized": value}
        values |= {"signature": "tok:13a|version:2.6.0"} if split == "test" else {}
        (folder / f"evaluation-{split}{name}.json").write_text(json.dumps(values))
    every = found(tmp_path)
    contents = {value: point.bench.content for point in every for value in point.values}
    assert sorted(contents) == [13.0, 14.0, 22.0, 30.0, 33.0, 50.0, 70.0]
    assert {point.values: point.scored for point in every if point.layers} == {
        (13.0,): "best, layers 1.3 of the encoder, layers 2 of the decoder",
        (33.0,): "best, layers 1.3 of the encoder",
        (22.0,): "ticket-encoder-2.safetensors, layers 2 of the encoder",
    }
    assert contents[13.0] == contents[30.0] == "cccc3333" != contents[14.0]
    assert contents[22.0] == contents[33.0] == contents[70.0] == "bbbb2222" != contents[50.0]
    assert {point.values for point in every if point.bytes} == {(14.0,), (30.0,), (50.0,), (70.0,)}


def test_missing_runs_of_a_sweep_are_missing_points(runs):
    every = points(read_runs(str(runs)))
    lost = [point for point in every if point.missing]
    assert sorted((len(point.values), len(point.missing), point.keep) for point in lost) == [(0, 3, 0.7), (2, 1, 0.3)]


def test_a_missing_seed_is_missing_from_the_mean_of_the_others(tmp_path):
    """Also of a text in a folder: a run that has not finished has no fingerprint of it."""
    text = {"data.source": "text", "data.directory": "there"}
    for seed in (1, 2):
        write_run(tmp_path / f"{seed}", text | {"seed": seed}, 30.0)
    (tmp_path / "2" / "result.json").unlink()
    (point,) = found(tmp_path)
    assert point.values == (30.0,) and [record.seed for record in point.missing] == [2]


@pytest.mark.parametrize("pattern", ["./runs/*", "runs/*/", "runs//*", "./runs/", "runs/**"])
def test_missing_runs_are_found_however_the_pattern_is_written(runs, monkeypatch, pattern):
    monkeypatch.chdir(runs.parent)
    assert read_runs(pattern) == read_runs("runs/*") and len(read_runs(pattern)) == len(read_runs(str(runs)))


def test_a_figure_compares_models_that_differ_in_one_thing(runs):
    each = {comparison.kind: comparison for comparison in comparisons(points(read_runs(str(runs))))}
    assert each.keys() == {"figure2", "figure3", "figure4", "figure5"}
    assert [line.name for line in each["figure2"].lines] == ["L layers", "one layer"]
    assert [line.name for line in each["figure3"].lines] == ["pre-trained, masked", "random, masked"]
    assert [line.name for line in each["figure5"].lines] == ["kaiming uniform", "xavier uniform"]
    for comparison in each.values():
        assert all([point.keep for point in line.points] == list(KEEPS) for line in comparison.lines)
        assert [len(point.values) for point in comparison.dense] == [3]


def test_models_of_paper_b_have_names_of_their_own():
    dense = {
        "model.weights": "dense",
        "model.encoder_layers": "4L+3R",
        "model.decoder_layers": 1,
        "model.reservoir": "gru",
    }
    plain = {**dense, "model.encoder_layers": "LLLL"}
    models = [
        dense,
        {**dense, "model.reservoir": "conv"},
        {**dense, "train.backskip": "identity"},
        {**dense, "train.backskip": "policy"},
        plain,
        {**plain, "model.layerdrop": 0.1},
    ]
    names = naming.distinct(models)
    assert len(set(names)) == len(models)
    assert (
        names[4] == naming.distinct([{**plain, "model.reservoir": "conv"}])[0]
    )  # the kind of reservoirs that are not there


def test_models_whose_random_weights_are_drawn_in_other_ways_have_other_names():
    plain = {"model.weights": "one_layer", "model.init_scheme": "signed_constant", "model.init_attention": "scheme"}
    models = [
        plain,
        {**plain, "model.init_attention": "xavier"},
        {**plain, "model.init_preset": "reference", "model.init_attention": "xavier"},
        {**plain, "model.init_preset": "reference"},
        {**plain, "model.init_scheme": "xavier_uniform"},
        {**plain, "model.init_embedding": "xavier_uniform"},
        {**plain, "model.init_qk_gain": 2.8},
        {**plain, "model.scale_by_keep": False},
        {**plain, "optim.freeze": "masks"},
    ]
    assert len({naming.model(each) for each in models}) == len(models)
    before = {key: value for key, value in plain.items() if key != "model.init_attention"}  # a record without the key
    now = {**plain, "model.init_embedding": "", "model.init_qk_gain": 1.0, "model.scale_by_keep": True}
    assert naming.model(before) == naming.model(plain) == naming.model(now)


def test_a_line_that_nothing_is_compared_with_is_drawn_too(tmp_path):
    for keep in (0.3, 0.5):
        write_run(tmp_path / f"{keep}", {"model.keep": keep}, 30.0)
    assert [comparison.kind for comparison in comparisons(found(tmp_path))] == ["keep"]


def test_the_papers_numbers_stand_beside_ours(runs):
    every = points(read_runs(str(runs)))
    rows = {row[0].split(" (")[0]: row for row in table_1({every[0].bench: every}).rows}
    assert rows["fully weighted"][1] == "34.66 ± 0.11" and rows["fully weighted"][-1] == "97.20 ± 0.10 (3 runs)"
    assert rows["one random layer, pre-trained embeddings"][-1] == "93.00 ± 0.40 (3 runs)"
    assert rows["the same, twice as deep"][-1] == "missing"
    assert "90.00" in rows["one random layer, random embeddings"][-1]


def test_layer_strings_and_numbers_of_layers_are_compared_by_depth(tmp_path):
    pretrained = {"model.embedding_path": "runs/dense", "model.embedding_source": "run"}
    models = [
        ({}, 10.0),
        ({"model.weights": "dense", "model.encoder_layers": "LL", "model.decoder_layers": "LL"}, 20.0),
        ({**pretrained, "model.encoder_layers": "SS"}, 30.0),
        ({**pretrained, "model.d_model": 256, "model.decoder_layers": "2S+0R"}, 40.0),
        ({**pretrained, "model.encoder_layers": "SSSS", "model.decoder_layers": "SSSS"}, 50.0),
    ]
    for changes, value in models:
        write_run(tmp_path / str(value), changes, value)
    every = found(tmp_path)
    assert [row[-1].split()[0] for row in table_1({every[0].bench: every}).rows] == [
        "20.00",
        "10.00",
        "30.00",
        "40.00",
        "50.00",
    ]


def test_claims_follow_the_points(runs, tmp_path):
    every = points(read_runs(str(runs)))
    verdicts = {row[1]: row[2] for row in claims({every[0].bench: comparisons(every)}).rows}
    assert verdicts["one layer about equals L layers"] == verdicts["pre-trained embeddings help"] == "holds"
    assert verdicts["one layer: best around keep 0.5, worst near 0 and 1"] == "holds"
    for keep, one, other in ((0.1, 20.0, 30.0), (0.5, 35.0, 30.0), (0.9, 50.0, 30.0)):
        write_run(tmp_path / f"a{keep}", {"model.keep": keep}, one)
        write_run(
            tmp_path / f"b{keep}", {"model.keep": keep, "model.weights": "multi_layer", "model.sharing": "none"}, other
        )
    others = found(tmp_path)
    rows = {row[1]: row for row in claims({others[0].bench: comparisons(others)}).rows}
    assert rows["one layer about equals L layers"][2] == "does not hold"
    assert rows["one layer about equals L layers"][3].endswith("not at keep 0.1, 0.5, 0.9")
    assert rows["one layer: best around keep 0.5, worst near 0 and 1"][2] == "does not hold"


def test_of_two_nlls_the_smaller_one_is_better(tmp_path):
    def write(changes, nll):
        line = {"source": "a", "reference": "b", "hypothesis": str(nll)}
        write_run(tmp_path / str(nll), changes, 0.0, test={"test": {"nll": nll}}, examples={"test": [line]})

    pretrained, many = {"model.embedding_path": "runs/dense"}, {"model.weights": "multi_layer", "model.sharing": "none"}
    for keep, nll in ((0.1, 2.0), (0.5, 1.5), (0.9, 1.9)):
        for changes, more in ((pretrained, 0.0), ({}, 0.01), (many, 0.02)):
            write({**changes, "model.keep": keep}, nll + more)
    for nll in (1.2, 3.0):
        write({"model.weights": "dense", "optim.lr": nll}, nll)
    every = found(tmp_path)
    bench = every[0].bench
    judged = {row[1]: row[2:] for row in claims({bench: comparisons(every)}).rows}
    best = next(verdict for claim, verdict in judged.items() if claim.startswith("one layer: best"))
    assert best == ["holds", "best at 0.5 (1.51), worst at 0.1 (2.01)"]
    assert judged["pre-trained embeddings help"][0] == "holds"
    assert sorted(examples(every).rows[0][2:]) == ["1.2", "1.5", "1.52"]
    table = all_points(bench, every)
    assert {row[table.columns.index("of the best fully weighted")] for row in table.rows} == {""}


@pytest.mark.parametrize(
    ("task", "measure", "verdicts"),
    [
        ("translation", "bleu_tokenized", ["holds", "does not hold"]),
        ("classification", "accuracy", ["does not hold", "holds"]),
        ("causal_lm", "nll", []),
        ("masked_lm", "accuracy", []),
    ],
)
def test_each_task_is_judged_by_what_paper_a_says_of_it(tmp_path, task, measure, verdicts):
    """Of two models, one is best at keep 0.5 and the other at 0.7."""
    for rate, best in ((0.1, 0.5), (0.2, 0.7)):
        for keep in KEEPS:
            values = {"test": {measure: 0.9 - abs(keep - best)}}
            write_run(
                tmp_path / f"{best},{keep}", {"task": task, "model.keep": keep, "optim.lr": rate}, 0.0, test=values
            )
    every = found(tmp_path)
    rows = claims({every[0].bench: comparisons(every)}).rows
    assert [row[2] for row in rows] == verdicts


def test_methods_say_how_to_make_a_run_again(tmp_path):
    folder = write_run(tmp_path / "a b", {"model.keep": 0.3}, 30.0)
    table = methods(read_runs(str(tmp_path / "*")))
    row = dict(zip(table.columns, table.rows[0], strict=True))
    words = ["--config=configs/toy.py", "--config.model.keep=0.3", f"--workdir={folder}"]
    assert shlex.split(row["command"]) == ["python", "main.py", *words]
    assert row["search"] == "beam 5, length penalty 1" and row["commit"] == "012345678" and row["seed"] == "1"
    assert "cccc3333" in row["data"] and row["checkpoint"] == "best by nll on valid: update 100"


def test_the_command_of_a_run_of_a_sweep_is_the_sweep_s(runs):
    planned = json.loads((runs / "sweep.json").read_text())["runs"]
    commands = {record.folder.name: shlex.split(record.command)[2:] for record in read_runs(str(runs / "one,*"))}
    assert commands and commands == {name: planned[name]["words"] for name in commands}


def test_areas_are_shown_for_the_runs_that_have_them(tmp_path):
    measured = {"updates": {"area": 900.0, "until": 100.0, "mean": 9.0}}
    write_run(tmp_path / "with", {}, 90.0, convergence=measured)
    write_run(tmp_path / "without", {"seed": 2}, 90.0)
    assert areas(read_runs(str(tmp_path / "*"))).rows == [[str(tmp_path / "with"), "updates", "100", "9"]]


def test_a_run_with_one_evaluation_is_a_dot_and_one_without_any_is_left_out(tmp_path):
    for seed, evaluations in (1, 4), (2, 1), (3, 0):
        metrics = write_run(tmp_path / str(seed), {"seed": seed}, 90.0) / "metrics.jsonl"
        metrics.write_text("".join(metrics.read_text().splitlines(keepends=True)[:evaluations]))
    (axes,) = convergence(found(tmp_path), 1).figure.axes
    drawn = [(len(line.get_xdata()), line.get_linestyle(), line.get_marker()) for line in axes.lines]
    assert drawn == [(4, "-", "None"), (1, "None", "o")]


def test_every_point_is_in_a_csv_file(runs, written):
    with (written / "points.csv").open() as file:
        rows = list(csv.DictReader(file))
    every = points(read_runs(str(runs)))
    assert [row["mean"] for row in rows] == ["" if p.mean is None else str(p.mean) for p in every]
    assert sum(int(row["runs"]) for row in rows) == len(list(runs.glob("*/result.json")))
    for picture in written.glob("figure*.svg"):
        with picture.with_suffix(".csv").open() as file:
            assert {row["folders"] for row in csv.DictReader(file)} <= {row["folders"] for row in rows}


def test_every_picture_is_there_twice_and_in_the_page(written):
    names = {path.stem for path in written.glob("*.svg")}
    assert {name.rsplit("-", 1)[0] for name in names} == {
        "figure2",
        "figure3",
        "figure4",
        "figure5",
        "bytes",
        "convergence",
    }
    page = (written / "index.html").read_text()
    for name in names:
        assert (written / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        root = ElementTree.parse(written / f"{name}.svg").getroot()
        ids = [element.get("id") for element in root.iter() if element.get("id")]
        assert all(each.startswith(f"{name}-") for each in ids) and f'id="{ids[0]}"' in page


def test_pictures_of_an_earlier_report_go_and_other_files_stay(runs, tmp_path):
    out = tmp_path / "report"
    writing.report(str(runs), out)
    before = {path.stem for path in out.glob("*.png")}
    (out / "bytes-77.csv").write_text("a table of the user's own, without a picture")
    write_run(tmp_path / "alone", {}, 30.0)
    writing.report(str(tmp_path / "alone"), out)
    after = {path.stem for path in out.glob("*.png")}
    shown = set(re.findall(r'href="([^"/]+)\.csv"', (out / "index.html").read_text())) - {"points", "convergence"}
    assert before - after and after == shown == {path.stem for path in out.glob("*.svg")}
    assert {path.stem for path in out.glob("*.csv")} == after | {"points", "convergence", "bytes-77"}


def test_the_page_shows_text_as_text_and_asks_for_nothing(written):
    page = (written / "index.html").read_text()
    assert "die katze &lt;b&gt;" in page and "<b>" not in page
    targets = re.findall(r'(?:src|href|xlink:href)="([^"]*)"', page)
    assert all(t.startswith(("#", "data:")) or (written / t).is_file() for t in targets)
    assert "<script" not in page and "@import" not in page


def test_the_same_runs_give_the_same_report(runs, written, tmp_path):
    writing.report(str(runs), tmp_path / "again")
    for path in written.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes(), path.name


def test_a_report_needs_runs_and_a_folder_of_its_own(runs, tmp_path):
    with pytest.raises(UserError, match="matches no folder of a run"):
        writing.report(str(tmp_path / "*"), tmp_path / "out")
    with pytest.raises(UserError, match="holds a run; give another folder"):
        writing.report(str(runs), next(runs.glob("one,*")))
    write_run(tmp_path / "a", {}, 1.0)
    (tmp_path / "a" / "result.json").write_text("{")
    with pytest.raises(UserError, match=r"result\.json cannot be read"):
        writing.report(str(tmp_path / "*"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


RUN = {"config": config({})}


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("result.json", {**RUN, "test": None}, "test is None, but must be an object"),
        ("result.json", {**RUN, "valid": None}, "valid is None, but must be an object"),
        (
            "result.json",
            {**RUN, "test": {"test": {"bleu_tokenized": None}}},
            "test.test.bleu_tokenized is None, but must be a number",
        ),
        ("result.json", {**RUN, "test": {"test": {"nll": "low"}}}, "test.test.nll is 'low', but must be a number"),
        ("result.json", {**RUN, "examples": {"test": [{"source": "a"}]}}, "lacks examples.test[0].reference"),
        ("result.json", {**RUN, "parameters": {"random": 1}}, "lacks parameters.trained"),
        ("result.json", {**RUN, "overrides": 1}, "overrides is 1, but must be a list"),
        ("result.json", {"config": config({"seed": "one"})}, "config.seed is 'one', but must be a whole number"),
        ("config.json", config({"model.keep": None}), "model.keep is None, but must be a number"),
        ("evaluation-test.json", {"split": "test", "accuracy": None}, "accuracy is None, but must be a number"),
        ("metrics.jsonl", {"step": 1, "valid/nll": 2.0}, "line 1 lacks seconds"),
        (
            "metrics.jsonl",
            {"step": 1, "seconds": 1.0, "valid/nll": "low"},
            "line 1: valid/nll is 'low', but must be a number",
        ),
        ("../sweep.json", {"runs": []}, "runs is [], but must be an object"),
        ("../sweep.json", {"runs": {"a": 5}}, "runs.a is 5, but must be an object"),
    ],
)
def test_a_file_with_other_content_is_named_in_one_sentence(tmp_path, file, content, said):
    folder = write_run(tmp_path / "runs" / "a", {}, 30.0)
    if file == "config.json":
        (folder / "result.json").unlink()
    (folder / file).write_text(json.dumps(content) + "\n")
    with pytest.raises(UserError) as raised:
        writing.report(str(tmp_path / "runs" / "*"), tmp_path / "out")
    assert str(raised.value).startswith(str((folder / file).parent.resolve() / Path(file).name))
    assert said in str(raised.value) and "leave the run out" in str(raised.value)


def test_what_older_versions_did_not_write_is_left_out_of_the_page(tmp_path):
    folder = write_run(tmp_path / "a", {}, 30.0)
    (folder / "result.json").write_text(json.dumps({**RUN, "test": {"test": {"bleu_tokenized": 30.0}}}))
    (folder / "metrics.jsonl").write_text('{"step": 1, "seconds": 1.0, "valid/nll": "nan"}\n')
    writing.report(str(folder), tmp_path / "out")
    assert "1 finished runs" in (tmp_path / "out" / "index.html").read_text()


def test_unfinished_runs_alone_still_give_a_page(tmp_path):
    folder = tmp_path / "runs" / "a"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config({})))
    writing.report(str(folder), tmp_path / "out")
    assert "0 finished runs" in (tmp_path / "out" / "index.html").read_text()


def test_the_command_imports_no_jax(runs, tmp_path):
    code = """
import sys
import main
def ended(code=0):
    assert code in (0, None), code
    wrong = {"jax", "flax", "optax", "orbax"} & set(sys.modules)
    assert not wrong, wrong
    print("none of them")
    raise SystemExit
sys.exit = ended
main.run()
"""
    words = ["--mode=report", f"--runs={runs}", f"--workdir={tmp_path / 'out'}"]
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT, capture_output=True, text=True)
    assert "none of them" in done.stdout, done.stderr
    assert (tmp_path / "out" / "index.html").exists()


@pytest.mark.parametrize("missing", ["--runs", "--workdir"])
def test_the_command_says_what_it_lacks(tmp_path, missing):
    given = {"--runs": "x", "--workdir": str(tmp_path)}
    words = [f"{name}={value}" for name, value in given.items() if name != missing]
    done = subprocess.run(
        [sys.executable, "main.py", "--mode=report", *words], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2 and f"error: {missing} is missing" in done.stderr


CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
)
# Writes what a browser makes of the page, in light and dark: its widths in a frame of each size.
FRAMES = """<!doctype html><body><script>
const page = PAGE, found = [];
function measure(width) {
  const frame = document.createElement("iframe");
  frame.style.width = width + "px"; frame.style.height = "900px"; frame.style.border = "0";
  frame.onload = () => {
    const root = frame.contentDocument.documentElement;
    found.push([width, root.scrollWidth, root.clientWidth, frame.contentDocument.querySelectorAll("figure svg").length]);
    if (found.length == 2) document.body.innerText = "measured " + JSON.stringify(found);
  };
  frame.srcdoc = page;
  document.body.append(frame);
}
measure(400); measure(1400);
</script>"""


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed, so the page is not opened in a browser")
@pytest.mark.parametrize("scheme", [0, 1], ids=["dark", "light"])
def test_a_browser_shows_the_page_without_errors_requests_or_horizontal_scrolling(written, tmp_path, scheme):
    text = json.dumps((written / "index.html").read_text()).replace("</", "<\\/")
    (tmp_path / "frames.html").write_text(FRAMES.replace("PAGE", text))
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    options += [
        "--disable-background-networking",
        "--disable-component-update",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    options += [f"--blink-settings=preferredColorScheme={scheme}", f"--log-net-log={tmp_path / 'net.json'}"]
    options += ["--enable-logging=stderr", "--window-size=1500,1000", "--virtual-time-budget=5000", "--dump-dom"]
    for path in (tmp_path / "frames.html", written / "index.html"):
        done = subprocess.run([CHROMIUM, *options, path.as_uri()], capture_output=True, text=True, timeout=120)
        assert "CONSOLE" not in done.stderr, done.stderr
        assert not re.search(r'"url":"(https?|wss?)://(?!\w+\.google)', (tmp_path / "net.json").read_text())
        if path.name == "frames.html":
            widths = json.loads(re.search(r"measured (\[.*\])", done.stdout)[1])
            assert [width for width, *_ in widths] and all(scroll <= client for _, scroll, client, _ in widths)
            assert all(drawings == 6 for *_, drawings in widths)

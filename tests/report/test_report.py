"""The report: what is averaged, what is drawn, what is missing, and a page that needs nothing else."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import one_layer.report.writing as writing
from one_layer.errors import UserError
from one_layer.report import naming
from one_layer.report.curves import convergence, score_against_bytes
from one_layer.report.figures import comparisons, draw
from one_layer.report.points import points
from one_layer.report.reading import read_runs
from one_layer.report.tables import areas, methods
from tests import ROOT
from tests.report.made_runs import KEEPS, config, found, write_run


@pytest.fixture(scope="module")
def written(runs):
    """The folder of a report, and its page."""
    out = runs.parent / "report"
    writing.report(str(runs), out)
    return out


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


def test_areas_are_those_up_to_the_end_of_the_shortest_run(tmp_path):
    """nll is 1 in one run and 2 in the other at each evaluation; the second run is longer. Of a third there are no metrics."""
    for value, steps in ((1.0, (50, 100)), (2.0, (50, 100, 400))):
        folder = write_run(tmp_path / f"{value}", {"optim.lr": value}, 90.0, members=int(value))
        lines = [{"step": step, "seconds": step, "train/flops": 7 * step, "valid/nll": value} for step in steps]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (write_run(tmp_path / "none", {}, 90.0) / "metrics.jsonl").unlink()
    (table,) = areas(read_runs(str(tmp_path / "*")))
    assert table.columns == [
        "run",
        "by updates, T = 100",
        "by flops, T = 700",
    ]  # no seconds: not as many runs at a time
    assert table.rows == [[str(tmp_path / "1.0"), "1", "1"], [str(tmp_path / "2.0"), "2", "2"]]
    assert "Less is better" in table.caption


@pytest.mark.parametrize(("members", "axis"), [((1, 1), "seconds"), ((1, 3), "update")])
def test_convergence_is_drawn_against_seconds_where_they_can_be_compared(tmp_path, members, axis):
    for seed, count in zip((1, 2), members, strict=True):
        write_run(tmp_path / f"{seed}", {"seed": seed}, 90.0, members=count)
    (picture,) = convergence(found(tmp_path), 1)
    (axes,) = picture.figure.axes
    factor = 0.6 if axis == "seconds" else 1.0
    assert axes.get_xlabel().startswith(axis)
    assert all(
        list(line.get_xdata()) == pytest.approx([factor * step for step in (25, 50, 75, 100)]) for line in axes.lines
    )


def test_nll_of_other_tokens_is_drawn_apart(tmp_path):
    for merges in (100, 200):
        write_run(tmp_path / f"{merges}", {"data.bpe_merges": merges}, 90.0)
    assert len(convergence(found(tmp_path), 1)) == 2


def test_of_too_many_models_the_best_are_drawn(tmp_path):
    for rate in range(1, 10):
        write_run(tmp_path / f"{rate}", {"optim.lr": float(rate)}, 50.0 + rate)
    (picture,) = convergence(found(tmp_path), 1)
    names = [text.get_text() for text in picture.figure.legends[0].get_texts()]
    assert [name.partition("lr ")[2][:3] for name in names] == [f"{rate}.0" for rate in range(4, 10)]
    assert len(picture.points) == 9 and "3 worse models" in picture.caption


def drawn(axes):
    """Of each series with error bars: x, y, half the bar, colour, marker, and whether the mark is filled."""
    for container in axes.containers:
        line, _, (bars,) = container.lines
        halves = [(segment[1][1] - segment[0][1]) / 2 for segment in bars.get_segments()]
        filled = line.get_markerfacecolor() != "none"
        yield list(line.get_xdata()), list(line.get_ydata()), halves, line.get_color(), line.get_marker(), filled


def test_a_figure_shows_its_points_their_deviations_and_what_is_missing(runs):
    for comparison in comparisons(points(read_runs(str(runs)))):
        (axes,) = draw(comparison, 1).figure.axes
        for line, (x, y, halves, *_) in zip(comparison.lines, drawn(axes), strict=True):
            there = [point for point in line.points if point.mean is not None]
            assert (x, y) == ([point.keep for point in there], [point.mean for point in there])
            assert halves == pytest.approx([point.deviation for point in there]) and min(halves) > 0
        crosses = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "x"]
        assert crosses == [point.keep for line in comparison.lines for point in line.points if point.mean is None]


def test_marks_of_bytes_are_hollow_where_they_were_counted(tmp_path):
    """Two dense models, of which one has a file in 4 bits, and eight masked ones, so that colours come again."""
    dense = {"model.weights": "dense", "model.embedding": "trained"}
    for seed, rate in ((1, 0.1), (2, 0.1), (1, 0.2)):
        write_run(tmp_path / f"{rate},{seed}", {**dense, "seed": seed, "optim.lr": rate}, 40.0 + seed)
    values = {
        "split": "test",
        "checkpoint": "ticket-int4",
        "bleu_tokenized": 39.0,
        "file_bytes": 500_000,
        "fingerprint": "cccc3333",
    }
    (tmp_path / "0.1,1" / "evaluation-test.json").write_text(
        json.dumps({**values, "signature": "tok:13a|version:2.6.0"})
    )
    for rate in range(1, 9):
        write_run(tmp_path / f"{rate}", {"optim.lr": float(rate)}, 30.0)
    every = found(tmp_path)
    (picture,) = score_against_bytes(every, 1)
    series = list(drawn(picture.figure.axes[0]))
    marks = {(x, y): filled for xs, ys, _, _, _, filled in series for x, y in zip(xs, ys, strict=True)}
    assert marks == {(point.bytes[0], point.mean): point.bytes[1] for point in every}
    assert len({mark[3:] for mark in series}) == len(series) > 6


def test_a_run_with_one_evaluation_is_a_dot_and_one_without_any_is_left_out(tmp_path):
    for seed, evaluations in (1, 4), (2, 1), (3, 0):
        metrics = write_run(tmp_path / str(seed), {"seed": seed}, 90.0) / "metrics.jsonl"
        metrics.write_text("".join(metrics.read_text().splitlines(keepends=True)[:evaluations]))
    (picture,) = convergence(found(tmp_path), 1)
    (axes,) = picture.figure.axes
    seen = [(len(line.get_xdata()), line.get_linestyle(), line.get_marker()) for line in axes.lines]
    assert seen == [(4, "-", "None"), (1, "None", "o")]


def test_every_point_is_in_a_csv_file(runs, written):
    with (written / "points.csv").open() as file:
        rows = list(csv.DictReader(file))
    every = points(read_runs(str(runs)))
    assert [row["mean"] for row in rows] == ["" if p.mean is None else str(p.mean) for p in every]
    assert sum(int(row["runs"]) for row in rows) == len(list(runs.glob("*/result.json")))
    for picture in written.glob("figure*.svg"):
        with picture.with_suffix(".csv").open() as file:
            assert {row["folders"] for row in csv.DictReader(file)} <= {row["folders"] for row in rows}


def test_the_report_of_the_toy_language_is_what_its_runs_say(monkeypatch):
    """The stored points are those that this version makes of the stored runs."""
    monkeypatch.chdir(ROOT)
    every = points(read_runs("results/toy/figures"))
    stored = Path("results/toy/report/points.csv").read_text("utf-8")
    assert writing._csv(map(writing._cells, every)) == stored


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
        *(
            ("result.json", {"config": config({key: value})}, f"config.{key} is {value!r}, but must be {words}")
            for key, value, words in (
                ("evaluation.length_penalty", None, "a number"),
                ("evaluation.beam", "x", "a whole number"),
                ("model.layerdrop", None, "a number"),
                ("model.encoder_layers", [2], "a whole number or text"),
            )
        ),
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


def test_the_folder_of_a_run_takes_no_report_however_it_is_written(tmp_path, monkeypatch):
    folder = write_run(tmp_path / "a", {}, 30.0)
    monkeypatch.chdir(tmp_path)
    for out in (Path("a"), folder, tmp_path / "." / "a"):
        with pytest.raises(UserError, match="holds a run"):
            writing.report("a", out)
    assert len(list(folder.iterdir())) == 3


def test_a_folder_whose_name_looks_like_a_pattern_is_a_folder(tmp_path):
    write_run(tmp_path / "a[1]", {}, 30.0)
    (record,) = read_runs(str(tmp_path / "a[1]"))
    assert record.folder.name == "a[1]"


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

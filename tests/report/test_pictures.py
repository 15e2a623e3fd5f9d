"""Pictures of the report: what is compared, how it is named, and that what is drawn is what the points say."""

import dataclasses
from xml.etree import ElementTree

import numpy as np
import pytest

from one_layer.report import naming
from one_layer.report.curves import convergence
from one_layer.report.drawing import svg
from one_layer.report.figures import comparisons, draw
from one_layer.report.points import points
from one_layer.report.reading import read_runs
from one_layer.report.sizes import frontier, score_against_bytes
from tests.report.made_runs import KEEPS, found, score_again, write_run


def test_a_figure_compares_models_that_differ_in_one_thing(runs):
    each = {comparison.kind.name: comparison for comparison in comparisons(points(read_runs(str(runs))))}
    assert each.keys() == {"figure2", "figure3", "figure4", "figure5"}
    names = {kind: [line[0].series for line in its.lines] for kind, its in each.items()}
    assert names["figure2"] == ["masks 128", "masks on L layers 128"]
    assert names["figure3"] == ["masks 128", "masks 128 pre-trained embeddings"]
    assert names["figure5"] == ["masks 128", "masks 128 xavier uniform"]
    for comparison in each.values():
        for line in comparison.lines:  # no run of one keep has finished
            keeps = [keep for keep in KEEPS if keep != 0.7 or "xavier" not in line[0].series]
            assert [point.keep for point in line] == keeps
        assert [len(point.values) for point in comparison.dense] == [3]


def test_models_whose_random_weights_are_drawn_in_other_ways_have_other_names():
    plain = {"model.weights": "one_layer", "model.init_scheme": "signed_constant", "model.init_attention": "scheme"}
    models = [
        plain,
        {**plain, "model.init_attention": "xavier"},
        {**plain, "model.init_preset": "reference", "model.init_attention": "xavier"},
        {**plain, "model.init_preset": "reference"},
        {**plain, "model.init_scheme": "xavier_uniform"},
        {**plain, "model.init_embedding": "xavier_uniform"},
        {**plain, "model.scale_by_keep": False},
        {**plain, "optim.freeze": "masks"},
    ]
    assert len({naming.parts(each) for each in models}) == len(models)
    before = {key: value for key, value in plain.items() if key != "model.init_attention"}  # a record without the key
    now = {**plain, "model.init_embedding": "", "model.scale_by_keep": True}
    assert naming.parts(before) == naming.parts(plain) == naming.parts(now)


@pytest.mark.parametrize(
    ("changes", "masks"),
    [
        ({}, ""),
        ({"optim.train_only": "all", "optim.freeze": "norms,head"}, ""),
        ({"optim.freeze_scores": True}, ", random masks"),
        ({"optim.freeze": "norms, masks"}, ", random masks"),
        ({"optim.train_only": "norms"}, ", random masks"),
        ({"optim.freeze": "encoder,decoder,embeddings"}, ", random masks"),
        ({"optim.train_only": "embeddings"}, ", some random masks"),
        ({"optim.train_only": "embeddings", "model.embedding": "trained"}, ", random masks"),
        ({"optim.freeze": "encoder.2.ffn"}, ", some random masks"),
        ({"optim.freeze": "masks", "train.init_from": "runs/other"}, ", frozen masks"),
    ],
)
def test_masks_that_are_not_trained_are_in_the_name(changes, masks):
    model = {"model.weights": "one_layer", "model.embedding": "masked", "model.encoder_layers": 2, **changes}
    assert naming.weights(model) == f"one layer{masks}"
    assert naming.weights({**model, "model.weights": "dense"}) == "fully weighted"


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


@pytest.mark.parametrize("name", ["$a^{x$", "a$b$c"])
def test_a_dollar_in_a_name_is_a_dollar(tmp_path, name):
    for activation in (name, "other"):
        write_run(tmp_path / activation[-1], {"model.activation": activation}, 80.0)
    (picture,) = convergence(found(tmp_path), 1)
    assert name in "".join("".join(ElementTree.fromstring(svg(picture.figure, "x")).itertext()).split())


def test_of_too_many_models_the_best_are_drawn(tmp_path):
    for rate in range(1, 10):
        write_run(tmp_path / f"{rate}", {"optim.lr": float(rate)}, 50.0 + rate)
    (picture,) = convergence(found(tmp_path), 1)
    names = [text.get_text() for text in picture.figure.legends[0].get_texts()]
    assert [name.partition("lr ")[2] for name in names] == [f"{rate}.0" for rate in range(4, 10)]
    assert len(picture.points) == 9 and "3 worse models" in picture.caption


def drawn(axes):
    """Of each series with error bars: x, y, half the bar, colour, marker, and whether the mark is filled."""
    for container in axes.containers:
        line, _, (bars,) = container.lines
        halves = [(segment[1][1] - segment[0][1]) / 2 for segment in bars.get_segments()]
        filled = line.get_markerfacecolor() != "none"
        yield list(line.get_xdata()), list(line.get_ydata()), halves, line.get_color(), line.get_marker(), filled


def test_a_figure_shows_its_points_and_their_deviations(runs):
    for comparison in comparisons(points(read_runs(str(runs)))):
        (axes,) = draw(comparison, 1).figure.axes
        for line, (x, y, halves, *_) in zip(comparison.lines, drawn(axes), strict=True):
            assert (x, y) == ([point.keep for point in line], [point.mean for point in line])
            assert halves == pytest.approx([point.deviation for point in line]) and min(halves) > 0


def test_a_caption_counts_a_run_once_however_often_it_was_scored(tmp_path):
    for keep in (0.3, 0.5, 0.7):
        folder = write_run(tmp_path / f"{keep}", {"model.keep": keep}, 30.0)
        score_again(folder, "best", 29.0, beam=1)
    write_run(tmp_path / "dense", {"model.weights": "dense"}, 40.0)
    every = found(tmp_path)
    one, other = comparisons(every)
    assert len(every) == 7
    assert {" 4 runs." in draw(each, 1).caption for each in (one, other)} == {True, False}
    for each in (one, other):  # what was scored by different searches is not drawn together
        points = [*each.dense, *(point for line in each.lines for point in line)]
        assert len({point.scored.search for point in points}) == 1


def test_the_best_dense_model_of_each_shape_is_drawn(tmp_path):
    """Others would be lines that nobody tells apart."""
    for rate, width in ((0.1, 128), (0.2, 128), (0.3, 256)):
        changes = {"model.weights": "dense", "optim.lr": rate, "model.d_model": width}
        write_run(tmp_path / f"dense {rate}", changes, 40.0 + rate)
    for keep in (0.3, 0.5, 0.7):
        write_run(tmp_path / f"{keep}", {"model.keep": keep}, 30.0)
    (comparison,) = comparisons(found(tmp_path))
    names = [line.get_label() for line in draw(comparison, 1).figure.axes[0].lines]
    assert [name for name in names if name.startswith("dense")] == ["dense 128 lr 0.2"]


def test_marks_of_bytes_are_hollow_where_they_were_counted(tmp_path):
    """Two dense models, of which one has a file in 4 bits, and eight masked ones, so that colours come again."""
    dense = {"model.weights": "dense", "model.embedding": "trained"}
    for seed, rate in ((1, 0.1), (2, 0.1), (1, 0.2)):
        write_run(tmp_path / f"{rate},{seed}", {**dense, "seed": seed, "optim.lr": rate}, 40.0 + seed)
    score_again(tmp_path / "0.1,1", "ticket-int4", 39.0, file_bytes=500_000)
    for rate in range(1, 9):
        write_run(tmp_path / f"{rate}", {"optim.lr": float(rate)}, 30.0)
    every = found(tmp_path)
    picture = score_against_bytes(every, 1)
    series = list(drawn(picture.figure.axes[0]))
    marks = {(x, y): filled for xs, ys, _, _, _, filled in series for x, y in zip(xs, ys, strict=True)}
    assert marks == {(point.bytes, point.mean): point.is_file for point in every}
    assert len({mark[3:] for mark in series}) == len(series) > 6


def test_a_run_with_one_evaluation_is_a_dot_and_one_without_any_is_left_out(tmp_path):
    for seed, evaluations in (1, 4), (2, 1), (3, 0):
        metrics = write_run(tmp_path / str(seed), {"seed": seed}, 90.0) / "metrics.jsonl"
        metrics.write_text("".join(metrics.read_text().splitlines(keepends=True)[:evaluations]))
    (picture,) = convergence(found(tmp_path), 1)
    (axes,) = picture.figure.axes
    seen = [(len(line.get_xdata()), line.get_linestyle(), line.get_marker()) for line in axes.lines]
    assert seen == [(4, "-", "None"), (1, "None", "o")]


def test_the_frontier_is_what_no_smaller_file_equals(tmp_path):
    """A file of less than 1 % more bytes counts as smaller too, if it is better."""
    generator = np.random.default_rng(0)
    write_run(tmp_path / "a", {}, 1.0)
    (point,) = found(tmp_path)
    every = []
    for size, score, is_file in zip(*generator.integers(1, 12, (2, 40)), generator.integers(0, 2, 40), strict=True):
        result = {"bytes": {"ticket_file": 1000 + 4 * int(size)} if is_file else {}}
        record = dataclasses.replace(point.records[0], result=result)
        every.append(dataclasses.replace(point, values=(float(score),), records=(record,)))
    files = {(each.bytes, each.mean) for each in every if each.is_file}
    unequalled = [
        (size, score)
        for size, score in sorted(files)
        if not any((b > score and s < 1.01 * size) or (b == score and s < size) for s, b in files)
    ]
    assert [(each.bytes, each.mean) for each in frontier(every)] == unequalled and len(unequalled) > 1


def test_of_many_models_only_the_frontier_has_names(tmp_path):
    """And one that is far below the others does not press them together; the CSV file has it."""
    scores = [30.0 + place % 4 for place in range(15)] + [2.0]
    for place, score in enumerate(scores):
        weights = {"model.weights": "multi_layer"} if place % 2 else {}
        write_run(
            tmp_path / f"{place}", {"optim.lr": 1.0 + place, **weights}, score, bytes={"ticket_file": 1000 + 20 * place}
        )
    picture = score_against_bytes(found(tmp_path), 1)
    assert "1 mark far below" in picture.caption and min(point.mean for point in picture.points) == 2.0
    (axes,) = picture.figure.axes
    assert sorted((x, y) for xs, ys, *_ in drawn(axes) for x, y in zip(xs, ys, strict=True)) == [
        (1000 + 20 * place, score) for place, score in enumerate(scores[:-1])
    ]
    names = [text.get_text() for text in picture.figure.legends[0].get_texts()]
    assert (
        all("lr" in name for name in names[1:5])
        and len(names) == 1 + 4 + 2
        and names[0] == "frontier"
        and set(names[-2:]) == {"masks", "masks on L layers"}
    )
    letters = [
        (line.get_marker(), line.get_xdata()[0], line.get_ydata()[0])
        for line in axes.lines
        if "$" in str(line.get_marker())
    ]
    assert letters == [(f"${'abcd'[place]}$", 1000 + 20 * place, 30.0 + place) for place in range(4)]


def test_a_line_joins_the_files_of_one_model_and_no_others(tmp_path):
    for keep in (0.3, 0.5):
        folder = write_run(tmp_path / f"{keep}", {"model.keep": keep}, 100 * keep, bytes={"ticket_file": 4000})
        score_again(folder, "ticket-int4.safetensors", 50 * keep, step=100, file_bytes=1000)
    picture = score_against_bytes(found(tmp_path), 1)
    lines = [
        line for line in picture.figure.axes[0].lines if line.get_linestyle() == "-" and line.get_marker() == "None"
    ]
    joined = sorted(list(zip(line.get_xdata(), line.get_ydata(), strict=True)) for line in lines)
    assert joined == [[(1000, 50 * keep), (4000, 100 * keep)] for keep in (0.3, 0.5)]

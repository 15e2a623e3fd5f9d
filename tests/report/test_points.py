"""Points: what is a mean over seeds, and what stands by itself."""

import json
import statistics
from pathlib import Path

import pytest

from configs import common
from one_layer.report import runs as of_runs
from one_layer.report.curves import convergence
from one_layer.report.points import points
from one_layer.report.reading import read_runs
from one_layer.report.tables import all_points, examples, methods
from one_layer.runs.folder import RunFolder
from one_layer.runs.records import LATER, flatten
from one_layer.runs.sources import sources
from one_layer.system.removed import REMOVED
from tests.report.made_runs import SEARCH, found, score, score_again, write_curve, write_run


def test_a_point_is_the_mean_over_seeds_with_its_deviation(runs):
    point = next(p for p in found(runs, "one,*") if p.keep == 0.5)
    expected = [score(90.0, 0.5, seed) for seed in (1, 2, 3)]
    assert sorted(point.values) == pytest.approx(expected)
    assert point.mean == pytest.approx(statistics.fmean(expected))
    assert point.deviation == pytest.approx(statistics.stdev(expected))


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"optim.lr": 0.1}, {}),
        ({}, {"data": {"test": "another text"}}),
        ({}, {"data": {"train": "another text", "test": "cccc3333"}}),
        ({"evaluation.beam": 1}, {}),
        ({"evaluation.stride": 128}, {}),
        ({}, {"test": {"test": {"bleu_tokenized": 1.0, "signature": "tok:zh|version:2.6.0"}}}),
        ({}, {"test": {"other": {"bleu_tokenized": 1.0}}}),
    ],
)
def test_what_differs_in_more_than_the_seed_shares_no_mean(tmp_path, changes, more):
    write_run(tmp_path / "a", {}, 1.0)
    write_run(tmp_path / "b", {"seed": 2}, 2.0)
    write_run(tmp_path / "c", {"seed": 3, **changes}, 9.0, **more)
    assert sorted(point.values for point in found(tmp_path))[-2:] in ([(1.0, 2.0), (9.0,)], [(1.0,), (1.0, 2.0)])


@pytest.mark.parametrize("sizes", [(1_000, 900_000, 5_000), (900_000, 1_000, 5_000)])
def test_the_bytes_of_a_model_are_those_of_its_largest_file(tmp_path, sizes):
    for seed, size in enumerate(sizes, 1):
        write_run(tmp_path / str(seed), {"seed": seed}, 1.0, bytes={"ticket_file": size})
    (point,) = found(tmp_path)
    assert (point.bytes, point.is_file) == (900_000, True)


def test_what_changes_no_score_does_not_part_seeds(tmp_path):
    one = {"train.log_every": 10, "data.directory": "here", "optim.accumulate": 0, "data.store": "here", "mesh.data": 2}
    write_run(tmp_path / "a", {**one, "train.keep_best": 1}, 1.0)
    two = {"data.directory": "there", "train.checkpoint_minutes": 2.0, "train.keep_best": 3}
    write_run(tmp_path / "b", {**two, "seed": 2}, 2.0)
    (point,) = found(tmp_path)
    assert point.values == (1.0, 2.0)


def test_a_key_that_came_later_does_not_part_seeds_of_before_and_after(tmp_path):
    write_run(tmp_path / "a", {}, 1.0)
    write_run(tmp_path / "b", {**LATER, "seed": 2}, 2.0)
    assert [point.values for point in found(tmp_path)] == [(1.0, 2.0)]
    for number, name in enumerate(LATER):
        write_run(tmp_path / f"{number}", {**LATER, name: 2 if isinstance(LATER[name], int | float) else "other"}, 3.0)
    assert len(found(tmp_path)) == 1 + len(LATER)


def test_what_a_program_did_before_a_key_came_is_what_configs_say_now():
    now = flatten(common.get_config().to_dict())
    assert {name: now[name] for name in LATER if name not in REMOVED}.items() <= LATER.items()


def test_an_engine_has_points_of_its_own(tmp_path):
    folder = RunFolder(write_run(tmp_path / "a", {}, 30.0))
    values = {"split": "valid", "checkpoint": "best", "signature": "tok:13a|version:2.6.0", **SEARCH}
    for scored, more, value in (
        ("best", {}, 37.0),
        ("best engine=ctranslate2-int8", {"engine": "ctranslate2-int8"}, 36),
    ):
        folder.write_scores("valid", scored, {**values, **more, "bleu_tokenized": value})
    searches = {point.values: point.scored.search for point in found(tmp_path) if point.bench.test == "valid"}
    assert searches[36,] == f"{searches[37.0,]}, ctranslate2-int8"


@pytest.mark.parametrize(
    ("checkpoint", "source", "now", "before"),
    [
        ("last", "", 200, 100),
        ("best", "", 150, 100),
        ("average:2", "", 200, 150),
        ("here/ticket.safetensors", "", 150, 100),
        ("here/ticket.safetensors", "", 200, 50),
        ("here/ticket.safetensors", "last", 200, 150),
        ("here/ticket.safetensors", "average:3", 200, 150),
    ],
)
def test_scores_of_a_run_that_has_gone_on_have_the_update_beside_them(tmp_path, checkpoint, source, now, before):
    """Validation losses of 5, 3, 2 and 2.5 at updates 50, 100, 150 and 200."""
    valid = {"select": "nll", "score": -2.0, "step": 150}
    folder = write_run(tmp_path / "a", {}, 30.0, test={}, valid=valid)
    write_curve(folder, {50: 5.0, 100: 3.0, 150: 2.0, 200: 2.5})
    name = checkpoint.rpartition("/")[2] + (f" ({source})" if source else "")
    for step, expected in ((now, name), (before, f"{name}, update {before}")):
        score_again(folder, checkpoint, 20.0, step=step, **({"ticket_checkpoint": source} if source else {}))
        assert [point.scored.checkpoint for point in found(tmp_path)] == [expected]


def test_scores_of_another_text_are_apart_and_those_without_some_layers_are_left_out(tmp_path):
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
        checkpoint = "ticket-encoder-2.safetensors" if "ticket" in name else "best"
        values = {"split": split, "checkpoint": checkpoint, **SEARCH, "bleu_tokenized": value}
        values |= {"layers": layers, "fingerprint": text}
        values |= {"signature": "tok:13a|version:2.6.0"} if split == "test" else {}
        (folder / f"evaluation-{split}{name}.json").write_text(json.dumps(values))
    every = found(tmp_path)
    contents = {value: point.bench.content for point in every for value in point.values}
    assert sorted(contents) == [14.0, 30.0, 50.0, 70.0]
    assert contents[30.0] == "cccc3333" != contents[14.0]
    assert contents[70.0] == "bbbb2222" != contents[50.0]
    assert {point.values for point in every if point.bytes} == {(14.0,), (30.0,), (50.0,), (70.0,)}


RESERVOIRS = {"model.weights": "dense", "model.embedding": "trained", "model.encoder_layers": "LR"}


COUNTED = {"ticket": 700, "ticket_with_weights": 800, "dense_float32": 900}


@pytest.mark.parametrize(
    ("changes", "counted", "expected"),
    [
        (RESERVOIRS, COUNTED | {"ticket_file": 710}, (710, True)),
        (RESERVOIRS, COUNTED, (700, False)),
        (RESERVOIRS, {"dense_float32": 900}, (0, False)),  # a dense model of its shape is another model
        (RESERVOIRS | {"model.encoder_layers": 2}, COUNTED, (700, False)),
        (RESERVOIRS | {"model.encoder_layers": 2}, {"dense_float32": 900}, (900, False)),
        ({}, COUNTED | {"ticket_file": 710}, (710, True)),
        ({}, COUNTED, (0, False)),
    ],
)
def test_bytes_are_those_of_the_file_or_else_of_the_model_s_own_parameters(tmp_path, changes, counted, expected):
    write_run(tmp_path / "a", changes, 30.0, bytes=counted)
    (point,) = found(tmp_path)
    assert (point.bytes, point.is_file) == expected


def test_a_run_that_begins_with_another_one_says_so(tmp_path):
    """In its name, and with what the other one and its own sources cost; as its result says, or as the folders that are there say."""
    first = write_run(tmp_path / "first", {"model.weights": "dense"}, 10.0, train_seconds=3600.0, train_flops=5e9)
    begun = {"train.init_from": str(first), "data.teacher": "elsewhere/ticket"}
    second = write_run(tmp_path / "second", begun, 20.0, train_seconds=1800.0, train_flops=1e9)
    write_run(
        tmp_path / "third", {"train.init_from": str(first), "seed": 2}, 20.0, train_seconds=1800.0, train_flops=1e9
    )
    stored = [{"key": "train.init_from", "path": "runs/gone", "train_seconds": 7200.0, "train_flops": 3e9}]
    write_run(tmp_path / "fourth", {"train.init_from": "runs/gone"}, 30.0, sources=stored)
    write_run(tmp_path / "fifth", {"train.init_from": str(tmp_path / "third")}, 40.0)
    write_run(tmp_path / "sixth", {"data.translations": "elsewhere/lines.de"}, 50.0)
    names = {point.records[0].folder.name: point.description for point in found(tmp_path)}
    assert f"begins with {first}, taught by elsewhere/ticket" in names["second"] and "begins" not in names["first"]
    assert "taught by elsewhere/lines.de" in names["sixth"]
    table = methods(read_runs(str(tmp_path / "*")))
    place = table.columns.index("needs")
    needs = {Path(row[0]).name: row[place] for row in table.rows}
    assert needs == {
        "first": "",
        "second": f"begins with {first} (1.00 h, 5e+09 operations), taught by elsewhere/ticket (its cost is not known here)",
        "third": f"begins with {first} (1.00 h, 5e+09 operations)",
        "fourth": "begins with runs/gone (2.00 h, 3e+09 operations)",
        "fifth": f"begins with {tmp_path / 'third'} (1.50 h, 6e+09 operations)",
        "sixth": "",  # a file of translations does not say what they cost
    }
    assert sources({"train.init_from": str(second)})[0]["train_seconds"] is None, "its teacher's cost is not known"


def test_a_ticket_in_a_file_named_best_is_not_the_best_checkpoint(tmp_path):
    folder = write_run(tmp_path / "a", {}, 30.0)
    score_again(folder, "here/best", 12.0, file_bytes=99, layers={})
    assert sorted((point.values, point.whole) for point in found(tmp_path)) == [((12.0,), False), ((30.0,), True)]


def test_a_second_run_of_a_seed_is_no_second_seed(tmp_path):
    for name, seed, value in (("a", 1, 30.0), ("b", 2, 32.0), ("c", 1, 31.0)):
        write_run(tmp_path / name, {"seed": seed}, value)
    assert sorted(point.values for point in found(tmp_path)) == [(30.0, 32.0), (31.0,)]


@pytest.mark.parametrize(("select", "means"), [("bleu", 2), ("nll", 1)])
def test_the_validation_search_parts_seeds_where_it_chooses_the_checkpoint(tmp_path, select, means):
    for seed, beam in ((1, 1), (2, 5)):
        write_run(tmp_path / f"{seed}", {"seed": seed, "train.select": select, "evaluation.valid_beam": beam}, 30.0)
    assert len(found(tmp_path)) == means


def test_points_of_two_searches_are_told_apart_in_the_table(tmp_path):
    for beam in (1, 5):
        write_run(tmp_path / f"{beam}", {"evaluation.beam": beam}, 30.0 + beam)
    every = found(tmp_path)
    rows = all_points(every[0].bench, every).rows
    assert sorted(("beam 1" in row[0], "beam 5" in row[0]) for row in rows) == [(False, True), (True, False)]


@pytest.mark.parametrize(
    ("source", "name"), [("best", "ticket.safetensors"), ("average:10", "ticket.safetensors (average:10)")]
)
def test_a_file_of_another_checkpoint_than_the_best_says_which(tmp_path, source, name):
    folder = write_run(tmp_path / "a", {}, 30.0)
    score_again(folder, "ticket.safetensors", 29.0, ticket_checkpoint=source, step=100, file_bytes=9)
    assert {point.scored.checkpoint for point in found(tmp_path)} == {"best", name}


@pytest.mark.parametrize("imported", [False, True])
def test_a_score_of_a_run_that_goes_on_is_apart(tmp_path, imported):
    """An imported run has no result either, but it is whole."""
    write_run(tmp_path / "1", {}, 30.0)
    folder = write_run(tmp_path / "2", {"seed": 2}, 20.0)
    (folder / "result.json").unlink()
    if imported:
        (folder / "metrics.jsonl").unlink()
    score_again(folder, "best", 20.0, step=100)
    early = {("best", (30.0,)), ("best, update 100", (20.0,))}
    shown = {(point.scored.checkpoint, point.values) for point in found(tmp_path)}
    assert shown == ({("best", (30.0, 20.0))} if imported else early)


def test_a_run_that_was_given_up_takes_no_seed_from_the_finished_ones(tmp_path):
    (write_run(tmp_path / "a first try", {}, 0.0) / "result.json").unlink()
    for seed in (1, 2):
        write_run(tmp_path / f"seed {seed}", {"seed": seed}, 30.0 + seed)
    assert [sorted(point.values) for point in found(tmp_path)] == [[31.0, 32.0]]


def test_another_search_that_was_tried_later_changes_nothing_of_what_is_shown_of_runs(tmp_path):
    for seed in (1, 2):
        write_curve(write_run(tmp_path / f"{seed}", {"seed": seed}, 88.0 + 2 * seed), dict.fromkeys((50, 100), 1.0))

    def shown():
        records = read_runs(str(tmp_path / "*"))
        every = points(records)
        benches = {
            bench: [point for point in every if point.bench == bench] for bench in {point.bench for point in every}
        }
        rows = of_runs.table(records, {record.folder: record.folder.name for record in records}, benches).rows
        (picture,) = convergence(every, 1)
        return [row[:3] for row in rows], [len(point.records) for point in picture.points], examples(every).rows

    before = shown()
    for beam in (1, 9):
        score_again(tmp_path / "1", "best", 80.0 + beam, f"beam{beam}", beam=beam)
    assert shown() == before

"""The page: what it names, what it shows of runs that go on, and what is beside the papers."""

import re

from one_layer.report import areas, writing
from one_layer.report.figures import comparisons
from one_layer.report.page import document, words
from one_layer.report.points import points
from one_layer.report.reading import read_runs
from one_layer.report.tables import Table
from one_layer.runs.collection import collect
from tests.report.made_runs import found, write_run


def test_a_name_in_a_cell_is_a_link_and_an_empty_column_is_left_out():
    table = Table("t", "", ["model", "run", "nothing"], [["masks <1>", "runs/a", ""]])
    text = document.html(table, {"masks <1>": "masks <1>", "runs/a": "runs/a"})
    assert '<a href="#masks_&lt;1&gt;">masks &lt;1&gt;</a>' in text
    assert '<a href="#runs/a">runs/a</a>' in text and "nothing" not in text
    assert '<tr id="masks_&lt;1&gt;">' in document.html(table, {}, anchored=True)


def test_a_long_line_beside_short_ones_is_drawn_alone(tmp_path):
    """One line has three keeps; beside it are lines with one, in two kinds of comparisons."""
    for keep in (0.3, 0.5, 0.7):
        write_run(tmp_path / f"{keep}", {"model.keep": keep}, 30.0)
    write_run(tmp_path / "wide", {"model.d_model": 256}, 40.0)
    write_run(tmp_path / "many", {"model.weights": "multi_layer", "model.sharing": "none"}, 40.0)
    figures = [(each.kind.name, [line[0].series for line in each.lines]) for each in comparisons(found(tmp_path))]
    assert figures == [("keep", ["masks 128"])]


def test_a_run_under_way_says_how_many_updates_it_will_make(tmp_path):
    folder = write_run(tmp_path / "runs" / "a", {"train.updates": 400}, 30.0)
    (folder / "result.json").unlink()
    writing.report(str(tmp_path / "runs" / "*"), tmp_path / "out")
    text = (tmp_path / "out" / "index.html").read_text()
    row = re.search(r"All runs</h3>.*?</table>", text, re.DOTALL)[0]
    assert "400" in row and ">100<" not in row and f">{folder}<" not in text.partition("<summary>Every run")[0]


def test_the_command_for_a_run_of_a_collection_names_the_file(tmp_path):
    for name in "ab":
        write_run(tmp_path / "runs" / name, {"optim.lr": float(name == "a")}, 30.0)
    collect(str(tmp_path / "runs" / "*"), tmp_path / "made.jsonl.zst")
    first, second = read_runs(str(tmp_path / "made.jsonl.zst"))
    assert (first.address, second.address) == tuple(f"{tmp_path}/made.jsonl.zst/{name}" for name in "ab")
    (again,) = read_runs(first.address)
    assert again == first


def test_pieces_of_words_are_joined_in_examples(tmp_path):
    line = {"source": "a slee@@ k do@@ g @@ b@@", "reference": "x", "hypothesis": "y"}
    write_run(tmp_path / "runs" / "a", {}, 30.0, examples={"test": [line]})
    writing.report(str(tmp_path / "runs" / "*"), tmp_path / "out")
    assert "a sleek dog @@ b" in (tmp_path / "out" / "index.html").read_text()


def test_what_all_runs_share_is_said_once(tmp_path):
    """In the words of the first screen, with all keys behind it; a key in which two runs differ is not there."""
    configs = [
        {"task": "translation", "model.weights": "dense", "model.heads": 4, "model.d_model": width} for width in (1, 2)
    ]
    assert words.shared(configs) == "translation, fully weighted"
    configs[1]["task"] = "causal_lm"
    assert words.shared(configs) == "fully weighted"


def test_a_text_is_called_by_its_first_digits_wherever_it_is_named(tmp_path):
    """There are two training texts, two validation texts and two texts of one test set."""
    for name, data in (("a", "1 2 5"), ("b", "3 4 6"), ("c", "1 2 5")):
        train, valid, test = (digit * 8 for digit in data.split())
        write_run(
            tmp_path / name, {"optim.lr": float(ord(name))}, 30.0, data={"train": train, "valid": valid, "test": test}
        )
    records = read_runs(str(tmp_path / "*"))
    titles = {point.bench.title for point in points(records)}
    assert titles == {f"test (text {digit * 6}), tokenised BLEU" for digit in "56"}
    titles = sorted(areas.table(each, []).title for each in areas.areas(records))
    assert [title.rpartition(" (")[2] for title in titles] == [f"validation text {digit * 6})" for digit in "24"]

"""The command that compares two folders of runs: its table, and what it refuses."""

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from one_layer import tickets
from one_layer.commands import main_of
from one_layer.commands.compare import Pair, named, table
from one_layer.commands.compare import compare as compare_runs
from one_layer.runs.collection import collect
from tests import ROOT, tiny_tickets, user_error


def write(
    folder: Path, ticket: tickets.Ticket | None, score: float, seconds: float, print_: str = "", **config: object
) -> None:
    """Writes what is left of a run that has ended; `print_` is the fingerprint of its text."""
    folder.mkdir(parents=True)
    result = {
        "config": {"seed": 1, "mesh": {"data": int(seconds)}, **config},
        "test": {"test": {"bleu_tokenized": score}},
        "valid": {"select": "nll", "score": -score / 10},  # a loss has a minus sign there, and none for people
        "train_seconds": seconds,
        **({"data": {"train": print_}} if print_ else {}),
    }
    (folder / "result.json").write_text(json.dumps(result))
    if ticket:
        tickets.save(folder / "ticket.safetensors", ticket)


def compare(first: Path, second: Path) -> list[Pair]:
    return compare_runs(named(str(first)), named(str(second)))


def flipped(ticket: tickets.Ticket) -> tuple[tickets.Ticket, int]:
    """The ticket with one kept and one dropped weight exchanged in its first mask of several layers; and its weights under masks."""
    path = next(path for path in ticket.masks if ticket.masks[path].ndim == 2)
    bits = np.unpackbits(ticket.masks[path], axis=-1, bitorder="little")
    ones, zeros = np.flatnonzero(bits[0])[0], np.flatnonzero(bits[0, :100] == 0)[0]
    bits[0, ones], bits[0, zeros] = 0, 1
    masks = {**ticket.masks, path: np.packbits(bits, axis=-1, bitorder="little")}
    scores = tiny_tickets.trained(ticket.config)["params"]
    return replace(ticket, masks=masks), sum(
        leaf.size for name, leaf in tiny_tickets.flat(scores).items() if "scores" in name
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, int]:
    """Two folders with the runs `same` and `other`, whose tickets differ in two bits; and the number of bits."""
    first, second = (tmp_path_factory.mktemp(name) for name in ("first", "second"))
    ticket = tiny_tickets.ticket_of(tiny_tickets.TINY)
    other, size = flipped(ticket)
    for folder, its, seconds in ((first, ticket, 10.0), (second, other, 20.0)):
        write(folder / "same", ticket, 30.0, seconds)
        write(folder / "other", its, seconds, seconds)
        write(folder / f"only-{folder.name}", None, 1.0, 1.0)
    return first, second, size


def test_runs_are_paired_by_name_and_every_mask_bit_counts(folders):
    first, second, size = folders
    other, same = compare(first, second)
    assert (other.name, same.name) == ("other", "same")
    assert same.common == 1 and other.common == pytest.approx(1 - 2 / size, abs=1e-12)
    assert other.scores == other.seconds == [10.0, 20.0] and other.valid == [1.0, 2.0]
    last = table([other, same]).split("\n")[-1].split()
    assert last[:4] == ["all", "2", "apart", "5"] and last[-5:] == ["to", "100.0", "%", "20", "40"]


def test_a_collection_has_no_masks_although_the_folder_that_it_was_made_of_has(folders):
    collect(f"{folders[0]}/*", Path(f"{folders[0]}.jsonl.zst"))
    assert {pair.common for pair in compare(Path(f"{folders[0]}.jsonl.zst"), folders[0])} == {None}


def test_runs_of_unlike_configs_are_refused_and_devices_do_not_count(tmp_path):
    for name, keep in (("first", 0.5), ("second", 0.7)):
        write(tmp_path / name / "run", None, 1.0, len(name), model={"keep": keep})
    with user_error(r"run differ in model\.keep"):
        compare(tmp_path / "first", tmp_path / "second")


def test_twins_in_two_sweeps_are_compared(tmp_path):
    """On two machines, with the text in two places, and with the dense model of each sweep."""
    for name, home in (("first", str(tmp_path / "first")), ("second", "/elsewhere/runs/second")):
        places = {"train": {"init_from": f"{home}/dense", "checkpoint_minutes": len(name), "keep_best": len(name)}}
        places |= {"model": {"embedding_path": f"{home}/dense"}, "data": {"directory": name, "store": name}}
        write(tmp_path / name / "run", None, 1.0, len(name), print_="aa", **places)
    words = ["--config=configs/toy.py", "--workdir=/elsewhere/runs/second/run"]
    (tmp_path / "second" / "sweep.json").write_text(json.dumps({"runs": {"run": {"words": words}}}))
    assert [pair.name for pair in compare(tmp_path / "first", tmp_path / "second")] == ["run"]


@pytest.mark.parametrize(
    ("keys", "one", "other"),
    [
        ("data.directory", {"data": {"directory": "a"}, "print_": "aa"}, {"data": {"directory": "b"}, "print_": "bb"}),
        ("data.directory", {"data": {"directory": "a"}}, {"data": {"directory": "b"}}),
        ("train.init_from", {"train": {"init_from": "{}/dense"}}, {"train": {"init_from": "{}/other"}}),
        ("model.embedding_path", {"model": {"embedding_path": "{}/dense"}}, {"model": {"embedding_path": "x/dense"}}),
        ("train.patience", {"train": {"patience": 1}}, {"train": {"patience": 2}}),
    ],
)
def test_runs_on_another_text_or_after_another_run_are_no_twins(tmp_path, keys, one, other):
    for name, values in (("first", one), ("second", other)):
        there = json.loads(json.dumps(values).replace("{}", str(tmp_path / name)))
        write(tmp_path / name / "run", None, 1.0, 1.0, **there)
    with user_error(f"run differ in {keys};"):
        compare(tmp_path / "first", tmp_path / "second")


def test_a_key_that_one_of_two_versions_lacks_refuses_nothing(tmp_path):
    for name, model in (("first", {"keep": 0.5}), ("second", {"keep": 0.5, "newer": ""})):
        write(tmp_path / name / "run", None, 1.0, 1.0, model=model)
    assert [pair.name for pair in compare(tmp_path / "first", tmp_path / "second")] == ["run"]


def test_runs_on_other_text_and_results_of_something_else_are_refused(tmp_path):
    for name, size in (("first", 12), ("second", 14)):
        write(tmp_path / name / "run", tiny_tickets.ticket_of(tiny_tickets.TINY.replace(source_vocab=size)), 1.0, 1.0)
    with user_error("vocabularies of different sizes"):
        compare(tmp_path / "first", tmp_path / "second")
    (tmp_path / "second" / "run" / "result.json").write_text(json.dumps({"config": {}, "valid": {"score": "low"}}))
    with user_error(r"result\.json: valid\.score is 'low', but must be a number"):
        compare(tmp_path / "first", tmp_path / "second")


def test_runs_without_test_sets_are_left_out_of_the_mean_difference(tmp_path):
    for folder, scores in (("first", (30.0, math.nan)), ("second", (31.0, math.nan))):
        for name, value in zip(("scored", "not scored"), scores, strict=True):
            write(tmp_path / folder / name, None, value, 1.0)
            if math.isnan(value):
                path = tmp_path / folder / name / "result.json"
                path.write_text(json.dumps({**json.loads(path.read_text()), "test": {}, "valid": {"score": 1.0}}))
    assert "apart 1  " in table(compare(tmp_path / "first", tmp_path / "second")).splitlines()[-1]


def test_the_command_prints_the_table(folders):
    first, second, _ = folders
    command = [sys.executable, "main.py", "compare", str(first), str(second)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == table(compare(first, second)) + "\n"


@pytest.mark.parametrize(
    ("other", "said"), [("nope", "is no folder"), (ROOT / "results/lm.jsonl.zst", "no run of")], ids=str
)
def test_what_cannot_be_compared_is_said(folders, other, said):
    with user_error(said):
        main_of("compare")([str(folders[0]), str(other)])

"""`compare` of two runs: what differs, which lines are better, and what is said where lines cannot be compared."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from one_layer.commands import compare
from one_layer.runs.collection import collect
from one_layer.runs.folder import RunFolder
from one_layer.tasks.translation.bleu import bleu_sacre
from tests import tiny, user_error

FILES = ("config.json", "result.json", "metrics.jsonl", "identity.json", "preprocessing.json", "hypotheses-test.txt")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs `bad`, whose translations are those of a tiny model, and `good`, which has two lines of the references."""
    root, trained = tmp_path_factory.mktemp("runs"), tiny.trained(tmp_path_factory)
    for name in ("bad", "good"):
        (root / name).mkdir()
        for file in (*FILES, "vocabulary.source.txt", "vocabulary.target.txt"):
            shutil.copy(trained / file, root / name)
    folder = RunFolder(root / "good")
    run = folder.read_config()
    references = run.task.scored_corpus(run.data, folder.assets(), "test").tests["test"].reference_detokenized
    lines = [*references[:2], *folder.hypotheses_file("test").read_text("utf-8").splitlines()[2:]]
    folder.hypotheses_file("test").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    score = bleu_sacre(lines, references)[0]
    change(root / "good", lambda result: result["test"]["test"].update(bleu_sacre=score, bleu_tokenized=score))
    change(root / "good", lambda result: result["config"]["model"].update(keep=0.7))
    return root


def change(folder: Path, update: Any) -> None:
    path = folder / "result.json"
    result = json.loads(path.read_text())
    update(result)
    path.write_text(json.dumps(result))


def said(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    compare.main([*map(str, words)])
    return capsys.readouterr().out


def test_keys_scores_and_lines_of_two_runs(runs, capsys):
    text = said(capsys, runs / "bad", runs / "good", "--lines=1")
    assert "model.keep  0.5    0.7" in text and "model.ffn" not in text
    assert "test: 8 lines, of which the first run has 0 better, the second 2, and 6 are equally good." in text
    assert "no test, because fewer than 10 lines differ" in text
    assert text.count("  line ") == 1 and "second 100 " in text and "has worse" not in text


def test_what_is_said_of_two_runs_turns_with_their_order(runs, capsys):
    there, back = said(capsys, runs / "bad", runs / "good"), said(capsys, runs / "good", runs / "bad")
    assert "first run has 2 better, the second 0" in back and "has better:" not in back and "has worse:" in back
    assert there.count("  second\n") + there.count("  first\n") == back.count("  second\n") + back.count("  first\n")


@pytest.mark.parametrize(
    ("break_it", "why"),
    [
        (lambda folder: (folder / "hypotheses-test.txt").unlink(), "good has no hypotheses-test.txt"),
        (lambda folder: (folder / "hypotheses-test.txt").write_text("one\n"), "8 lines, but 8 and 1 hypotheses"),
        (lambda folder: (folder / "hypotheses-test.txt").write_text("none\n" * 8), "they are of another checkpoint"),
        (lambda folder: change(folder, lambda r: r["test"]["test"].update(bleu_sacre=0)), "are of another checkpoint"),
        (
            lambda folder: change(folder, lambda r: r["data"].update(test="0")),
            "the test sets of the two runs have other",
        ),
        (lambda folder: change(folder, lambda r: r["config"].update(task="classification")), "of the task translation"),
    ],
)
def test_lines_that_cannot_be_compared_are_said_and_the_rest_is_shown(runs, tmp_path, capsys, break_it, why):
    shutil.copytree(runs, tmp_path / "runs")
    break_it(tmp_path / "runs" / "good")
    text = said(capsys, tmp_path / "runs" / "bad", tmp_path / "runs" / "good")
    assert "The lines of test are not compared: " in text and why in text and "model.keep" in text


def test_a_text_that_has_changed_since_or_is_gone_is_said(runs, tmp_path, capsys):
    shutil.copytree(runs, tmp_path / "runs")
    for changes, words, why in (
        ({"toy_test": 9}, [], "is no longer that of the results"),
        ({"source": "text", "directory": "gone"}, ["--text=elsewhere"], "cannot be read from elsewhere; say where"),
    ):
        for path in tmp_path.glob("runs/*/config.json"):
            config = json.loads(path.read_text())
            path.write_text(json.dumps({**config, "data": {**config["data"], **changes}}))
        assert why in said(capsys, tmp_path / "runs" / "bad", tmp_path / "runs" / "good", *words)


def test_runs_of_a_collection_are_compared_as_those_of_folders(runs, tmp_path, capsys):
    file = tmp_path / "both.jsonl.zst"
    collect(f"{runs}/*", file)
    text = said(capsys, f"{file}/bad", f"{file}/good")
    assert f"first:   {tmp_path}/both/bad" in text and "model.keep  0.5    0.7" in text
    assert "8 lines, of which the first run has 0 better, the second 2" in text
    alone = said(capsys, file, runs)
    assert [line.split()[0] for line in alone.splitlines()] == ["run", "bad", "good", "all"]
    at_home = runs.parent / f"{runs.name}.jsonl.zst"  # where the folder beside it has the same name
    shutil.copy(file, at_home)
    assert f"first:   {runs}/bad" in said(capsys, f"{at_home}/bad", runs / "bad")


def test_runs_that_cannot_be_paired_are_said(runs, tmp_path):
    for words, why in (
        ((runs / "bad", runs / "bad"), "are the same run"),
        ((runs, runs, "--text=x"), "--text=x is for the lines of two runs"),
        ((runs / "bad", tmp_path / "none"), "none is no folder"),
        ((tmp_path / "none.jsonl.zst/a", runs), "is no folder"),
    ):
        with user_error(why):
            compare.main([*map(str, words)])


def test_a_run_that_has_not_finished_is_said(runs, tmp_path, capsys):
    shutil.copytree(runs / "good", tmp_path / "good")
    (tmp_path / "good" / "result.json").unlink()
    text = said(capsys, runs / "bad", tmp_path / "good")
    assert f"{tmp_path / 'good'} has not finished" in text

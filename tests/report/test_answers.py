"""The first screen: which model is the best and what it costs, and what masks cost or gain, by the rules of docs/report.md."""

import pytest

from one_layer.report import writing
from one_layer.report.answers import at_equal_bytes, at_equal_shape, best, smallest
from one_layer.report.page import words
from one_layer.report.verdicts import Judged, Verdict
from tests.report.made_runs import found, score_again, write_run

DENSE = {"model.weights": "dense", "model.embedding": "trained"}


def sized(folder, changes, score, size, **more):
    """A run whose model has a file of this size."""
    return write_run(folder, changes, score, bytes={"ticket_file": size, "ticket": size}, **more)


def plain(sentences):
    """Sentences as text."""
    return [
        "".join(part if isinstance(part, str) else f"[{part.label}]" for part in sentence).strip()
        for sentence in sentences
    ]


def test_the_best_model_is_the_best_point_of_a_whole_model_whatever_its_checkpoint(tmp_path):
    folder = sized(tmp_path / "a", {}, 30.0, 1000)
    sized(tmp_path / "b", {"optim.lr": 0.1}, 31.0, 1000)
    score_again(folder, "average:5", 33.0, "average")
    score_again(folder, "last", 40.0, layers={"encoder": "1"})  # of an earlier version
    assert best(found(tmp_path)).label == "masks lr 0.002 average of 5"


@pytest.mark.parametrize(("lead", "smaller"), [(0.5, "dense 64"), (1.5, None)])
def test_the_smallest_file_is_no_worse_by_the_rule_of_claims(tmp_path, lead, smaller):
    """A counted size is no file, and the smallest file of all is far worse."""
    sized(tmp_path / "large", {**DENSE, "model.d_model": 256}, 40.0, 9000)
    sized(tmp_path / "small", {**DENSE, "model.d_model": 64}, 40.0 - lead, 3000)
    sized(tmp_path / "bad", {**DENSE, "model.d_model": 32}, 20.0, 1000)
    write_run(tmp_path / "counted", {**DENSE, "model.d_model": 16}, 39.9, bytes={"dense_float32": 500})
    every = found(tmp_path)
    top = best(every)
    other = smallest(every, top)
    assert top.label == "dense 256" and (other.label if other else None) == smaller


def test_the_cost_is_said_with_the_time_of_the_runs_that_were_needed(tmp_path):
    needed = [{"key": "train.init_from", "path": "a", "train_seconds": 3600.0, "train_flops": None}]
    for seed in (1, 2):
        sized(tmp_path / f"{seed}", {"seed": seed}, 30.0 + seed, 1_290_000, sources=needed, train_seconds=1800.0)
    assert plain(words.cost(found(tmp_path))) == [
        "31.50 ± 0.71 tokenised BLEU (2 runs) by [masks]. It has 1.29 MB and took 1 h 30 min of training."
    ]


def test_at_equal_bytes_a_file_with_masks_meets_the_best_dense_file_that_is_no_larger(tmp_path):
    """Of the masks, one is smaller than all dense files, and one no better than a smaller one. A dense file is larger by less than 1 %."""
    for width, score, size in ((64, 20.0, 1000), (128, 30.0, 2000), (256, 40.0, 5000), (512, 35.0, 9000)):
        sized(tmp_path / f"masks {width}", {"model.d_model": width}, score, size)
    for width, score, size in ((96, 28.0, 2010), (112, 27.0, 1500), (192, 41.5, 4000), (384, 90.0, 50_000)):
        sized(tmp_path / f"dense {width}", {**DENSE, "model.d_model": width}, score, size)
    sized(tmp_path / "control", {"optim.freeze": "masks"}, 60.0, 2000)
    every = found(tmp_path)
    pairs, smaller = at_equal_bytes(every)
    assert [point.label for point in smaller] == ["masks 64"]
    assert [(pair.masks.label, pair.dense.label, pair.verdict) for pair in pairs] == [
        ("masks 128", "dense 96", Verdict.HOLDS),
        ("masks 256", "dense 192", Verdict.FAILS),
    ]
    said = "At equal bytes: masks are better in 1 and worse in 1 of 2 comparisons (+0.25 tokenised BLEU on average)."
    assert plain(words.masks(every))[0] == f"{said} 1 file of masks is smaller than every dense file."


def test_files_by_another_search_meet_those_of_their_own(tmp_path):
    masks = sized(tmp_path / "masks", {}, 40.0, 9000)
    sized(tmp_path / "dense", {**DENSE, "model.d_model": 64}, 38.0, 5000)
    score_again(masks, "best", 42.0, beam=9, file_bytes=9000)
    pairs, smaller = at_equal_bytes(found(tmp_path))
    assert [pair.masks.mean for pair in pairs] == [40.0] and not smaller


def test_at_equal_shape_the_best_masks_meet_the_best_dense_model(tmp_path):
    """Of one width there are two of both, of another only masks; a hybrid and a file in fewer bits do not count."""
    for rate, score in ((0.1, 30.0), (0.2, 34.0)):
        write_run(tmp_path / f"masks {rate}", {"optim.lr": rate}, score)
        folder = write_run(tmp_path / f"dense {rate}", {**DENSE, "optim.lr": rate}, score + 0.5)
        score_again(folder, "ticket-int4.safetensors", 90.0, file_bytes=100)
    write_run(tmp_path / "wide", {"model.d_model": 256}, 99.0)
    write_run(tmp_path / "hybrid", {"model.encoder_layers": "LS"}, 98.0)
    every = found(tmp_path)
    (pair,) = at_equal_shape(every)
    assert (pair.masks.mean, pair.dense.mean, pair.verdict) == (34.0, 34.5, Verdict.UNDECIDED)
    said = "-0.5 tokenised BLEU, [masks 128 lr 0.2] against [dense 128 lr 0.2]: about as good."
    assert plain(words.masks(every))[-1] == f"At equal shape: {said}"


def test_what_else_differs_at_equal_shape_is_said(tmp_path):
    write_run(tmp_path / "masks", {"model.norm": "plain", "model.dropout": 0.1, "model.selection": "sign"}, 34.0)
    write_run(tmp_path / "dense", {**DENSE, "model.norm": "affine", "data.max_tokens": 4096}, 34.5)
    every = found(tmp_path)
    others = "dropout, max tokens, norm"
    assert plain(words.masks(every))[-1].endswith(f"about as good; they also differ in {others}.")
    assert [row[-1] for row in words.pairs(every).rows if row[0] == "shape"] == [others]


def test_without_a_partner_nothing_is_compared(tmp_path):
    """And nothing is asked, of a single run for instance."""
    write_run(tmp_path / "a", {}, 30.0)
    assert words.masks(found(tmp_path)) == words.pairs(found(tmp_path)).rows == []
    writing.report(str(tmp_path / "a"), tmp_path / "out")
    page = (tmp_path / "out" / "index.html").read_text()
    assert "(1 score)" in page and "dense models?" not in page and "Which claims" not in page


def test_each_claim_is_said_once_with_all_its_verdicts():
    verdicts = {"a": "HH", "b": "HF", "c": "FF", "d": "U", "e": "FU", "f": "HU"}
    named = {"H": Verdict.HOLDS, "F": Verdict.FAILS, "U": Verdict.UNDECIDED}
    every = [Judged("A", claim, "", named[letter], "") for claim, letters in verdicts.items() for letter in letters]
    assert words.claims(every) == [
        ("a", "holds", ["holds in 2"]),
        ("b", "mixed", ["holds in 1", "does not hold in 1"]),
        ("f", "mixed", ["holds in 1", "undecided in 1"]),
        ("c", "does not hold", ["does not hold in 2"]),
        ("e", "does not hold", ["does not hold in 1", "undecided in 1"]),
        ("d", "undecided", []),
    ]

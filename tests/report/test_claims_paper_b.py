"""What the report says of paper B's claims."""

import pytest

from one_layer.report.claims import judged, tables
from tests.report.made_runs import found, score_again, write_curve, write_run, write_seeds


def test_claims_compare_scores_of_one_search(tmp_path):
    """Each of two models is scored with beam 5 by its run, and with beam 1 once more, which costs 10 BLEU."""
    dense = {"model.weights": "dense", "model.encoder_layers": "LL"}
    for name, changes, score in (("plain", dense, 30.0), ("more", {**dense, "model.encoder_layers": "LRL"}, 35.0)):
        for folder in write_seeds(tmp_path / name, changes, score):
            score_again(folder, "best", score - 10, beam=1)
    found_so = [each for each in judged(found(tmp_path)) if "test score" in each.claim]
    assert [(each.verdict.value, each.seen) for each in found_so] == [("holds", "difference +5")] * 2
    assert len({each.names for each in found_so}) == 2  # and say which search


def test_differences_of_nll_are_those_of_the_numbers_beside_them(tmp_path):
    """Less is better, and the model with reservoirs has less: 1 where the other one has 2."""
    dense = {"task": "causal_lm", "model.weights": "dense", "model.encoder_layers": "LL"}
    for layers, nll in (("LL", 2.0), ("LRL", 1.0)):
        changes = {**dense, "model.encoder_layers": layers}
        for folder in write_seeds(tmp_path / layers, changes, 0.0, test={"test": {"nll": nll}}):
            write_curve(folder, {50: nll, 100: nll})
    seen = [(each.verdict.value, "difference -1" in each.seen) for each in judged(found(tmp_path))]
    assert seen == [("holds", True)] * 3


def test_areas_on_two_texts_are_two_claims(tmp_path):
    """On one text reservoirs have the larger area, on the other the smaller one."""
    dense = {"model.weights": "dense", "model.encoder_layers": "LL", "train.select": "bleu"}
    for text, gain in (("here", 2.0), ("there", -2.0)):
        for layers in ("LL", "LRL"):
            data = {"train": text, "valid": f"valid {text}", "test": f"test {text}"}
            valid = {"select": "bleu", "score": 1.0, "step": 100}
            changes = {**dense, "model.encoder_layers": layers, "data.source_language": text}
            score = 10 + gain * (layers == "LRL")
            for folder in write_seeds(tmp_path / f"{text} {layers}", changes, 30.0, data=data, valid=valid):
                write_curve(folder, {50: score, 100: score}, "bleu")
    benches = {}
    for point in found(tmp_path):
        benches.setdefault(point.bench, []).append(point)
    rows = [row for row in tables(benches)[1].rows if "operations" in row[1]]
    assert {row[0]: row[2] for row in rows} == {
        "validation text valid here": "holds",
        "validation text valid there": "does not hold",
    }


@pytest.mark.parametrize(
    ("lead", "gain", "better", "area", "cheap"),
    [
        (3.0, 0.2, "holds", "holds", "holds"),
        (0.2, 0.001, "undecided", "undecided", "holds"),
        (-3.0, -0.2, "does not hold", "does not hold", "does not hold"),
    ],
)
def test_paper_b_s_claims_follow_the_points(tmp_path, lead, gain, better, area, cheap):
    """A model with reservoirs beside one without, and with backskipping beside the reservoirs. More layers are no other model."""
    dense = {"model.weights": "dense", "model.encoder_layers": "LL", "train.select": "bleu", "train.backskip": "off"}
    reservoirs = {**dense, "model.encoder_layers": "LRL", "model.reservoir": "ffn"}
    skipped = {**reservoirs, "train.backskip": "identity"}
    models = {"plain": (dense, 0), "reservoirs": (reservoirs, 1), "skipped": (skipped, 2)}
    for name, (changes, times) in models.items():
        valid = {"select": "bleu", "score": 1.0, "step": 100}
        for folder in write_seeds(tmp_path / name, changes, 30.0 + times * lead, valid=valid):
            write_curve(folder, dict.fromkeys((50, 100), 10 * (1 + times * gain)), "bleu")
    write_run(tmp_path / "other rate", {**dense, "optim.lr": 0.1}, 90.0)
    assert {each.claim: each.verdict.value for each in judged(found(tmp_path)) if each.paper == "B"} == {
        "reservoirs improve the test score": better,
        "reservoirs have a better area under the convergence curve by operations": area,
        "reservoirs have a better area under the convergence curve by seconds": area,
        "backskipping costs little": cheap,
    }

"""The picture of a run: whole XML, and nothing drawn that was not measured."""

from xml.etree import ElementTree

from one_layer.training.curves import _points, draw

LINES = [{"step": step, "train/nll": 9.0 - step / 100} for step in range(1, 801)]
LINES += [
    {"step": step, "valid/nll": 8.0 - step / 200, "valid/bleu": step / 50, "mask/flips": 1 / step}
    for step in (400, 800)
]


def words(text: str) -> str:
    return "\n".join("".join(each.itertext()) for each in ElementTree.fromstring(text).iter() if "text" in each.tag)


def test_each_value_has_its_curve_with_its_last_value_and_what_was_not_measured_has_none() -> None:
    found = words(draw(LINES, "bleu"))
    for label in ("training 1", "validation 4", "bleu 16", "flips 0.00125", "validation bleu"):
        assert label in found, label
    assert "validation nll" not in words(draw(LINES, "nll"))
    dense = [{name: value for name, value in line.items() if name != "mask/flips"} for line in LINES]
    assert "mask" not in words(draw(dense, "bleu"))
    assert "loss" not in words(draw([], "bleu"))
    assert draw(LINES, "bleu") == draw(LINES, "bleu"), "a run that goes on has the same file"
    assert "a<b_{$" in words(draw([{"step": 1, "valid/a<b_{$": 1.0}], "a<b_{$"))


def test_of_many_points_some_and_the_last_are_drawn_and_only_finite_ones() -> None:
    found = _points([*LINES, {"step": 801, "train/nll": float("nan")}], "train/nll")
    assert 200 < len(found) <= 401 and found[-1] == (800, 1.0)

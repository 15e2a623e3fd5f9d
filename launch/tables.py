"""Writes the scores in the tables of the documents again, from the stored runs: `python -m launch.tables`.

A table between `<!-- scores -->` and `<!-- end -->` names stored runs in its column "run": `multi30k/best` is the run `best` of
results/multi30k.jsonl.zst, `multi30k/best@ticket-int4` its file in 4 bits, and `NAME@ticket@ctranslate2` a file as that engine computes
it. Names that begin with `_` or `,` are further seeds: they are put behind the first name. "`a/x` against `y`" is the difference of two
runs of one collection, seed by seed, with its 95 % t-interval. Columns whose title is known here are filled in: a test set (`test2016`,
`everyday`; tokenised BLEU, or what else the task measures), one with `sacreBLEU` behind its name, `valid nll` at the last evaluation,
`bytes` of the file, and `minutes` of updates. All other cells are left as they are.

It also draws docs/crossing.svg: the nll of signs less that of dense models of equal bytes, in training.
"""

import math
import re
import statistics
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from one_layer.report.reading import Record, read_runs

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "results" / "README.md")
PICTURE = ROOT / "docs" / "crossing.svg"

_TABLE = re.compile(r"(?<=<!-- scores -->\n\n).*?(?=\n\n<!-- end -->)", re.DOTALL)
_TEST = re.compile(r"(test\d*|dev|everyday|flores|newstest2014|ted)( sacreBLEU)?")
_MEASURES = ("bleu_tokenized", "bits_per_byte", "perplexity", "accuracy")  # the first that a test has
_QUANTILES = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776}  # of Student's t, 97.5 %, by the number of pairs


class Measure(NamedTuple):
    """How numbers of a column are written."""

    digits: int
    unit: str = ""
    scale: float = 1.0
    largest: bool = False  # of several numbers, only the largest is given

    def number(self, value: float) -> str:
        """One number with its unit."""
        return f"{value * self.scale:,.{self.digits}f}{self.unit}"

    def text(self, values: list[float]) -> str:
        """One number, or the mean with each number behind it."""
        if self.largest:
            return f"{'at most ' if len(set(values)) > 1 else ''}{self.number(max(values))}"
        mean, each = self.number(statistics.mean(values)), map(self.number, values)
        return mean if len(values) == 1 else f"{mean} ({', '.join(each)})"

    def difference(self, first: list[float], second: list[float]) -> str:
        """The mean difference of pairs and half of its 95 % interval; one pair has none."""
        pairs = [(a - b) * self.scale for a, b in zip(first, second, strict=True)]
        mean = f"{statistics.mean(pairs):+.{self.digits}f}"
        if len(pairs) == 1:
            return f"{mean}{self.unit} (one pair)"
        half = _QUANTILES[len(pairs)] * statistics.stdev(pairs) / math.sqrt(len(pairs))
        return f"{mean} ± {half:.{self.digits}f}{self.unit}"


MEASURES = {
    "bleu_tokenized": Measure(2),
    "bleu_sacre": Measure(2),
    "bits_per_byte": Measure(3),
    "perplexity": Measure(1),
    "accuracy": Measure(1, " %", 100.0),
    "valid nll": Measure(3),
    "bytes": Measure(0, largest=True),
    "minutes": Measure(0, scale=1 / 60, largest=True),
}


@cache
def stored(collection: str) -> dict[str, Record]:
    """The runs of a collection of results/, by name."""
    address = f"results/{collection}.jsonl.zst"
    prefix = f"{ROOT / address}/"
    return {record.address.removeprefix(prefix): record for record in read_runs(str(ROOT / address))}


class Scores(NamedTuple):
    """The scores of a run, or of one of its files or averages of checkpoints."""

    name: str
    record: Record
    checkpoint: str

    def evaluation(self, test: str) -> dict[str, Any]:
        """What is stored of a test set, named without the ending of its file. Raises: KeyError if nothing is."""
        tests = self.record.result["test"].items()
        own = [values for name, values in tests if name.split(".")[0] == test]
        found = self._files(test) if self.checkpoint else own
        if not found:
            raise KeyError(f"`{self.name}` has no scores of {test}")
        return found[0]

    def value(self, title: str) -> tuple[str, float]:
        """The measure of a column with this title, and its number. Raises: KeyError if the run has none."""
        if test := _TEST.fullmatch(title):
            scores = self.evaluation(test[1])
            measure = "bleu_sacre" if test[2] else next(each for each in _MEASURES if each in scores)
            return measure, scores[measure]
        result = self.record.result
        if title == "valid nll":
            return title, self.record.evaluated("nll")[-1]["valid/nll"]
        if title == "minutes":
            return title, result["train_seconds"]
        return title, self._files()[0]["file_bytes"] if self.checkpoint else result["bytes"]["ticket_file"]

    def _files(self, test: str = "") -> list[dict[str, Any]]:
        """The evaluations of the checkpoint by one engine, on one test set or on all."""
        checkpoint, _, engine = self.checkpoint.partition("@")
        return [
            each
            for each in self.record.evaluations
            if checkpoint in str(each["checkpoint"]).replace(":", "-")
            and each.get("engine", "") == engine
            and str(each["split"]).startswith(test)
        ]


def parts(address: str) -> tuple[str, str, str]:
    """The collection, the run and the checkpoint of an address."""
    path, _, checkpoint = address.partition("@")
    cuts = (found.start() for found in re.finditer("/", path))
    there = (cut for cut in cuts if (ROOT / "results" / f"{path[:cut]}.jsonl.zst").is_file())
    cut = next(there, None)
    if cut is None:
        raise KeyError(f"`{address}` is of no collection in results/")
    return path[:cut], path[cut + 1 :], checkpoint


def runs_of(cell: str) -> tuple[list[Scores], list[Scores]]:
    """The runs that a cell names, and those that they are compared with. Raises: KeyError if one is not stored."""
    first, *rest = re.findall(r"`([^`]+)`", cell)
    collection, run, checkpoint = parts(first)
    seeds = ["", *(name for name in rest if name[0] in "_,")]
    others = [name for name in rest if name[0] not in "_,"]
    assert len(others) == (1 if " against " in cell else 0), cell
    runs = stored(collection)
    each = [
        [Scores(f"{collection}/{name}{seed}", runs[f"{name}{seed}"], checkpoint) for seed in seeds]
        for name in (run, *others)
    ]
    return each[0], each[1] if others else []


def filled(title: str, runs: list[Scores], others: list[Scores]) -> str:
    """The text of a cell. Raises: ValueError for a comparison of the nll of different texts, or of different pieces."""
    measures, values = zip(*(run.value(title) for run in runs), strict=True)
    assert len(set(measures)) == 1
    if not others:
        return MEASURES[measures[0]].text(list(values))
    texts = {run.record.result["data"]["valid"].split()[0] for run in (*runs, *others)}
    if title == "valid nll" and len(texts) > 1:
        raise ValueError(f"the nll of {runs[0].name} and {others[0].name} is not of the same pieces")
    return MEASURES[measures[0]].difference(list(values), [other.value(title)[1] for other in others])


def table(text: str) -> str:
    """A table of Markdown with its scores written again; a cell with `-` stays."""
    head, rule, *rows = text.splitlines()
    titles = _cells(head)
    column = titles.index("run")
    lines = [head, rule]
    for row in rows:
        cells = _cells(row)
        runs, others = runs_of(cells[column])
        for place, title in enumerate(titles):
            if (title in MEASURES or _TEST.fullmatch(title)) and cells[place] != "-":
                cells[place] = filled(title, runs, others)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().removeprefix("|").removesuffix("|").split(" |")]


def page(text: str) -> str:
    """A page with all its tables of scores written again."""
    return _TABLE.sub(lambda found: table(found[0]), text)


def _curve(pairs: list[tuple[str, str]]) -> list[tuple[int, float]]:
    """(update, the mean difference of the validation nll) of pairs of runs of `gpu/multi30k_best`."""
    runs = stored("gpu/multi30k_best")
    curves = [
        [{line["step"]: line["valid/nll"] for line in runs[name].evaluated("nll")} for name in pair] for pair in pairs
    ]
    return [(step, statistics.mean(one[step] - other[step] for one, other in curves)) for step in curves[0][0]]


def crossing() -> str:
    """The picture: where the learning curves of signs and of dense models cross, by the size of the file."""
    seeds = ("", "_seed2", "_seed3")
    sizes = (("0.64 MB", "small", seeds), ("1.2 MB", "best", seeds), ("2.6 MB", "best_wide", ("",)))

    def across(step: float) -> float:
        return 60 + step * 480 / 12_000

    def down(nll: float) -> float:
        return 130 - nll * 700

    body = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 236" font-family="sans-serif" font-size="12">',
        '<rect width="600" height="236" fill="#fff"/>',
        f'<line x1="60" y1="{down(0):.1f}" x2="540" y2="{down(0):.1f}" stroke="#888"/>',
    ]
    for nll in (-0.1, -0.05, 0.0, 0.05, 0.1, 0.15):
        body.append(_text(54, down(nll) + 4, f"{nll:+.2f}" if nll else "0", "end"))
    body += [_text(across(step), 226, f"{step:,}", "middle") for step in range(2000, 12_001, 2000)]
    for (name, run, which), colour in zip(sizes, ("#c44", "#46a", "#383"), strict=True):
        curve = _curve([(f"{run}{seed}", f"{run}_dense{seed}") for seed in which])
        path = " ".join(f"{across(step):.1f},{down(nll):.1f}" for step, nll in curve)
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        body.append(_text(across(1000) + 10, down(curve[0][1]) + 2, name, "start", colour))
    body.append(
        _text(60, 16, "valid nll of signs less that of the dense model, by update; below 0 signs are better", "start")
    )
    return "\n".join([*body, "</svg>\n"])


def _text(x: float, y: float, words: str, anchor: str, colour: str = "#333") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{words}</text>'


def main() -> None:
    """Writes every page whose tables change, and the picture."""
    for file, text in [*((file, page(file.read_text("utf-8"))) for file in PAGES), (PICTURE, crossing())]:
        if not file.exists() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")
            print(file.relative_to(ROOT))


if __name__ == "__main__":
    main()

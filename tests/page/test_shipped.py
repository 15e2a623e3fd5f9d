"""The shipped tickets say in the page what they say in the program; `tests/page/real_lines.py` compares whole test sets."""

import pytest

from tests import ROOT
from tests.page.engine import run
from tests.page.real_lines import compare, labels, read

pytestmark = pytest.mark.slow

LINES = 12


def test_a_page_shows_examples_of_what_its_model_translates():
    """Cased text is everyday sentences, and lower-cased text captions."""
    script = """
        const { examplesFor } = await import(given.examples);
        return given.paths.map((path) => examplesFor(opened(path).describe())[0]);
    """
    paths = [
        str(ROOT / "tickets" / f"{name}.safetensors") for name in ("everyday-en-de", "everyday-de-en", "multi30k-en-de")
    ]
    examples = (ROOT / "one_layer" / "page" / "view" / "examples.js").as_uri()
    english, german, caption = run(script, paths=paths, examples=examples)
    assert (english, german) == ("How are you?", "Wie geht es dir?") and caption not in (english, german)


@pytest.mark.parametrize("name", ["multi30k-en-de", "multi30k-en-de-best", "multi30k-en-de-wide"])
@pytest.mark.parametrize("simd", [True, False])
def test_captions_have_the_same_translations(simd, name, shared):
    lines = read(shared / "data" / "multi30k" / "test2016.en.gz")
    found = compare(ROOT / "tickets" / f"{name}.safetensors", lines[:: len(lines) // LINES], simd)
    assert not found.beyond_a_tie and found.same >= LINES - 1, found


def test_phrases_have_the_same_labels(shared):
    lines = [line.split("\t")[0] for line in read(shared / "data" / "single_cls" / "sst2_dev.tsv.gz")[1:201]]
    ours, theirs = labels(ROOT / "tickets" / "sst2.safetensors", lines)
    assert [each[0] for each in ours] == [each[0] for each in theirs]
    assert max(abs(one[1] - other[1]) for one, other in zip(ours, theirs, strict=True)) < 1e-5

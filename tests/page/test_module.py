"""A module of a ticket says what the engine says, in Node and in a page, and refuses what its ticket does not do in a sentence."""

import base64

import pytest

from one_layer.data.config import DataConfig
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.preprocess import LABEL, Preprocessing
from one_layer.page.module import of_tickets
from one_layer.tasks import TASKS
from tests.page.browser import Browser, needs_driver
from tests.page.engine import run
from tests.page.test_engine import ENCODERS, saved, words
from tests.tiny_tickets import TINY

LINES = ["w1 w2 w3", "", "w4 w0"]
PAIRS = ["w1 w2\tw3", " ", "\x85", "w4\tw0"]  # what Python calls white space has no labels
ASK = """
    const refused = (promise) => promise.then(() => "", (error) => error.message);
    const translated = await module.translate(lines), labelled = await module.labels(pairs, { ticket: 1 });
    const others = [module.labels(lines), module.translate(lines, { ticket: 2 }), module.translate("w1")];
    others.push(module.labels(lines, { ticket: 1 }));
    return [translated, labelled, await Promise.all(others.map(refused))];
"""


@pytest.fixture
def asked(tmp_path):
    """The file of a module of a translator and a classifier, and what it must answer."""
    translator, classifier = tmp_path / "translator", tmp_path / "classifier"
    saved(TINY, translator)
    assets = words(ENCODERS["plain"])
    labelled = TextAssets(*assets.vocabularies, assets.source_preprocessing, Preprocessing(LABEL))
    data = DataConfig(source="labelled", labels="mnli", directory="x", max_length=64)
    saved(ENCODERS["plain"], classifier, labelled, task=TASKS["classification"], data=data)
    (tmp_path / "module.mjs").write_bytes(of_tickets([translator, classifier]))
    script = """
        const [translator, classifier] = given.paths.map(opened);
        const labels = (line) => (line.includes("w") ? classifier.run(line) : []);
        return [given.lines.map((line) => translator.run(line)[0].text), given.pairs.map(labels)];
    """
    return tmp_path / "module.mjs", run(script, paths=[str(translator), str(classifier)], lines=LINES, pairs=PAIRS)


def check(found, wanted):
    translated, labelled, refused = found
    assert [translated, labelled] == wanted
    for part, sentence in zip(("translation", "ticket 2", "lines", "tab between them"), refused, strict=True):
        assert part in sentence


def test_node_gets_the_answers_of_the_engine(asked):
    path, wanted = asked
    script = f"const module = await import(given.module), {{ lines, pairs }} = given; {ASK}"
    check(run(script, module=path.as_uri(), lines=LINES, pairs=PAIRS), wanted)


@needs_driver
@pytest.mark.slow
def test_a_page_gets_them_too(asked, tmp_path):
    path, wanted = asked
    code = base64.b64encode(path.read_bytes()).decode()
    page = tmp_path / "page.html"
    page.write_text(
        f'<!doctype html><script type="module">const lines = {LINES!r}, pairs = {PAIRS!r};'
        f'const module = await import("data:text/javascript;base64,{code}");'
        f"window.found = await (async () => {{ {ASK} }})();</script>"
    )
    browser = Browser(tmp_path)
    try:
        browser.open(page)
        check(browser.wait("window.found"), wanted)
    finally:
        browser.close()

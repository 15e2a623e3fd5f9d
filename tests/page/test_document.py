"""A page is one script: it has what the modules have, in the order that they need."""

import json
import re

import pytest

from one_layer.page.bundle import FOLDER, bundle
from tests.page.node import evaluate

ENTRIES = [entry for entry in ("text/index.js", "view/main.js", "engine/worker.js") if (FOLDER / entry).exists()]


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_script_has_what_its_modules_export(entry):
    """Node reads each module; the script is run as a page runs it."""
    script = """
        const modules = new Function(`${given.script}return modules;`)();
        const names = {};
        for (const path of Object.keys(modules)) names[path] = Object.keys(await import(`${page}/${path}`)).sort();
        return { names, found: Object.fromEntries(Object.entries(modules).map(([path, each]) => [path, Object.keys(each).sort()])) };
    """
    found = evaluate(script, {"script": bundle(entry)})
    assert found["found"] == found["names"]
    assert entry in found["names"] and len(found["names"]) > 5


def test_comments_and_indents_stay_out_and_strings_that_look_like_them_stay_in():
    script = bundle("text/index.js")
    assert not re.search(r"^ |^//|/\*\*|; // [^\"'`\n]*$", script, re.M)
    assert json.dumps("&#124;") in script

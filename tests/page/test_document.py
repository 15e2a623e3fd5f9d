"""A page is one script: it has what the modules have, in the order that they need."""

from __future__ import annotations

import json

import pytest

from one_layer.page.bundle import FOLDER, bundle, exported
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


def test_every_form_of_export_is_found():
    source = """
export const FIRST = 1, SECOND = 2, third = 3;
export const [A, B] = [0, 1];
export const percent = (share, digits = 0) => share;
export function one() {}
export async function two() {}
export function* three() {}
export class Four {}
export { five, six };
const hidden = 0, other = 1;
"""
    names = "FIRST SECOND third A B percent one two three Four five six"
    assert exported(source) == names.split()


def test_comments_stay_out_and_strings_that_look_like_them_stay_in():
    script = bundle("text/index.js")
    assert "\n//" not in script and "/**" not in script
    assert json.dumps("&#124;") in script

"""The page in Firefox: by keyboard alone it translates there and back, as it does in Chromium."""

import pytest

from tests import ROOT
from tests.page.browser import ENTER, TAB, Firefox, needs_firefox
from tests.page.test_view import ANSWER, FOCUS, LINE, PALE, TITLE, UNNAMED


@needs_firefox
@pytest.mark.slow
def test_one_translates_there_and_back_by_keyboard_alone(tmp_path):
    firefox = Firefox(tmp_path)
    try:
        firefox.open(ROOT / "tickets" / "everyday.html")
        firefox.wait(f'document.querySelectorAll("#choices button").length === 2 && {ANSWER} === "Wie geht es dir?"')
        order = [firefox.press(TAB) or firefox.run(FOCUS) for _ in range(3)]
        assert order[-1] == "line"
        firefox.run('document.getElementById("line").select()')
        firefox.press("Where is the station?")
        firefox.wait(f'{ANSWER} === "Wo ist der Bahnhof?"')
        firefox.press(TAB + ENTER)
        firefox.wait(f'{TITLE}.includes("German to English") && {ANSWER} === "Where\'s the station?"')
        assert firefox.run(f"return {LINE}") == "Wo ist der Bahnhof?"
        firefox.press(TAB + ENTER)
        firefox.wait('document.getElementById("copy").textContent === "Copied"')
        assert firefox.run("return document.documentElement.scrollWidth <= innerWidth")
        assert firefox.run(PALE) == [] and firefox.run(UNNAMED) == []
        asked = 'return performance.getEntriesByType("resource").map(({ name }) => name)'
        assert [name for name in firefox.run(asked) if name.startswith("http")] == []
    finally:
        firefox.close()

"""What a browser makes of a page: no error, no request, no horizontal scrolling; all works by keyboard and has a label."""

import re
import time
import urllib.parse
from pathlib import Path

import pytest

from one_layer.data.config import DataConfig
from one_layer.data.text.assets import TextAssets
from one_layer.data.text.preprocess import Preprocessing
from one_layer.data.text.vocabulary import Vocabulary
from one_layer.models import ModelConfig
from one_layer.page.document import html, of_tickets
from one_layer.tasks import TASKS
from one_layer.tickets import load
from tests import ROOT
from tests.page.browser import END, LEFT, RIGHT, TAB, Browser, needs_driver
from tests.page.test_engine import BYTES, ENCODERS, LANGUAGE_MODELS, WITH_MASK, saved

pytestmark = [needs_driver, pytest.mark.slow]

TRANSLATES = ROOT / "tickets" / "multi30k-en-de.safetensors"
CLASSIFIES = ROOT / "tickets" / "sst2.safetensors"
READY = 'document.getElementById("answer").textContent.length > 5'
DEPTHS = 'document.querySelectorAll("#depth-words tbody tr").length'
BROKEN = 'document.getElementById("broken").textContent'
# Elements that one can use, pictures and tables without a name that a screen reader could say, and names that two elements have.
UNNAMED = """
    const own = (each) => each.ariaLabel || [...(each.labels ?? [])].map((label) => label.textContent).join("");
    const named = (each) => own(each) || each.getAttribute("aria-labelledby") || (each.matches("button") && each.textContent.trim());
    const shown = [...document.querySelectorAll("button, input, select, textarea, canvas, [tabindex], [role=status], section")]
        .filter((each) => each.checkVisibility());
    const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
    const [unnamed, twice] = [shown.filter((each) => !named(each)), ids.filter((each, place) => ids.indexOf(each) !== place)];
    return [...(shown.length > 15 ? [] : ["nothing is shown"]), ...unnamed.map((each) => each.outerHTML.slice(0, 200)), ...twice];
"""
# Every text that is shown, with less than 4.5 of contrast to the first solid colour behind it (WCAG 2.2, 1.4.3).
PALE = r"""
    const linear = (each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    const light = (colour) => colour.reduce((sum, each, k) => sum + linear(each / 255) * [0.2126, 0.7152, 0.0722][k], 0);
    const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
    const behind = (each) => {
        for (; each; each = each.parentElement) {
            const colour = getComputedStyle(each).backgroundColor;
            if (colour.startsWith("rgb") && (numbers(colour)[3] ?? 1) === 1) return numbers(colour);
        }
    };
    const hasText = (each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const texts = [...document.querySelectorAll("body *")]
        .filter((each) => each.checkVisibility() && hasText(each) && !["SCRIPT", "STYLE", "OPTION"].includes(each.tagName));
    return texts.map((each) => {
        const [one, other] = [numbers(getComputedStyle(each).color).slice(0, 3), behind(each)].map(light).sort((a, b) => b - a);
        return [(one + 0.05) / (other + 0.05), each.textContent.trim().slice(0, 40)];
    }).filter(([contrast]) => !(contrast >= 4.5));
"""
FOCUS = "return document.activeElement.id || document.activeElement.className || document.activeElement.tagName"


def written(ticket: Path, folder: Path) -> Path:
    path = folder / f"{ticket.stem}.html"
    path.write_bytes(of_tickets(ticket))
    return path


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return written(TRANSLATES, tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


def seen(browser: Browser, element: str) -> None:
    browser.run(f'document.getElementById("{element}").scrollIntoView({{ block: "center" }})')


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_no_error_no_request_no_horizontal_scrolling_and_all_can_be_read(browser, page, width, scheme):
    browser.open(page, width, scheme)
    browser.wait(READY)
    for part in ("panels", "shares", "broken", "depth-words"):
        seen(browser, part)
    browser.wait(f"{DEPTHS} > 5 && {BROKEN}.length > 5")
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run("return getComputedStyle(document.body).colorScheme") != "" and browser.run(PALE) == []
    assert browser.run(UNNAMED) == []
    painted = 'return [...document.querySelectorAll("canvas")].map((each) => each.width > 50)'
    assert browser.run(painted) == [True] * 3  # W, and the masks of both depths
    assert browser.console() == [] and browser.requests() == []


@pytest.fixture(scope="module")
def everyday(tmp_path_factory):
    """Both directions over one random layer, and a classifier."""
    path = tmp_path_factory.mktemp("everyday") / "page.html"
    tickets = [ROOT / "tickets" / f"everyday-{direction}.safetensors" for direction in ("en-de", "de-en")]
    path.write_bytes(of_tickets(*tickets, CLASSIFIES))
    return path


ANSWER, LINE = ('document.getElementById("answer").textContent', 'document.getElementById("line").value')
TITLE = 'document.getElementById("title").textContent'


def test_one_switches_between_models_and_turns_a_translation_round(browser, everyday):
    browser.open(everyday)
    browser.wait('document.querySelectorAll("#choices button").length === 3')
    browser.wait(f"{ANSWER}.length > 5")
    browser.run('document.getElementById("line").select()')
    browser.run('document.getElementById("line").focus()')
    browser.press("Where is the station?")
    browser.wait(f'{ANSWER} === "Wo ist der Bahnhof?"')
    seen(browser, "panels")
    browser.wait('document.querySelectorAll("#panels canvas").length === 5')  # W, and the masks of both directions
    assert "German to English has the same random matrix, drawn once for both." in browser.run(
        'return document.getElementById("twins").textContent'
    )
    browser.run('document.getElementById("swap").click()')
    browser.wait(
        f'{TITLE}.includes("German to English") && {LINE} === "Wo ist der Bahnhof?" && {ANSWER} === "Where\'s the station?"'
    )
    assert browser.run(FOCUS) == "swap" and browser.run('return document.getElementById("line").lang') == "de"
    browser.run('document.querySelectorAll("#choices button")[2].click()')
    browser.wait(f'{TITLE}.startsWith("This page labels") && {LINE} === "Wo ist der Bahnhof?"')
    browser.wait('document.querySelectorAll("#answer li").length === 2')
    assert browser.run('return document.getElementById("tools").hidden') and browser.run(UNNAMED) == []
    assert browser.console() == [] and browser.requests() == []


def test_what_a_model_says_late_is_not_written_beside_another_one(browser, everyday, page):
    browser.open(page)
    browser.open(everyday)
    browser.wait('document.querySelectorAll("#choices button").length === 3')
    browser.wait(f"{ANSWER}.length > 5")
    flips = 'document.getElementById("flips")'
    browser.run(f"{flips}.value = 30; {flips}.oninput()")
    long = "The children are playing in the garden. " * 3
    browser.run(f'const line = document.getElementById("line"); line.value = "{long}"; line.oninput()')
    browser.run('document.querySelectorAll("#choices button")[2].click()')
    browser.wait('document.querySelectorAll("#answer li").length === 2')
    time.sleep(1.0)  # in which the translator ends
    assert browser.run('return document.getElementById("flips-now").textContent') == "0 % of the bits flipped"


def test_lines_and_sentences_are_kept_and_an_address_opens_with_a_text(browser, everyday, page):
    text = "I lost my keys. How are you?\n\nCan you help me?"
    browser.open(page)
    browser.open(everyday, fragment=f"#text={urllib.parse.quote(text)}")
    wait_for_all = 'document.getElementById("copy").getAttribute("aria-disabled") === "false"'
    browser.wait(f'{ANSWER}.split("\\n").length === 3 && {wait_for_all}')
    first, empty, last = browser.run(f'return {ANSWER}.split("\\n")')
    assert (first, empty) == ("Ich habe meine Schlüssel verloren. Wie geht es dir?", "") and last.endswith("helfen?")
    assert browser.run(f"return {LINE}") == text
    browser.run(
        'const line = document.getElementById("line"); line.value = "I know. It is late."; line.oninput();'
        'document.getElementById("swap").click()'
    )
    assert browser.run(f"return {TITLE}").endswith("English to German.")  # half a translation is not turned round
    for address, typed in (("100% of 1 + 2 & 3", "100% of 1 + 2 & 3"), ("100%%20of %C3%BC", "100% of ü")):
        browser.run(f'location.hash = "text={address}"')
        browser.wait(f'{LINE} === "{typed}"')
    browser.run('location.hash = "text=How are you?"')
    browser.wait(f'{ANSWER} === "Wie geht es dir?"')


def test_what_a_page_requests_is_noticed(browser, tmp_path):
    path = tmp_path / "asks.html"
    path.write_text('<!doctype html><body><img src="http://127.0.0.1:9/picture.png">')
    browser.open(path)
    assert browser.requests() == ["http://127.0.0.1:9/picture.png"] and browser.console()


def test_one_types_and_the_translation_follows_by_keyboard_alone(browser, page):
    browser.open(page)
    browser.wait(READY)
    browser.press(TAB)
    assert browser.run(FOCUS) == "line"
    browser.run('document.getElementById("line").select()')
    browser.press("a dog .")
    browser.wait('document.getElementById("answer").textContent === "ein hund."')
    order = [browser.press(TAB) or browser.run(FOCUS) for _ in range(21)]
    for name in ("word", "role", "nearer", "farther", "whole", "again", "flips", "seeds", "mend"):
        assert any(name in each for each in order), (name, order)
    # The words of the translation are one stop, and arrows move over them.
    assert len([each for each in order if each.startswith("word")]) == 1
    browser.run('document.querySelector("button.word[tabindex=\\"0\\"]").focus()')
    browser.press(RIGHT)
    assert "hund ← dog" in browser.run('return document.querySelector(".attention .said").textContent')
    browser.press(LEFT)
    assert browser.run("return document.activeElement.textContent") == "ein"
    # A picture says the weight under its frame.
    browser.run('document.querySelector("canvas").focus()')
    browser.press(RIGHT * 2 + "+-")
    assert re.fullmatch(
        r"Row 1, column 3: the weight is −?\d\.\d+\. (Used|Its sign is turned) at .*\.",
        browser.run('return document.getElementById("weight").textContent'),
    )
    # With all its bits in doubt, the translation falls apart; mended, it is whole.
    seen(browser, "broken")
    browser.wait(f'{BROKEN} === "ein hund."')
    browser.run('document.getElementById("flips").focus()')
    browser.press(END)
    browser.wait(f'{BROKEN} !== "ein hund." && document.getElementById("same").textContent.startsWith("0 %")')
    browser.run('document.getElementById("mend").focus()')
    browser.press(" ")
    browser.wait(f'{BROKEN} === "ein hund."')
    # The next seed draws another layer, to which the masks do not belong.
    browser.run('document.getElementById("seeds").focus()')
    browser.press(RIGHT)
    other = f'document.querySelector("figcaption").textContent.includes("seed {load(TRANSLATES).seed + 1}")'
    browser.wait(f'{BROKEN} !== "ein hund." && {other}')
    assert browser.console() == []


def test_a_page_of_signs_speaks_of_signs(browser, page):
    browser.open(page)
    browser.wait(READY)
    seen(browser, "shares")
    browser.wait('document.getElementById("chance").textContent.endsWith("%")')
    said = browser.run("return document.body.innerText")
    assert "whether the weight changes its sign" in said and "or turns its sign" in said
    assert "one depth turns does another turn too" in said
    assert "kept" not in said and "counts" not in said, "no weight is left out"
    assert 45 < float(browser.run('return document.getElementById("chance").textContent').split()[0]) < 55


def test_a_classifier_shows_its_labels(browser, tmp_path):
    browser.open(written(CLASSIFIES, tmp_path))
    browser.wait(READY)
    text = browser.run('return document.getElementById("answer").textContent')
    assert re.fullmatch(r"positive\d+\.\d %negative\d+\.\d %", text)
    said = browser.run("return document.body.innerText")
    assert (
        "whether the weight counts" in said and "of the weights kept by a mask" in said and "or leaves it out" in said
    )
    assert "sign" not in said and "of which the model reads" not in said
    long = 'line.value = "a fine film . ".repeat(30); line.oninput()'
    browser.run(f'const line = document.getElementById("line"); {long}')
    browser.wait('document.getElementById("unread").textContent.endsWith(" tokens, of which the model reads 64.")')
    assert browser.run(UNNAMED) == [] and browser.console() == []


def made(task: str, config: ModelConfig, vocabulary: Vocabulary, folder: Path) -> Path:
    assets = TextAssets(vocabulary, vocabulary, Preprocessing("text"), Preprocessing("text"))
    data = DataConfig(source="plain", directory="x", block=256)
    saved(config, folder / task, assets, task=TASKS[task], data=data)
    return written(folder / task, folder)


def test_a_language_model_writes_on_and_stops(browser, tmp_path):
    browser.open(made("causal_lm", LANGUAGE_MODELS["post-norm"], BYTES, tmp_path))
    browser.wait('document.querySelector(".written")?.textContent && !document.getElementById("generate").hidden')
    given = 'return [...document.querySelectorAll("#answer > span")].map((each) => each.textContent)'
    first = browser.run(given)
    assert first[0] == "Once upon a time" and len(first[1]) > 50
    browser.run('document.getElementById("sample-seed").value = 2; document.getElementById("generate").click()')
    browser.run('document.getElementById("stop").click()')
    stopped = browser.run(given)
    assert len(stopped[1]) < len(first[1]) and browser.run(given) == stopped
    assert browser.run(UNNAMED) == [] and browser.console() == []


def test_a_masked_model_fills_each_mask_and_says_that_one_is_wanted(browser, tmp_path):
    types = len(WITH_MASK.tokens)
    config = ENCODERS["plain"].replace(source_vocab=types, target_vocab=types, family="masked_lm")
    browser.open(made("masked_lm", config, WITH_MASK, tmp_path))
    browser.wait('document.querySelectorAll("#answer li").length === 5')
    browser.run('document.getElementById("add-mask").click()')
    browser.wait('document.querySelectorAll("#answer ol").length === 2')
    write = (
        'const field = document.getElementById("line"); field.value = "none"; field.dispatchEvent(new Event("input"))'
    )
    browser.run(write)
    browser.wait('document.getElementById("answer").textContent.includes("put one where a token is wanted")')
    assert browser.run(UNNAMED) == [] and browser.console() == []


def test_a_damaged_ticket_is_refused_in_a_sentence(browser, tmp_path):
    content = bytearray(CLASSIFIES.read_bytes())
    content[-9] ^= 1
    path = tmp_path / "damaged.html"
    path.write_bytes(html((bytes(content), load(CLASSIFIES).assets)))
    browser.open(path)
    browser.wait('!document.getElementById("failure").hidden')
    said = browser.run('return document.getElementById("failure").textContent')
    assert said.startswith("This ticket cannot be used: ") and "digest" in said and "\n" not in said
    assert browser.run('return document.getElementById("model").hidden')

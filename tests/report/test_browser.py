"""What a browser makes of the page."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess

import pytest

from one_layer.report import writing
from tests.report.made_runs import write_run

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
)


# Writes what a browser makes of the page, in light and dark: its widths in a frame of each size, and what it does when it is used.
FRAMES = """<!doctype html><body><script>
const page = PAGE, found = [];
function texts(nodes) { return [...nodes].map((node) => node.textContent.trim()); }
function widths(frame, what) {
  const root = frame.contentDocument.documentElement;
  found.push({ what, width: frame.clientWidth, scroll: root.scrollWidth, client: root.clientWidth,
    drawings: frame.contentDocument.querySelectorAll("figure .plot svg, #run:not([hidden]) .plot svg").length });
}
function use(frame) {
  const { document: there, showRun, showModel, hide, choose, differences } = frame.contentWindow;
  const block = there.querySelector("#runs + .block"), rows = () => [...block.querySelectorAll("tbody tr")].filter((row) => !row.hidden);
  const score = (row) => Number.parseFloat(row.cells[2].textContent.replace(/[^0-9.]/g, ""));
  const scores = () => rows().map(score).filter((value) => !Number.isNaN(value));
  const head = block.querySelectorAll("thead th")[2], made = { before: scores() };
  head.click(); made.ascending = scores();
  head.click(); made.descending = scores();
  const field = block.querySelector("input");
  field.value = "dense"; field.dispatchEvent(new frame.contentWindow.Event("input"));
  made.filtered = texts(rows().map((row) => row.cells[0]));
  const marks = () => there.querySelectorAll("figure .mark").length;
  const name = there.querySelector("button.model").dataset.model;
  made.marks = marks(); hide(name); made.hidden = marks(); hide(name); made.shown = marks();
  choose(name); made.on = [...new Set([...there.querySelectorAll(".mark.on")].map((node) => node.dataset.model))];
  const stop = there.getElementById("stop"), emphasis = () => [stop.hidden, there.body.classList.contains("emphasis")];
  made.emphasis = [emphasis()];
  frame.contentWindow.dispatchEvent(new frame.contentWindow.KeyboardEvent("keydown", { key: "Escape" }));
  made.emphasis.push(emphasis());
  there.querySelector("button.model").click(); made.dialog = there.querySelector("dialog[open] h2").textContent;
  made.name = name;
  there.querySelector("dialog form button").click();
  const boxes = [...block.querySelectorAll("tbody input")], two = there.getElementById("two");
  const ticked = () => [two.open, boxes.filter((box) => box.checked).length];
  made.ticks = [0, 1].map((place) => { boxes[place].click(); return ticked(); });
  const rowsOf = (body) => texts(body.querySelectorAll("tr:first-child > *"));
  made.two = { names: texts(two.querySelectorAll("dl:first-of-type dd")), tables: [...two.querySelectorAll("tbody")].map(rowsOf),
    said: two.querySelector("h4 + p").textContent, command: two.querySelector("code").textContent };
  two.dispatchEvent(new frame.contentWindow.Event("close")); // a browser sends it a moment after the dialog has gone
  two.close(); made.ticks.push(ticked());
  there.execCommand = () => { made.copied = there.activeElement.value; return true; };
  Object.defineProperty(frame.contentWindow.navigator, "clipboard", { value: undefined });
  block.querySelector(".tools button").click();
  showRun(5); widths(frame, "run");
  made.run = texts(there.querySelectorAll("#run h3"));
  made.masks = texts(there.querySelectorAll("#run section th[scope=row]"));
  made.differences = differences("the old cat", "the cat sat").map((parts) => parts.map((part) => part.outerHTML ?? part).join("").trim());
  return made;
}
function measure(width) {
  const frame = document.createElement("iframe");
  frame.style.width = width + "px"; frame.style.height = "900px"; frame.style.border = "0";
  frame.onload = () => {
    widths(frame, "report");
    const used = use(frame);
    if (found.length == 4) document.body.innerText = "measured " + JSON.stringify({ found, used });
  };
  frame.srcdoc = page;
  document.body.append(frame);
}
measure(400); measure(1400);
</script>"""


# A line of Chromium's log of the network about a request of the page. Those of the browser itself have "not an origin" there.
REQUEST = re.compile(r'"initiator":"(?!not an origin)[^\n]*"url":"(https?|wss?)://')


needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed, so no page is opened in a browser")


def open_page(path, folder, scheme=0):
    """What Chromium says of a page and makes of it, and whether the page requested something."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    options += [
        "--disable-background-networking",
        "--disable-component-update",
        f"--user-data-dir={folder / 'profile'}",
    ]
    options += [f"--blink-settings=preferredColorScheme={scheme}", f"--log-net-log={folder / 'net.json'}"]
    options += ["--enable-logging=stderr", "--window-size=1500,1000", "--virtual-time-budget=5000", "--dump-dom"]
    done = subprocess.run([CHROMIUM, *options, path.as_uri()], capture_output=True, text=True, timeout=120)
    return done, REQUEST.search((folder / "net.json").read_text()) is not None


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("scheme", [0, 1], ids=["dark", "light"])
def test_a_browser_shows_the_page_without_errors_requests_or_horizontal_scrolling(written, tmp_path, scheme):
    """And the page does what its reader asks: it sorts, filters, hides, lets a model stand out, and shows a run."""
    text = json.dumps((written / "index.html").read_text()).replace("</", "<\\/")
    (tmp_path / "frames.html").write_text(FRAMES.replace("PAGE", text))
    for path in (tmp_path / "frames.html", written / "index.html"):
        done, requests = open_page(path, tmp_path, scheme)
        assert "CONSOLE" not in done.stderr, done.stderr
        assert not requests
        if path.name == "frames.html":
            seen = json.loads(html.unescape(re.search(r"measured (\{.*\})", done.stdout)[1]))
            assert {(each["what"], each["width"]) for each in seen["found"]} == {
                (what, width) for what in ("report", "run") for width in (400, 1400)
            }
            assert all(each["scroll"] <= each["client"] and each["drawings"] > 1 for each in seen["found"])
            used = seen["used"]
            scores = sorted(used["before"])
            assert used["ascending"] == scores and used["descending"] == scores[::-1] == used["before"]
            assert used["filtered"] == [f"dense 128, seed {seed}" for seed in (3, 2, 1)]
            assert used["hidden"] < used["marks"] == used["shown"] and used["on"] == [used["name"]]
            assert used["emphasis"] == [[False, True], [True, False]]  # Escape ends it
            assert used["dialog"] == used["name"] and used["run"] == ["Masks", "Examples"]
            assert used["masks"] == ["encoder/ffn/in", "target_embedding"]
            assert used["ticks"] == [[False, 1], [True, 2], [False, 0]]  # the ticks go with the box
            assert used["two"]["names"] == ["dense 128, seed 3", "dense 128, seed 2"]
            assert used["two"]["command"].split()[-1].strip("'").endswith("dense,seed=2")
            scores, keys = used["two"]["tables"]
            # Figure spaces behind a number put its point below those of numbers with more digits.
            assert keys == ["seed", "3", "2"]
            assert [cell.strip("\u2007") for cell in scores[1:]] == ["97.30", "97.20", "-0.10", "first"]
            assert len({len(cell.partition(".")[2]) for cell in scores[1:4]}) == 1
            assert used["two"]["said"].startswith("Lines that this page has of both: 1.")
            copied = [line.split("\t") for line in used["copied"].split("\n")]
            assert copied[0][0] == "run" and [row[0] for row in copied[1:]] == used["filtered"]
            assert [float(row[2]) for row in copied[1:]] == [97.3, 97.2, 97.1]
            assert used["differences"] == ["the cat <ins>sat</ins>", "the <del>old</del> cat"]


@pytest.mark.slow
@needs_chromium
def test_a_page_of_runs_without_any_score_has_no_error(tmp_path):
    (write_run(tmp_path / "runs" / "a", {}, 30.0) / "result.json").unlink()
    writing.report(str(tmp_path / "runs" / "*"), tmp_path / "out")
    done, _ = open_page(tmp_path / "out" / "index.html", tmp_path)
    assert "CONSOLE" not in done.stderr, done.stderr
    assert '<th scope="col" tabindex="0"' in done.stdout, "the program ran"


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("asks", [False, True])
def test_what_a_page_requests_is_noticed(tmp_path, asks):
    page = tmp_path / "page.html"
    page.write_text("<!doctype html><body>" + '<img src="http://localhost:9/picture.png">' * asks)
    assert open_page(page, tmp_path)[1] is asks

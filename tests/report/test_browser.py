"""What a browser makes of the page."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
)


# Writes what a browser makes of the page, in light and dark: its widths in a frame of each size.
FRAMES = """<!doctype html><body><script>
const page = PAGE, found = [];
function measure(width) {
  const frame = document.createElement("iframe");
  frame.style.width = width + "px"; frame.style.height = "900px"; frame.style.border = "0";
  frame.onload = () => {
    const root = frame.contentDocument.documentElement;
    found.push([width, root.scrollWidth, root.clientWidth, frame.contentDocument.querySelectorAll("figure svg").length]);
    if (found.length == 2) document.body.innerText = "measured " + JSON.stringify(found);
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
    text = json.dumps((written / "index.html").read_text()).replace("</", "<\\/")
    (tmp_path / "frames.html").write_text(FRAMES.replace("PAGE", text))
    for path in (tmp_path / "frames.html", written / "index.html"):
        done, requests = open_page(path, tmp_path, scheme)
        assert "CONSOLE" not in done.stderr, done.stderr
        assert not requests
        if path.name == "frames.html":
            widths = json.loads(re.search(r"measured (\[.*\])", done.stdout)[1])
            assert [width for width, *_ in widths] and all(scroll <= client for _, scroll, client, _ in widths)
            assert all(drawings == 6 for *_, drawings in widths)


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("asks", [False, True])
def test_what_a_page_requests_is_noticed(tmp_path, asks):
    page = tmp_path / "page.html"
    page.write_text("<!doctype html><body>" + '<img src="http://localhost:9/picture.png">' * asks)
    assert open_page(page, tmp_path)[1] is asks

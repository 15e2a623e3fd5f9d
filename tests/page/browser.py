"""Headless Chromium that the tests type into, by the WebDriver protocol, which chromedriver speaks over HTTP."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

DRIVER = shutil.which("chromedriver")
needs_driver = pytest.mark.skipif(not DRIVER, reason="no chromedriver is installed, so no page is opened in a browser")

TAB, LEFT, RIGHT, DOWN, ENTER, HOME, END = "\ue004", "\ue012", "\ue014", "\ue015", "\ue007", "\ue011", "\ue010"
_ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
]
_READY = 60  # seconds in which a page must be ready; a busy machine is slow


class Browser:
    """One window. What the page says on its console, and what it requests, is kept by the driver: see `console` and `requests`."""

    def __init__(self, folder: Path) -> None:
        assert DRIVER
        self._driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, text=True)
        assert self._driver.stdout
        line = next(line for line in self._driver.stdout if "successfully on port" in line)
        port = line.split()[-1].rstrip(".")
        self._url = f"http://127.0.0.1:{port}"
        options = {"args": [*_ARGUMENTS, f"--user-data-dir={folder / 'profile'}"]}
        logs = {"browser": "ALL", "performance": "ALL"}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": logs}
        self._session = ""
        self._session = "/session/" + self._call("/session", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]

    def close(self) -> None:
        self._call("", None, "DELETE")
        self._driver.terminate()
        self._driver.wait()

    def open(self, path: Path, width: int = 1400, scheme: str = "light", fragment: str = "") -> None:
        """Opens a file in a window of this width."""
        self._devtools("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        self._devtools("Emulation.setEmulatedMedia", features=features)
        self._call("/url", {"url": path.as_uri() + fragment})

    def run(self, script: str) -> Any:
        """What the body of a function returns in the page."""
        return self._call("/execute/sync", {"script": script, "args": []})

    def wait(self, condition: str) -> Any:
        """Waits until an expression is true in the page, and returns it."""
        end = time.monotonic() + _READY
        while not (found := self.run(f"return {condition}")):
            assert time.monotonic() < end, (condition, self.run("return document.body.innerText")[:2000])
            time.sleep(0.05)
        return found

    def press(self, keys: str) -> None:
        """Presses keys one after the other, wherever the focus is."""
        presses = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._call("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": presses}]})

    def console(self) -> list[str]:
        """What the page has said on its console since the last call."""
        return [each["message"] for each in self._call("/se/log", {"type": "browser"})]

    def requests(self) -> list[str]:
        """The addresses of a network that the page has asked for since the last call."""
        events = [json.loads(each["message"])["message"] for each in self._call("/se/log", {"type": "performance"})]
        asked = [each["params"]["request"]["url"] for each in events if each["method"] == "Network.requestWillBeSent"]
        return [url for url in asked if re.match("(https?|wss?):", url)]

    def _devtools(self, command: str, **parameters: Any) -> Any:
        return self._call("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def _call(self, path: str, body: dict[str, Any] | None, method: str = "POST") -> Any:
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._url}{self._session}{path}", content, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["value"]

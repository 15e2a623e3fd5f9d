"""Headless browsers that the tests type into, by the WebDriver protocol: Chromium through chromedriver, Firefox by its own Marionette."""

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import pytest

DRIVER, FIREFOX = shutil.which("chromedriver"), shutil.which("firefox") or shutil.which("firefox-esr")
needs_driver = pytest.mark.skipif(not DRIVER, reason="no chromedriver is installed, so no page is opened in a browser")
needs_firefox = pytest.mark.skipif(not FIREFOX, reason="no Firefox is installed, so no page is opened in it")

TAB, LEFT, RIGHT, DOWN, ENTER, HOME, END = "\ue004", "\ue012", "\ue014", "\ue015", "\ue007", "\ue011", "\ue010"
_ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
]
_READY = 60  # seconds in which a page must be ready; a busy machine is slow


class Window(ABC):
    """One window of a browser, whatever it is."""

    @abstractmethod
    def run(self, script: str) -> Any:
        """What the body of a function returns in the page."""

    @abstractmethod
    def _perform(self, actions: list[dict[str, Any]]) -> None: ...

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
        self._perform([{"type": "key", "id": "keyboard", "actions": presses}])


class Browser(Window):
    """Chromium. What the page says on its console, and what it requests, is kept by the driver: see `console` and `requests`."""

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
        return self._call("/execute/sync", {"script": script, "args": []})

    def _perform(self, actions: list[dict[str, Any]]) -> None:
        self._call("/actions", {"actions": actions})

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


class Firefox(Window):
    """Firefox, which needs no driver: messages `LENGTH:JSON` go over a socket."""

    def __init__(self, folder: Path) -> None:
        assert FIREFOX
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (folder / "user.js").write_text(f'user_pref("marionette.port", {port});')
        command = [FIREFOX, "--headless", "--marionette", "--no-remote", "--profile", str(folder)]
        self._program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._socket = self._connected(port)
        self._answers = self._socket.makefile("rb")
        self._read()
        self._call("WebDriver:NewSession", capabilities={})

    def _connected(self, port: int) -> socket.socket:
        end = time.monotonic() + _READY
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port), timeout=120)
            except OSError:
                assert self._program.poll() is None and time.monotonic() < end, "Firefox did not start"
                time.sleep(0.1)

    def close(self) -> None:
        self._socket.close()
        self._program.terminate()
        self._program.wait()

    def open(self, path: Path) -> None:
        self._call("WebDriver:Navigate", url=path.as_uri())

    def run(self, script: str) -> Any:
        return self._call("WebDriver:ExecuteScript", script=script, args=[])["value"]

    def _perform(self, actions: list[dict[str, Any]]) -> None:
        self._call("WebDriver:PerformActions", actions=actions)

    def _call(self, command: str, **parameters: Any) -> Any:
        message = json.dumps([0, 0, command, parameters]).encode()
        self._socket.sendall(b"%d:%b" % (len(message), message))
        _, _, error, result = self._read()
        assert error is None, error
        return result

    def _read(self) -> Any:
        length = b""
        while not length.endswith(b":"):
            byte = self._answers.read(1)
            assert byte, "Firefox ended"
            length += byte
        return json.loads(self._answers.read(int(length[:-1])))
